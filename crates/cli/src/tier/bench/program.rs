//! `dray tier bench program`: what a program whose memory fits the fast tier costs more with dray.

use std::ffi::OsString;
use std::fmt::{self, Write};
use std::process::ExitCode;

use dray_tier::bench::{self, ProgramCost};
use dray_tier::session::{Setup, VIRTUAL};
use dray_tier::size::machine;
use dray_tier::tracking::Choice;

use crate::complain::Usage;
use crate::tier::run;

/// Accesses and rounds of the programs that are built in: about a second each.
const ACCESSES: u64 = 100_000_000;
const ROUNDS: u64 = 4000;

/// A program's name and cost.
pub(super) struct Program {
    name: String,
    cost: ProgramCost,
}

impl Program {
    /// Its cost, and its name as `program`.
    pub(super) fn json(&self) -> serde_json::Result<serde_json::Value> {
        let mut value = serde_json::to_value(&self.cost)?;
        value["program"] = self.name.clone().into();
        Ok(value)
    }
}

/// The program that reads and writes.
pub(super) fn fits() -> ExitCode {
    std::hint::black_box(bench::fits(ACCESSES));
    ExitCode::SUCCESS
}

/// The program that maps, drops and unmaps.
pub(super) fn churns() -> ExitCode {
    std::hint::black_box(bench::churns(ROUNDS));
    ExitCode::SUCCESS
}

/// Runs a program, or those that are built in, so often without dray and so often with it.
pub(super) fn measure(program: &[OsString], runs: usize) -> anyhow::Result<Vec<Program>> {
    let library = dray_preload::tier_library().ok_or_else(|| {
        Usage::error(
            "programs can be tiered on x86-64 Linux with glibc alone",
            "dray tier bench mechanism",
        )
    })?;
    // All of it fits.
    let setup = Setup {
        bytes: [machine().0, u64::MAX],
        nodes: [None; 2],
        policy: 0,
        shared_read: false,
        reuse: false,
        device: VIRTUAL,
        tracking: Choice::Best,
    };
    let dray = std::env::current_exe()?;
    let own = |name: &str| {
        let arguments = ["tier", "bench", name].map(OsString::from);
        [dray.clone().into_os_string()].into_iter().chain(arguments)
    };
    let wanted = match program.first() {
        Some(name) => {
            run::check(name)?;
            vec![(name.to_string_lossy().into_owned(), program.to_vec())]
        }
        None => vec![
            ("reads and writes".to_owned(), own("fits").collect()),
            ("maps, drops, unmaps".to_owned(), own("churns").collect()),
        ],
    };
    let mut measured = Vec::new();
    for (name, command) in wanted {
        let cost = bench::program(&setup, library, &command, runs)?;
        measured.push(Program { name, cost });
    }
    Ok(measured)
}

pub(super) fn print(text: &mut String, programs: &[Program]) -> fmt::Result {
    for Program { name, cost } in programs {
        writeln!(
            text,
            "{name}: {:+.2} % core time with dray ({:+.2} to {:+.2} in 95 of 100), {} pairs of runs",
            cost.percent.mean,
            cost.percent.low,
            cost.percent.high,
            cost.plain_s.len()
        )?;
    }
    Ok(())
}
