//! Puts the conformance suite to a mover, and prints how it did in each row.
//!
//! ```sh
//! cargo run -p dray-conformance --example movers -- cpu virtual model
//! dray run --profile 1e1w-d -- target/debug/examples/movers hw
//! movers hw wq0.2 --submit write      # one work queue, by write(2) alone
//! movers hw --lines                   # rows apart by tabs, for a program
//! ```
//!
//! The exit code is 1 if a row failed, and 2 if a mover could not be opened.

use std::process::ExitCode;

use dray::hw::Submitting;
use dray_conformance::machines::{MoverName, Setting, columns};
use dray_conformance::{Column, Disruption, Table};

/// What the command line asks for.
#[derive(Default)]
struct Asked {
    movers: Vec<MoverName>,
    setting: Setting,
    lines: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  {cause}");
                source = cause.source();
            }
            ExitCode::from(2)
        }
    }
}

/// Whether no row failed.
fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let asked = asked()?;
    let mut table = Table(Vec::new());
    for mover in asked.movers {
        table.0.extend(columns(mover, &asked.setting)?);
    }
    match asked.lines {
        true => print!("{}", table.0.iter().map(Column::lines).collect::<String>()),
        false => print!("{table}"),
    }
    Ok(table
        .0
        .iter()
        .all(|column| column.failures().next().is_none()))
}

fn asked() -> Result<Asked, Box<dyn std::error::Error>> {
    let mut asked = Asked::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let missing = || format!("{argument} needs a value");
            arguments.next().ok_or_else(missing)
        };
        match argument.as_str() {
            "--lines" => asked.lines = true,
            "--held" => asked.setting.held = true,
            "--submit" => {
                asked.setting.submitting = Some(match value()?.as_str() {
                    "portal" => Submitting::Portal,
                    "write" => Submitting::Write,
                    other => return Err(format!("--submit portal or write, not {other}").into()),
                });
            }
            "--disrupt" => {
                asked.setting.disruption = Some(match value()?.as_str() {
                    "disable" => Disruption::Disabled,
                    "reset" => Disruption::QueueReset,
                    "reset-device" => Disruption::DeviceReset,
                    other => {
                        return Err(format!(
                            "--disrupt disable, reset or reset-device, not {other}"
                        )
                        .into());
                    }
                });
            }
            queue if queue.starts_with("wq") => asked.setting.queue = Some(queue.to_owned()),
            option if option.starts_with('-') => {
                return Err(format!("there is no option {option}").into());
            }
            mover => asked.movers.push(mover.parse()?),
        }
    }
    if asked.movers.is_empty() {
        return Err("name a mover: cpu, virtual, model or hw".into());
    }
    Ok(asked)
}
