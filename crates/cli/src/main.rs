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
    match cli::Cli::parse().run() {
        Ok(code) => code,
        Err(error) => complain::exit(&error),
    }
}
