//! The dray command.

mod advise;
mod bench;
mod check;
mod cli;
mod compare;
mod complain;
mod completions;
mod config;
mod configured;
mod doctor;
mod fabric;
mod figures;
mod man;
mod micros;
mod offload;
mod print;
mod progress;
mod run;
mod tier;
mod vfio;
mod vhost;
mod vm;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return complain::misparsed(&error),
    };
    match cli.run() {
        Ok(code) => code,
        Err(error) => complain::exit(&error),
    }
}
