//! `dray completions`.

use std::io;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::print;

/// Arguments of `dray completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  dray completions bash > ~/.local/share/bash-completion/completions/dray"
)]
pub(crate) struct Args {
    /// Shell to write for.
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dray", &mut script);
    print::all(&mut io::stdout().lock(), &String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
