//! `dray tier set`.

use std::process::ExitCode;

use dray_tier::knobs::{Definition, KNOBS};

use super::status::Which;
use crate::complain::Usage;
use crate::print;

/// Arguments of `dray tier set`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// Controls and their values, set in this order.
    #[arg(value_name = "NAME=VALUE")]
    knobs: Vec<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.knobs.is_empty() {
        let lines = KNOBS.map(|knob| {
            let ((least, most), name) = (knob.range, knob.name);
            let Definition { default, help, .. } = knob;
            format!("{name:24} {default:>6}  {least} to {most}: {help}\n")
        });
        print::all(&mut std::io::stdout().lock(), &lines.concat())?;
        return Ok(ExitCode::SUCCESS);
    }
    // An unknown knob is an error even without a session.
    for knob in &args.knobs {
        let parsed = dray_tier::knobs::parse(knob);
        parsed.map_err(|error| Usage::error(error.to_string(), error.hint()))?;
    }
    let session = args.which.open()?;
    for knob in &args.knobs {
        let set = session.set(knob);
        set.map_err(|error| Usage::error(error.to_string(), error.hint()))?;
    }
    Ok(ExitCode::SUCCESS)
}
