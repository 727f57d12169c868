//! `dray man`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::Cli;

/// Arguments of `dray man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  dray man /tmp/man && man /tmp/man/dray-figures.1")]
pub(crate) struct Args {
    /// Directory to write to; it is made if it is not there.
    dir: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(&args.dir)
        .with_context(|| format!("cannot write man pages to {}", args.dir.display()))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write(&command, &args.dir)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of its subcommands.
fn write(command: &Command, directory: &Path) -> anyhow::Result<()> {
    for command in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write(command, directory)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    dray_output::write(&directory.join(page.get_filename()), &text)?;
    Ok(())
}
