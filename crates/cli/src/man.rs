//! `dray man`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;

/// Arguments of `dray man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  dray man /tmp/man && man /tmp/man/dray-figures.1")]
pub(crate) struct Args {
    /// Directory to write to; it is made if it is not there.
    dir: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let place = || format!("cannot write man pages to {}", args.dir.display());
    fs::create_dir_all(&args.dir).with_context(place)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).with_context(place)?;
    Ok(ExitCode::SUCCESS)
}
