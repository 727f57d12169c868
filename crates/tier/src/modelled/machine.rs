//! A program on two tiers in virtual time: what it accesses, what is seen of that, what the policy
//! moves, and how fast the program runs meanwhile.
//!
//! Memory is known by units of 2 MiB. A unit is a huge page, or 512 base pages that move together.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::{Copies, MigrationParameters, Pages, System};
use crate::mechanism::{BLOCK_PAGES, Block};
use crate::policy::{Policy, Room};

/// Bytes of a unit, and base pages of it.
const UNIT: u64 = 2 << 20;
const BASE_PAGES: u64 = 512;
/// Seconds of virtual time between two decisions.
const STEP_S: f64 = 0.5;
/// Samples of one step at most: more tell nothing new.
const SAMPLES: u64 = 20_000;
/// Parts of all accesses, at most, by which the rank of one is found.
const GUIDES: u64 = 8192;
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

/// The modelled machine.
pub struct Machine<'a> {
    pattern: Pattern,
    system: System,
    /// Latency of a line in the fast and in the slow tier, in ns.
    lines: [f64; 2],
    parameters: &'a MigrationParameters,
    times: UnitTimes,
    policy: Box<dyn Policy>,
    blocks: Vec<(u64, Block)>,
    /// Accesses that go to units up to this one, in order of rank, of `total`.
    cumulative: Vec<u64>,
    /// The first rank that each part of all accesses may go to.
    guide: Vec<u32>,
    /// Bits of an access that do not say which part it belongs to.
    guide_shift: u32,
    /// The unit of each rank.
    units: Vec<u32>,
    /// Samples of each rank in this step.
    seen_of: Vec<u32>,
    weights: Vec<f64>,
    rng: ChaCha8Rng,
    step: u32,
    /// Samples so far.
    seen: u64,
    sample: Sample,
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
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

impl<'a> Machine<'a> {
    /// A machine whose copies down and up take what `copies` says, with lines of the fast and of the
    /// slow tier in so many nanoseconds.
    pub fn new(
        pattern: Pattern,
        system: System,
        policy: Box<dyn Policy>,
        parameters: &'a MigrationParameters,
        copies: [&dyn Copies; 2],
        lines: [f64; 2],
    ) -> Machine<'a> {
        let units = pattern.bytes / UNIT;
        let accessed = (pattern.accessed_bytes / UNIT).clamp(1, units.max(1));
        let cold = units.saturating_sub(accessed);
        // Zipf with exponent 1 by whole numbers, so that all machines agree.
        let weight = |rank: u64| (1u64 << 40) / (rank + 1);
        let mut weights = vec![0.0; units as usize];
        let mut cumulative = Vec::with_capacity(accessed as usize);
        let mut sum = 0u64;
        for rank in 0..accessed {
            sum += weight(rank);
            cumulative.push(sum);
        }
        let placed: Vec<u32> = (0..accessed)
            .map(|rank| (cold + spread(rank, accessed)) as u32)
            .collect();
        for (rank, unit) in placed.iter().enumerate() {
            weights[*unit as usize] = weight(rank as u64) as f64 / sum as f64;
        }
        let guide_shift = (sum / GUIDES + 1).next_power_of_two().ilog2();
        let guide = (0..=sum >> guide_shift)
            .map(|n| cumulative.partition_point(|until| *until <= n << guide_shift) as u32)
            .collect();
        let mut machine = Machine {
            pattern,
            system,
            lines,
            parameters,
            times: unit_times(system, parameters, copies[0], copies[1]),
            policy,
            blocks: Vec::with_capacity(units as usize),
            cumulative,
            guide,
            guide_shift,
            seen_of: vec![0; placed.len()],
            units: placed,
            weights,
            rng: ChaCha8Rng::seed_from_u64(17),
            step: 0,
            seen: 0,
            sample: Sample::default(),
        };
        if pattern.allocation_s == 0 {
            machine.allocate(units);
        }
        machine
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
        let (fast, all) = self.shares();
        let share = fast / all.max(f64::MIN_POSITIVE);
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
        let mut used = self.fast_units();
        for number in self.blocks.len() as u64..until {
            let fast = used < limit;
            used += u64::from(fast);
            let block = Block {
                present: u64::MAX,
                slow: if fast { 0 } else { u64::MAX },
                huge: number * 61 % 100 < self.pattern.huge_percent,
                ..Block::default()
            };
            self.blocks.push((number, block));
        }
    }

    fn fast_units(&self) -> u64 {
        self.blocks
            .iter()
            .filter(|(_, block)| block.slow == 0)
            .count() as u64
    }

    /// Accesses to the fast tier, and to all that is allocated.
    fn shares(&self) -> (f64, f64) {
        let each = self.blocks.iter().zip(&self.weights);
        each.fold((0.0, 0.0), |(fast, all), ((_, block), weight)| {
            match block.slow == 0 {
                true => (fast + weight, all + weight),
                false => (fast, all + weight),
            }
        })
    }

    /// What tracking sees of so many accesses.
    fn see(&mut self, samples: u64) {
        let samples = samples.min(SAMPLES);
        self.seen += samples;
        // A count tells hot from cold only when it is large: it is halved after so many samples, not
        // after so much time.
        let cools = match self.policy.name() {
            "memtis" => self.seen / COOLING_SAMPLES > (self.seen - samples) / COOLING_SAMPLES,
            _ => self.step.is_multiple_of(SETTLE),
        };
        for (_, block) in &mut self.blocks {
            block.touched <<= 1;
            block.idle = block.idle.saturating_add(1);
            if cools {
                block.heat /= 2;
            }
        }
        let total = self.cumulative.last().copied().unwrap_or(1);
        for _ in 0..samples {
            let drawn = ((u128::from(self.rng.next_u64()) * u128::from(total)) >> 64) as u64;
            let number = (drawn >> self.guide_shift) as usize;
            let first = self.guide[number] as usize;
            let end = match self.guide.get(number + 1) {
                Some(next) => (*next as usize + 1).min(self.cumulative.len()),
                None => self.cumulative.len(),
            };
            let rank = first + self.cumulative[first..end].partition_point(|sum| *sum <= drawn);
            self.seen_of[rank] += 1;
        }
        for (count, unit) in self.seen_of.iter_mut().zip(&self.units) {
            if *count == 0 {
                continue;
            }
            // What is not allocated yet is not accessed.
            if let Some((_, block)) = self.blocks.get_mut(*unit as usize) {
                block.touched |= 1;
                block.idle = 0;
                block.heat = block.heat.saturating_add(*count);
            }
            *count = 0;
        }
    }

    /// Moves what the policy chooses, as far as there is time; time that the program's own threads
    /// spend on it, in ns.
    fn migrate(&mut self) -> f64 {
        let units = |bytes: u64| bytes / UNIT * BLOCK_PAGES;
        let room = Room {
            fast_limit: units(self.pattern.fast_bytes),
            fast_used: self.fast_units() * BLOCK_PAGES,
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
        let free = (self.pattern.fast_bytes / UNIT).saturating_sub(self.fast_units());
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
    }
}

/// Where the unit of a rank lies, so that hot units are not neighbours: a multiplication by a prime
/// that is larger than any number of units, which gives each unit once.
fn spread(rank: u64, units: u64) -> u64 {
    rank * 2_654_435_761 % units
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
        let mut machine = Machine::new(
            pattern,
            system,
            by_index(policy),
            &p,
            copies,
            [128.0, 300.0],
        );
        machine.run(seconds)
    }

    #[test]
    fn every_unit_is_accessed_by_one_rank() {
        for units in [1, 2, 511, 512, 13_824] {
            let mut seen = vec![false; units as usize];
            for rank in 0..units {
                seen[spread(rank, units) as usize] = true;
            }
            assert!(seen.into_iter().all(|once| once), "{units}");
        }
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
