//! What tiering costs a program whose memory fits the fast tier: core time with and without, side by side.

mod counter;
mod interval;
mod loads;
mod side_by_side;

pub use interval::Interval;
pub use loads::{churns, fits};
pub use side_by_side::Turns;

use std::ffi::OsString;

use serde::Serialize;

use crate::TierError;
use side_by_side::Used;

/// Core time of a program and its children.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramCost {
    /// Seconds without dray, by pair.
    pub plain_s: Vec<f64>,
    /// Seconds with dray, by pair.
    pub tiered_s: Vec<f64>,
    /// Seconds of dray's own threads, by pair: the agent's in the program, and the command's with its start and end.
    /// They are part of `tiered_s`. A program whose memory fits is tiered by nothing else: it takes no faults for it.
    pub own_s: Vec<f64>,
    /// What it costs more, in percent: the mean over all pairs.
    pub percent: Interval,
    /// The median of them, if they are enough for an interval.
    pub median_percent: Option<Interval>,
    /// The mean of what dray's own threads take, in percent of the program's time without dray.
    pub own_percent: Interval,
    /// Instructions without and with dray, by pair; empty where the processor does not count them.
    pub instructions: Vec<[u64; 2]>,
    /// The mean of what it executes more, in percent.
    pub instructions_percent: Option<Interval>,
}

/// A core that this process may run on: the last one, which the kernel gives the least work of its own.
///
/// # Errors
/// The kernel does not say.
pub fn a_core() -> Result<usize, TierError> {
    // SAFETY: all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set and its size.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Err(crate::error::system("sched_getaffinity")(
            crate::sys::errno(),
        ));
    }
    let cores = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the set has that many.
    let mut allowed = cores
        .rev()
        .filter(|core| unsafe { libc::CPU_ISSET(*core, &set) });
    Ok(allowed.next().unwrap_or(0))
}

/// Runs a program without dray beside the same with dray, in so many pairs after one that is not counted.
///
/// # Errors
/// One cannot be started, or does not end with exit code 0.
pub fn program(
    plain: &[OsString],
    tiered: &[OsString],
    pairs: usize,
    turns: Turns,
) -> Result<ProgramCost, TierError> {
    let failed = |source| TierError::Io {
        what: "running the program",
        source,
    };
    let mut used: Vec<[Used; 2]> = Vec::new();
    for pair in 0..=pairs.max(2) {
        // What comes first in a pair changes from pair to pair.
        let both = side_by_side::run([plain, tiered], pair % 2, turns).map_err(failed)?;
        // The first has brought the files into memory.
        if pair > 0 {
            used.push(both);
        }
    }
    let seconds = |of: &dyn Fn(&[Used; 2]) -> f64| -> Vec<f64> { used.iter().map(of).collect() };
    let core = |used: &Used| used.core.as_secs_f64();
    let own = |used: &Used| (used.own + used.agents).as_secs_f64();
    let percent = seconds(&|both| (core(&both[1]) / core(&both[0]) - 1.0) * 100.0);
    let instructions: Option<Vec<[u64; 2]>> = used
        .iter()
        .map(|[plain, tiered]| Some([plain.instructions?, tiered.instructions?]))
        .collect();
    let instructions = instructions.unwrap_or_default();
    let more_instructions: Option<Vec<f64>> = instructions
        .iter()
        .map(|[plain, tiered]| (*plain > 0).then(|| (*tiered as f64 / *plain as f64 - 1.0) * 100.0))
        .collect();
    Ok(ProgramCost {
        percent: Interval::of_mean(&percent),
        median_percent: Interval::of_median(&percent),
        own_percent: Interval::of_mean(&seconds(&|both| own(&both[1]) / core(&both[0]) * 100.0)),
        plain_s: seconds(&|both| core(&both[0])),
        tiered_s: seconds(&|both| core(&both[1])),
        own_s: seconds(&|both| own(&both[1])),
        instructions_percent: more_instructions
            .filter(|more| !more.is_empty())
            .map(|more| Interval::of_mean(&more)),
        instructions,
    })
}
