//! What can be typed: help, man page and completions come from here.

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{advise, bench, completions, figures, man, print};

/// The workbench for hardware data movers, Intel DSA first.
///
/// A DSA copies, fills, compares and checksums memory while the CPU does something else. dray sets it up, measures it,
/// models it, and stands in for it where there is none.
#[derive(Debug, Parser)]
#[command(name = "dray", version, after_help = QUESTIONS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What `dray` alone prints, and the end of its help.
const QUESTIONS: &str = "\
Should I use a DSA for my 16 KiB copies?
  dray advise --op copy --size 16k
My DSA does not work
  dray doctor, or dray doctor dmesg.txt
Tests that need a DSA, on a machine without one
  dray run --profile 1e1w-d --require work -- ./test
The same for DPDK's, SPDK's, DML's tests
  dray run --for dpdk --require work -- dpdk-test ...
What would a DSA give my program?
  dray offload --survey -- redis-server
Who gets what behind a PCIe switch?
  dray fabric predict --topology T.toml --flows F.toml
The published measurements, modelled
  dray figures
A DSA in a virtual machine
  dray vm -- accel-config list -i

Every command has examples: dray advise --help.
Exit codes: 0 ok, 1 failed, 2 usage or bad input,
3 there is no DSA, 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every experiment of the published DSA characterisation and write one report.
    Figures(Box<figures::Args>),
    /// Say whether one case is worth offloading, and from which size on.
    Advise(Box<advise::Args>),
    /// Run benchmarks under Google Benchmark's flags and DML's case names.
    Bench(Box<bench::Args>),
    /// Measure as dsa_perf_micros does, with its flags.
    Micros(Box<crate::micros::Args>),
    /// Compare two result files.
    Compare(Box<crate::compare::Args>),
    /// Find out why a DSA does not work, and what fixes it.
    Doctor(Box<crate::doctor::Args>),
    /// Find out what a DSA does: the rules of the specification, order, times.
    Attest(Box<crate::attest::Args>),
    /// Print what of a DSA the virtual device has: exact, approximate, unsupported.
    Fidelity(crate::fidelity::Args),
    /// Set a DSA up, with accel-config's verbs and files.
    Config(Box<crate::config::Args>),
    /// Run a program on virtual devices: it finds a DSA, configures it and uses it.
    Run(Box<crate::run::Args>),
    /// Run a shell on virtual devices.
    Shell(Box<crate::run::ShellArgs>),
    /// Serve a virtual device as a PCI function over vfio-user, for QEMU.
    Vfio(Box<crate::vfio::Args>),
    /// Forward packets between virtual machines, with a data mover for the copies.
    Vhost(Box<crate::vhost::Args>),
    /// Draw, measure and predict a PCIe fabric, and schedule flows on it.
    Fabric(Box<crate::fabric::Args>),
    /// Run a program on tiered memory, whose pages a data mover moves.
    Tier(Box<crate::tier::Args>),
    /// Run an unmodified program, and offload its memcpy, memmove, memset and memcmp.
    Offload(Box<crate::offload::Args>),
    /// Replay a recorded program on a modelled machine: run time, core time, who waits.
    Replay(Box<crate::replay::Args>),
    /// Boot a guest whose stock kernel drives a virtual device.
    Vm(Box<crate::vm::Args>),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Write the man pages.
    Man(man::Args),
}

impl Cli {
    /// Whether all that the command does is to answer a question about the model.
    pub(crate) fn asks_the_model(&self) -> bool {
        match &self.command {
            Some(Command::Figures(args)) => !args.measures(),
            Some(Command::Micros(args)) => !args.measures(),
            Some(Command::Advise(args)) => !args.measures(),
            Some(Command::Replay(_) | Command::Fidelity(_) | Command::Fabric(_)) => true,
            _ => false,
        }
    }

    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Some(command) = self.command else {
            let text = format!(
                "dray {}: the workbench for hardware data movers, Intel DSA first\n\n{QUESTIONS}\nAll commands: dray --help\n",
                env!("CARGO_PKG_VERSION")
            );
            print::all(&mut io::stdout().lock(), &print::wrapped(&text))?;
            return Ok(ExitCode::SUCCESS);
        };
        match command {
            Command::Figures(args) => figures::run(&args),
            Command::Advise(args) => advise::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Micros(args) => crate::micros::run(&args),
            Command::Compare(args) => crate::compare::run(&args),
            Command::Doctor(args) => crate::doctor::run(&args),
            Command::Attest(args) => crate::attest::run(&args),
            Command::Fidelity(args) => crate::fidelity::run(&args),
            Command::Config(args) => crate::config::run(&args),
            Command::Run(args) => crate::run::run(&args),
            Command::Shell(args) => crate::run::shell(&args),
            Command::Vfio(args) => crate::vfio::run(&args),
            Command::Vhost(args) => crate::vhost::run(&args),
            Command::Fabric(args) => crate::fabric::run(&args),
            Command::Tier(args) => crate::tier::run(&args),
            Command::Offload(args) => crate::offload::run(&args),
            Command::Replay(args) => crate::replay::run(&args),
            Command::Vm(args) => crate::vm::run(&args),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn flags_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
