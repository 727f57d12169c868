//! `dray fabric`.

mod bench;
mod check_estimators;
mod collective;
mod compare_estimators;
mod comparison;
mod estimators;
mod import;
mod picture;
mod ports;
mod predict;
mod schedule;
mod show;
mod simulating;

use std::process::ExitCode;

use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  dray fabric show testbed --svg testbed.svg
  dray fabric bench --only latency,partition
  dray fabric bench --check
  dray fabric import > here.toml
  dray fabric predict --topology validation --flows flows.toml
  dray fabric schedule --topology validation --jobs jobs.toml
  dray fabric collective all-reduce
  dray fabric compare-estimators --seed 1";

/// Arguments of `dray fabric`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show a topology as a tree, a picture or its file.
    Show(show::Args),
    /// Make a topology file from this machine's PCI tree, a captured one, or hwloc's XML.
    Import(import::Args),
    /// Measure the simulated fabric: latency, bandwidth, load, sharing, tails.
    Bench(bench::Args),
    /// Predict what each flow gets, and which edge limits it.
    Predict(predict::Args),
    /// Decide when jobs start and at which rate, and check their predicted ends in the simulator.
    Schedule(schedule::Args),
    /// Time a pattern of machine learning: estimators beside the simulator.
    Collective(collective::Args),
    /// Measure the estimators against the simulator on random instances.
    CompareEstimators(compare_estimators::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.verb {
        Verb::Show(args) => show::run(args),
        Verb::Import(args) => import::run(args),
        Verb::Bench(args) => bench::run(args),
        Verb::Predict(args) => predict::run(args),
        Verb::Schedule(args) => schedule::run(args),
        Verb::Collective(args) => collective::run(args),
        Verb::CompareEstimators(args) => compare_estimators::run(args),
    }
}
