//! The dray command: [`main`] for its program, [`answer`] for programs in other languages.

/// Of what is printed, files say much: no character of it is a command for the terminal. These stand for those of the
/// standard library in all modules below.
macro_rules! eprintln {
    ($($words:tt)*) => { $crate::said::error_text(&format!("{}\n", format_args!($($words)*))) };
}
macro_rules! eprint {
    ($($words:tt)*) => { $crate::said::error_text(&format!($($words)*)) };
}
macro_rules! println {
    ($($words:tt)*) => { std::println!("{}", dray_output::shown(&format!($($words)*))) };
}

mod advise;
mod answer;
mod asked;
mod attest;
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
mod fidelity;
mod figures;
mod man;
mod micros;
mod offload;
mod print;
mod progress;
mod recording;
mod replay;
mod run;
mod said;
mod terminal;
mod tier;
mod vfio;
mod vhost;
mod vm;

use std::process::ExitCode;

use clap::Parser;

pub use answer::{Answer, answer};

/// Runs the command that this process was started with; its exit code.
pub fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return complain::misparsed(&error),
    };
    match cli.run() {
        Ok(code) => code,
        Err(error) => complain::exit(&error).into(),
    }
}
