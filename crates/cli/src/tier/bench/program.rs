//! `dray tier bench program`: what a program whose memory fits the fast tier costs more with dray.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use dray_tier::bench::{self, Interval, ProgramCost, Turns};

use crate::complain::Usage;
use crate::tier::run;

/// Accesses and rounds of the programs that are built in: two to three seconds each.
const ACCESSES: u64 = 200_000_000;
const ROUNDS: u64 = 8000;

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

/// Runs a program, or those that are built in, so often without dray and beside it with dray.
pub(super) fn measure(
    program: &[OsString],
    runs: usize,
    slice: Duration,
) -> anyhow::Result<Vec<Program>> {
    if dray_preload::tier_library().is_none() {
        return Err(Usage::error(
            "programs can be tiered on x86-64 Linux with glibc alone",
            "dray tier bench mechanism",
        ));
    }
    let turns = Turns {
        core: bench::a_core()?,
        slice: (!slice.is_zero()).then_some(slice),
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
        // All of its memory fits.
        let tiered = [dray.as_os_str()]
            .into_iter()
            .chain(["tier", "--back-end", "uffd", "--fast", "100%", "--"].map(OsStr::new))
            .chain(command.iter().map(OsString::as_os_str))
            .map(OsStr::to_owned);
        let cost = bench::program(&command, &tiered.collect::<Vec<_>>(), runs, turns)?;
        measured.push(Program { name, cost });
    }
    Ok(measured)
}

pub(super) fn print(text: &mut String, programs: &[Program]) -> fmt::Result {
    for Program { name, cost } in programs {
        let median = cost.median_percent.map_or(String::new(), |median| {
            let Interval { value, low, high } = median;
            format!(", median {value:+.2} ({low:+.2} to {high:+.2})")
        });
        writeln!(
            text,
            "{name}: {:+.2} % core time with dray ({:+.2} to {:+.2}){median}, {} pairs; \
             of it dray's own threads {:.3} ({:.3} to {:.3}); {:.2} s without dray",
            cost.percent.value,
            cost.percent.low,
            cost.percent.high,
            cost.plain_s.len(),
            cost.own_percent.value,
            cost.own_percent.low,
            cost.own_percent.high,
            cost.plain_s.iter().sum::<f64>() / cost.plain_s.len().max(1) as f64,
        )?;
        match cost.instructions_percent {
            Some(more) => writeln!(
                text,
                "  instructions {:+.3} % ({:+.3} to {:+.3})",
                more.value, more.low, more.high
            )?,
            None => writeln!(text, "  no counter of instructions on this machine")?,
        }
    }
    Ok(())
}
