//! A program on two tiers in virtual time: what it accesses, what is seen of that, what the policy
//! moves, and how fast the program runs meanwhile.
//!
//! Memory is known by units of 2 MiB. A unit is a huge page, or 512 base pages that move together.

use std::sync::Arc;

use super::{Accesses, Copies, MigrationParameters, ModelledMemory, System};
use crate::back_end::{Limits, Tiering};
use crate::mechanism::BLOCK_PAGES;
use crate::policy::Policy;

/// Bytes of a unit, and base pages of it.
pub(super) const UNIT: u64 = 2 << 20;
pub(super) const BASE_PAGES: u64 = 512;
/// Seconds of virtual time between two decisions.
pub(super) const STEP_S: f64 = 0.5;
/// Samples of one step at most: more add nothing.
const SAMPLES: u64 = 20_000;
/// Ten-thousandths of the fast tier that are kept free: `demote_scale_factor`.
const KEEP_FREE: u64 = 200;
/// Steps in which a unit does not move back, and from one cooling to the next: 2 s.
const SETTLE: u32 = 4;
/// Samples from one cooling to the next of a policy that counts accesses: MEMTIS's own setting.
const COOLING_SAMPLES: u64 = 2_000_000;

/// What a program does with its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Bytes of the fast tier.
    pub fast_bytes: u64,
    /// Bytes that are allocated.
    pub bytes: u64,
    /// Bytes that are accessed; the rest was allocated first and is cold.
    pub accessed_bytes: u64,
    /// Seconds that allocation takes; 0: all is there before time begins.
    pub allocation_s: u64,
    /// Units that are huge pages, in percent.
    pub huge_percent: u64,
    /// Threads that access memory.
    pub threads: u64,
}

/// What has happened until a moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// Bytes demoted since the start.
    pub demoted: u64,
    /// Bytes promoted since the start.
    pub promoted: u64,
    /// Million accesses a second in this step.
    pub mega_accesses: f64,
    /// Share of the accesses that find their page in the fast tier.
    pub fast_share: f64,
}

/// A program whose memory is on two tiers.
pub struct TieredProgram<'a> {
    pattern: Pattern,
    memory: ModelledMemory,
    tiering: Tiering,
    /// Latency of a line in the fast and in the slow tier, in ns.
    lines: [f64; 2],
    parameters: &'a MigrationParameters,
    accesses: Arc<Accesses>,
    /// Samples of each unit in this step.
    seen_of: Vec<u32>,
    /// Samples so far.
    seen: u64,
}

impl std::fmt::Debug for TieredProgram<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TieredProgram")
            .field("pattern", &self.pattern)
            .field("tiering", &self.tiering)
            .finish_non_exhaustive()
    }
}

impl<'a> TieredProgram<'a> {
    /// A program whose copies down and up take what `copies` says, with lines of the fast and of the
    /// slow tier in so many nanoseconds. `accesses` are of the same pattern.
    pub fn new(
        pattern: Pattern,
        accesses: Arc<Accesses>,
        system: System,
        policy: Box<dyn Policy>,
        parameters: &'a MigrationParameters,
        copies: [&dyn Copies; 2],
        lines: [f64; 2],
    ) -> TieredProgram<'a> {
        let mut memory = ModelledMemory::new(pattern, accesses.clone(), system, parameters, copies);
        if pattern.allocation_s == 0 {
            memory.allocate(pattern.bytes / UNIT);
        }
        TieredProgram {
            pattern,
            memory,
            tiering: Tiering::new(policy),
            lines,
            parameters,
            seen_of: vec![0; accesses.shares().len()],
            accesses,
            seen: 0,
        }
    }

    /// Runs for so many seconds; what has happened at the end of each step of half a second.
    pub fn run(&mut self, seconds: u64) -> Vec<Sample> {
        let steps = (seconds as f64 / STEP_S) as usize;
        (0..steps).map(|_| self.advance()).collect()
    }

    fn advance(&mut self) -> Sample {
        let units = self.pattern.bytes / UNIT;
        if self.pattern.allocation_s > 0 {
            let step = self.tiering.interval() + 1;
            let until = step as f64 * STEP_S / self.pattern.allocation_s as f64;
            self.memory
                .allocate(((units as f64 * until) as u64).min(units));
        }
        let share = self.memory.fast_part();
        let latency = share * self.lines[0] + (1.0 - share) * self.lines[1];
        let limits = self.limits();
        // Modelled memory can always move.
        let stepped = self.tiering.step(&mut self.memory, &limits);
        debug_assert!(stepped.is_ok(), "{stepped:?}");
        // A sampled access is a fault, and a promotion is the work of the thread that accesses, but for
        // the threads of `dray tier`.
        let each = latency + self.parameters.sampled * self.parameters.hint_fault;
        let own = self.pattern.threads as f64 * STEP_S * 1e9;
        let accesses = (own - self.memory.own.min(own)) / each;
        self.see((accesses * self.parameters.sampled) as u64);
        let [demoted, promoted] = self.memory.moved;
        Sample {
            demoted,
            promoted,
            mega_accesses: accesses / STEP_S / 1e6,
            fast_share: share,
        }
    }

    fn limits(&self) -> Limits {
        let fast = self.pattern.fast_bytes / UNIT * BLOCK_PAGES;
        Limits {
            fast,
            keep_free: fast * KEEP_FREE / 10_000,
            slow: u64::MAX,
            promote: u64::MAX,
            ping_pong: SETTLE,
            cooling: SETTLE,
        }
    }

    /// What tracking sees of so many accesses.
    fn see(&mut self, samples: u64) {
        let samples = samples.min(SAMPLES);
        let seen_of = &mut self.seen_of;
        self.accesses
            .each(self.seen, samples, |unit| seen_of[unit as usize] += 1);
        self.seen += samples;
        // A count separates hot from cold only when it is large: it is halved after so many samples, not
        // after so much time.
        let cools = match self.tiering.policy().cools_by_samples() {
            true => self.seen / COOLING_SAMPLES > (self.seen - samples) / COOLING_SAMPLES,
            false => self.tiering.interval().is_multiple_of(SETTLE),
        };
        for ((_, block), count) in self.memory.blocks.iter_mut().zip(&self.seen_of) {
            let accessed = *count > 0;
            block.touched = block.touched << 1 | u16::from(accessed);
            block.idle = match accessed {
                true => 0,
                false => block.idle.saturating_add(1),
            };
            block.heat = (block.heat >> u32::from(cools)).saturating_add(*count);
        }
        // What is not allocated yet is not accessed.
        self.seen_of.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modelled::call::tests::TIMES;
    use crate::policy::by_index;

    const PATTERN: Pattern = Pattern {
        fast_bytes: 1 << 30,
        bytes: 5 << 30,
        accessed_bytes: 5 << 30,
        allocation_s: 10,
        huge_percent: 100,
        threads: 4,
    };

    fn run(pattern: Pattern, system: System, policy: usize, seconds: u64) -> Vec<Sample> {
        let p = MigrationParameters::built_in();
        let copies: [&dyn Copies; 2] = [&TIMES, &TIMES];
        let mut program = TieredProgram::new(
            pattern,
            Arc::new(Accesses::of(&pattern)),
            system,
            by_index(policy),
            &p,
            copies,
            [128.0, 300.0],
        );
        program.run(seconds)
    }

    #[test]
    fn every_policy_raises_the_fast_share_above_that_of_none() {
        // Recency alone, the baseline, gains less.
        for (policy, gain) in [(0, 0.2), (1, 0.2), (2, 0.05)] {
            let samples = run(PATTERN, System::Kernel, policy, 60);
            let none = run(PATTERN, System::Kernel, 3, 60);
            let (with, without) = (samples.last().unwrap(), none.last().unwrap());
            assert!(
                with.fast_share > without.fast_share + gain,
                "{policy}: {with:?}"
            );
            assert_eq!((without.demoted, without.promoted), (0, 0));
            assert!(with.demoted > 0 && with.promoted > 0, "{with:?}");
        }
    }

    #[test]
    fn the_same_run_gives_the_same_samples() {
        let of = || run(PATTERN, System::ConcurrentDsa, 1, 20);
        assert_eq!(of(), of());
    }

    #[test]
    fn memory_that_fits_the_fast_tier_does_not_move() {
        let pattern = Pattern {
            fast_bytes: 6 << 30,
            allocation_s: 0,
            ..PATTERN
        };
        let last = *run(pattern, System::Kernel, 0, 10).last().unwrap();
        assert_eq!((last.demoted, last.promoted), (0, 0));
        assert!((last.fast_share - 1.0).abs() < 1e-9);
    }
}
