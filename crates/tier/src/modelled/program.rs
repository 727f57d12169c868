//! A program on two tiers in virtual time: what it accesses, what is seen of that, what the policy
//! moves, and how fast the program runs meanwhile.
//!
//! Memory is known by units of 2 MiB. A unit is a huge page, or 512 base pages that move together.

use std::sync::Arc;

use super::{Accesses, Copies, MigrationParameters, Pages, System};
use crate::mechanism::{BLOCK_PAGES, Block};
use crate::policy::{Policy, Room};

/// Bytes of a unit, and base pages of it.
pub(super) const UNIT: u64 = 2 << 20;
const BASE_PAGES: u64 = 512;
/// Seconds of virtual time between two decisions.
const STEP_S: f64 = 0.5;
/// Samples of one step at most: more tell nothing new.
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

/// Nanoseconds for a unit, by whether it is a huge page.
#[derive(Debug, Clone, Copy)]
struct UnitTimes {
    demote: [f64; 2],
    promote: [f64; 2],
}

/// A program whose memory is on two tiers.
pub struct TieredProgram<'a> {
    pattern: Pattern,
    system: System,
    /// Latency of a line in the fast and in the slow tier, in ns.
    lines: [f64; 2],
    parameters: &'a MigrationParameters,
    times: UnitTimes,
    policy: Box<dyn Policy>,
    blocks: Vec<(u64, Block)>,
    accesses: Arc<Accesses>,
    /// Samples of each unit in this step.
    seen_of: Vec<u32>,
    /// A bit for each unit in the fast tier, and how many there are.
    fast: Vec<u64>,
    fast_units: u64,
    /// Shares of the accesses that go to the fast tier, until a unit comes or moves, and to all units.
    fast_share: Option<f64>,
    share: f64,
    step: u32,
    /// Samples so far.
    seen: u64,
    sample: Sample,
}

impl std::fmt::Debug for TieredProgram<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TieredProgram")
            .field("pattern", &self.pattern)
            .field("system", &self.system)
            .finish_non_exhaustive()
    }
}

/// Pages of one call, at most: the kernel before lists of calls demotes 32 pages or a huge page, with
/// the lists of kernels-with-dsa 24 huge and 1024 base pages.
fn batch(system: System) -> Pages {
    match system {
        System::Kernel | System::HugeDsa => Pages { huge: 1, base: 32 },
        System::ConcurrentThreads | System::ConcurrentDsa => Pages {
            huge: 24,
            base: 1024,
        },
        System::UserCore | System::UserDsa => Pages { huge: 8, base: 512 },
    }
}

/// The same for promotion: the kernel promotes the page that was touched, by itself.
fn promotion_batch(system: System) -> Pages {
    match system {
        System::UserCore | System::UserDsa => batch(system),
        _ => Pages { huge: 1, base: 1 },
    }
}

fn unit_times(
    system: System,
    p: &MigrationParameters,
    demote: &dyn Copies,
    promote: &dyn Copies,
) -> UnitTimes {
    let per_unit = |batch: Pages, copies: &dyn Copies| {
        let of = |pages: Pages| system.call(pages, p, copies).total();
        let huge = of(Pages { base: 0, ..batch }) / batch.huge as f64;
        let base = of(Pages { huge: 0, ..batch }) / batch.base as f64;
        [base * BASE_PAGES as f64, huge]
    };
    UnitTimes {
        demote: per_unit(batch(system), demote),
        promote: per_unit(promotion_batch(system), promote),
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
        let units = pattern.bytes / UNIT;
        let mut program = TieredProgram {
            pattern,
            system,
            lines,
            parameters,
            times: unit_times(system, parameters, copies[0], copies[1]),
            policy,
            blocks: Vec::with_capacity(units as usize),
            seen_of: vec![0; accesses.shares().len()],
            fast: vec![0; units.div_ceil(64) as usize],
            fast_units: 0,
            fast_share: None,
            share: 0.0,
            accesses,
            step: 0,
            seen: 0,
            sample: Sample::default(),
        };
        if pattern.allocation_s == 0 {
            program.allocate(units);
        }
        program
    }

    /// Runs for so many seconds; what has happened at the end of each step of half a second.
    pub fn run(&mut self, seconds: u64) -> Vec<Sample> {
        let steps = (seconds as f64 / STEP_S) as usize;
        (0..steps).map(|_| self.advance()).collect()
    }

    fn advance(&mut self) -> Sample {
        self.step += 1;
        let units = self.pattern.bytes / UNIT;
        if self.pattern.allocation_s > 0 {
            let until = self.step as f64 * STEP_S / self.pattern.allocation_s as f64;
            self.allocate(((units as f64 * until) as u64).min(units));
        }
        let share = self.fast_share() / self.share.max(f64::MIN_POSITIVE);
        let latency = share * self.lines[0] + (1.0 - share) * self.lines[1];
        let moving = self.migrate();
        // A sampled access is a fault, and a promotion is the work of the thread that accesses, but for
        // the threads of `dray tier`.
        let each = latency + self.parameters.sampled * self.parameters.hint_fault;
        let own = self.pattern.threads as f64 * STEP_S * 1e9;
        let accesses = (own - moving.min(own)) / each;
        self.see((accesses * self.parameters.sampled) as u64);
        self.sample.mega_accesses = accesses / STEP_S / 1e6;
        self.sample.fast_share = share;
        self.sample
    }

    /// New units come to the fast tier while it has room.
    fn allocate(&mut self, until: u64) {
        let limit = self.pattern.fast_bytes / UNIT;
        for number in self.blocks.len() as u64..until {
            let fast = self.fast_units < limit;
            let block = Block {
                present: u64::MAX,
                slow: if fast { 0 } else { u64::MAX },
                huge: number * 61 % 100 < self.pattern.huge_percent,
                ..Block::default()
            };
            self.blocks.push((number, block));
            self.share += self.accesses.shares()[number as usize];
            if fast {
                self.place(number, true);
            }
        }
    }

    /// A unit comes to the fast tier, or leaves it.
    fn place(&mut self, number: u64, fast: bool) {
        let word = &mut self.fast[(number / 64) as usize];
        let bit = 1 << (number % 64);
        match (fast, *word & bit != 0) {
            (true, false) => self.fast_units += 1,
            (false, true) => self.fast_units -= 1,
            _ => return,
        }
        *word ^= bit;
        self.fast_share = None;
    }

    /// Share of the accesses that goes to the fast tier: always the sum in the order of the units, so
    /// that it is the same to the last bit however they came there.
    fn fast_share(&mut self) -> f64 {
        if let Some(known) = self.fast_share {
            return known;
        }
        let shares = self.accesses.shares();
        let mut sum = 0.0;
        for (word, first) in self.fast.iter().zip((0..).step_by(64)) {
            let mut left = *word;
            while left != 0 {
                sum += shares[first + left.trailing_zeros() as usize];
                left &= left - 1;
            }
        }
        self.fast_share = Some(sum);
        sum
    }

    /// What tracking sees of so many accesses.
    fn see(&mut self, samples: u64) {
        let samples = samples.min(SAMPLES);
        let seen_of = &mut self.seen_of;
        self.accesses
            .each(self.seen, samples, |unit| seen_of[unit as usize] += 1);
        self.seen += samples;
        // A count tells hot from cold only when it is large: it is halved after so many samples, not
        // after so much time.
        let cools = match self.policy.name() {
            "memtis" => self.seen / COOLING_SAMPLES > (self.seen - samples) / COOLING_SAMPLES,
            _ => self.step.is_multiple_of(SETTLE),
        };
        for ((_, block), count) in self.blocks.iter_mut().zip(&self.seen_of) {
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

    /// Moves what the policy chooses, as far as there is time; time that the program's own threads
    /// spend on it, in ns.
    fn migrate(&mut self) -> f64 {
        let units = |bytes: u64| bytes / UNIT * BLOCK_PAGES;
        let room = Room {
            fast_limit: units(self.pattern.fast_bytes),
            fast_used: self.fast_units * BLOCK_PAGES,
            keep_free: units(self.pattern.fast_bytes) * KEEP_FREE / 10_000,
            slow_room: u64::MAX,
            promote: u64::MAX,
            interval: self.step,
            ping_pong: SETTLE,
            cooling: SETTLE,
        };
        let plan = self.policy.decide(&self.blocks, &room);
        // One thread demotes.
        let mut left = STEP_S * 1e9;
        for number in plan.demote {
            let time = self.times.demote[usize::from(self.blocks[number as usize].1.huge)];
            if time > left {
                break;
            }
            left -= time;
            self.moved(number, true);
            self.sample.demoted += UNIT;
        }
        // Promotion finds room or does not happen.
        let free = (self.pattern.fast_bytes / UNIT).saturating_sub(self.fast_units);
        let by_program = !matches!(self.system, System::UserCore | System::UserDsa);
        let mut budget = match by_program {
            true => self.pattern.threads as f64 * STEP_S * 1e9,
            // The same thread promotes.
            false => left,
        };
        let mut own = 0.0;
        for number in plan.promote.into_iter().take(free as usize) {
            let time = self.times.promote[usize::from(self.blocks[number as usize].1.huge)];
            if time > budget {
                break;
            }
            budget -= time;
            own += if by_program { time } else { 0.0 };
            self.moved(number, false);
            self.sample.promoted += UNIT;
        }
        own
    }

    fn moved(&mut self, number: u64, demoted: bool) {
        let block = &mut self.blocks[number as usize].1;
        let lately = self.step.saturating_sub(block.moved_at) < SETTLE * 4;
        if !demoted && block.demoted && block.moved_at != 0 && lately {
            block.ping_pongs = block.ping_pongs.saturating_add(1);
        }
        block.slow = if demoted { u64::MAX } else { 0 };
        block.moved_at = self.step;
        block.demoted = demoted;
        self.place(number, !demoted);
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
    fn a_policy_brings_the_hot_units_up_and_none_does_not() {
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
    fn memory_that_fits_does_not_move() {
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
