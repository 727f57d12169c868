//! `dray fabric show`: a topology as text, as a picture, as its file.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use dray_output::Output;
use dray_pcie::{Topology, built_in, built_in_names};

use crate::complain::Usage;
use crate::print;

const EXAMPLES: &str = "\
Examples:
  dray fabric show testbed                     the paper's test bed as a tree
  dray fabric show gpu8 --svg gpu8.svg         and as a picture
  dray fabric show validation --toml > my.toml the file itself, to change

Built in: local, testbed, validation, fat-tree, gpu8.
Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Arguments of `dray fabric show`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A topology file, or a built-in topology.
    #[arg(value_name = "FILE|NAME")]
    topology: String,
    /// Draw it into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the file of a built-in topology instead.
    #[arg(long)]
    toml: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let out = &mut io::stdout().lock();
    if args.toml {
        let Some(text) = built_in(&args.topology) else {
            return Err(Usage::error(
                format!(
                    "--toml: `{0}` is not built in; {1}",
                    args.topology,
                    dray_suggest::suggest(&args.topology, built_in_names())
                ),
                "dray fabric show testbed --toml",
            ));
        };
        print::all(out, text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let svg = args.svg.as_deref().map(Output::prepare).transpose()?;
    let topology = Topology::resolve(&args.topology)?;
    if let Some(svg) = svg {
        svg.write(topology.to_svg().as_bytes())?;
    }
    print::all(out, &topology.to_text())?;
    Ok(ExitCode::SUCCESS)
}
