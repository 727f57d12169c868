//! `dray fabric`.

mod estimators;
mod flows;
mod network;
mod picture;
mod predict;

use std::process::ExitCode;

use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  dray fabric predict --topology validation --flows flows.toml";

/// Arguments of `dray fabric`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Predict what each flow gets, and which edge limits it.
    Predict(predict::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.verb {
        Verb::Predict(args) => predict::run(args),
    }
}
