//! Policies in virtual time: how much of a program's accesses they bring to the fast tier, beside an oracle, and
//! beside a model of the kernel's own tiering.
//!
//! No memory moves and no clock is read. The policies are those of a session, by the rules of its trackers, with all
//! knobs at their defaults; what is modelled are the accesses, and what is seen of them. The blocks of a trace lie
//! anywhere, other ones with each seed.

mod memory;
mod numa;
mod seen;
mod trace;

pub use seen::{WAYS, Way};
pub use trace::{TRACES, Trace};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::Serialize;

use crate::back_end::Tiering;
use crate::mechanism::BLOCK_PAGES;
use crate::policy::{POLICIES, by_index};
use crate::sys::PAGE;
use memory::{FAST, Memory};
use numa::Numa;
use seen::Seen;
use trace::{BLOCKS, Layout, STAYS_S};

/// Intervals a second, as `interval_ms` has it.
const INTERVALS: u32 = 10;
/// Percent of the accesses less than the oracle with which a policy has followed.
const NEAR: f64 = 5.0;

/// How a policy did on a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Followed {
    /// The accesses.
    pub trace: Trace,
    /// What is seen of them; none for the kernel's own tiering.
    pub way: Option<Way>,
    /// The policy.
    pub policy: &'static str,
    /// Percent of the accesses that went to the fast tier, of the last two thirds of the time.
    pub fast_percent: f64,
    /// The same if the blocks with the most accesses of the time in which the set stays were there.
    pub oracle_percent: f64,
    /// Seconds until it was within 5 points of the oracle, the mean over the times that the set has moved; none if it
    /// was not, once.
    pub follow_s: Option<f64>,
    /// Percent of the moves that took a page back to the fast tier within 8 s of its demotion.
    pub back_percent: f64,
    /// MB moved, a second.
    pub moved_mb_s: f64,
    /// Percent of a core that tracking took, and with the kernel's own tiering faults and moves.
    pub overhead_percent: f64,
}

/// What decides.
enum Decides {
    Policy(Box<(Memory, Seen, Tiering)>),
    Kernel(Box<Numa>),
}

impl Decides {
    /// One interval: what it does, and then the part of each block in the fast tier.
    fn step(&mut self, rates: &[f64], at: f64, time: f64, fast: &mut [f64]) {
        match self {
            Decides::Policy(parts) => {
                let (memory, seen, tiering) = &mut **parts;
                seen.step(memory, rates, time);
                let limits = Memory::limits(INTERVALS);
                if tiering.cools(&limits) {
                    memory.cool();
                }
                let moved = tiering.step(memory, &limits);
                debug_assert!(moved.is_ok(), "modelled memory can always move");
                for (block, fast) in fast.iter_mut().enumerate() {
                    *fast = f64::from(u8::from(memory.is_fast(block)));
                }
            }
            Decides::Kernel(numa) => {
                numa.step(rates, at, time);
                for (block, fast) in fast.iter_mut().enumerate() {
                    *fast = numa.fast_part(block);
                }
            }
        }
    }

    /// Pages moved, pages that came back soon, nanoseconds.
    fn counts(&self) -> (u64, u64, f64) {
        match self {
            Decides::Policy(parts) => {
                let (memory, seen, _) = &**parts;
                (memory.moved, memory.back * BLOCK_PAGES, seen.cost)
            }
            Decides::Kernel(numa) => (numa.moved, numa.back, numa.cost),
        }
    }
}

/// A policy by its index on a trace, for some seconds of virtual time.
pub fn followed(trace: Trace, way: Way, policy: usize, seconds: u64, seed: u64) -> Followed {
    let rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let tiering = Tiering::new(by_index(policy));
    let decides = Decides::Policy(Box::new((Memory::new(), Seen::new(way, rng), tiering)));
    let name = POLICIES.get(policy).copied().unwrap_or("none");
    run(trace, Some(way), name, decides, seconds, seed)
}

/// The same of the kernel's own tiering.
pub fn followed_by_kernel(trace: Trace, seconds: u64, seed: u64) -> Followed {
    let decides = Decides::Kernel(Box::new(Numa::new(ChaCha8Rng::seed_from_u64(
        seed ^ 0x5eed,
    ))));
    run(trace, None, "kernel", decides, seconds, seed)
}

/// How long it takes to follow each time.
#[derive(Debug, Default)]
struct Follow {
    since: f64,
    waits: bool,
    times: Vec<f64>,
    missed: bool,
}

impl Follow {
    fn moved(&mut self, at: f64) {
        self.missed |= self.waits;
        (self.since, self.waits) = (at, true);
    }

    fn sees(&mut self, at: f64, near: bool) {
        if self.waits && near {
            self.waits = false;
            self.times.push(at - self.since);
        }
    }

    fn mean(&self) -> Option<f64> {
        let count = self.times.len() as f64;
        (!self.missed && !self.waits).then(|| self.times.iter().sum::<f64>() / count)
    }
}

fn run(
    trace: Trace,
    way: Option<Way>,
    policy: &'static str,
    mut decides: Decides,
    seconds: u64,
    seed: u64,
) -> Followed {
    let mut layout = Layout::new(trace, ChaCha8Rng::seed_from_u64(seed));
    let time = 1.0 / f64::from(INTERVALS);
    let steps = seconds * u64::from(INTERVALS);
    let (mut rates, mut fast) = (vec![0.0; BLOCKS], vec![0.0; BLOCKS]);
    let mut mean = rates.clone();
    let (mut sums, mut follow) = ([0.0; 3], Follow::default());
    follow.moved(0.0);
    for step in 0..steps {
        let at = step as f64 * time;
        if layout.rates(at, time, &mut rates) {
            follow.moved(at);
        }
        // Accesses of an interval meet pages where the interval before has left them.
        let all: f64 = rates.iter().sum();
        let hit: f64 = rates
            .iter()
            .zip(&fast)
            .map(|(rate, fast)| rate * fast)
            .sum();
        layout.mean_rates(&rates, &mut mean);
        let best = oracle(&mean);
        if step > 0 {
            follow.sees(at, 100.0 * (best - hit) / all <= NEAR);
        }
        if step >= steps / 3 {
            let part = [hit, best, all];
            sums.iter_mut()
                .zip(part)
                .for_each(|(sum, part)| *sum += part);
        }
        decides.step(&rates, at, time, &mut fast);
    }
    let (moved, back, cost) = decides.counts();
    Followed {
        trace,
        way,
        policy,
        fast_percent: 100.0 * sums[0] / sums[2],
        oracle_percent: 100.0 * sums[1] / sums[2],
        follow_s: follow.mean(),
        back_percent: 100.0 * back as f64 / moved.max(1) as f64,
        moved_mb_s: moved as f64 * PAGE as f64 / 1e6 / seconds as f64,
        overhead_percent: cost / 1e7 / seconds as f64,
    }
}

/// Accesses a second that find their page in the fast tier where that has the most accessed blocks.
fn oracle(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let blocks = Memory::limits(INTERVALS);
    let blocks = (FAST - blocks.keep_free) / BLOCK_PAGES;
    sorted[..blocks as usize].iter().sum()
}

/// Seconds of virtual time that show everything: the set moves three times.
pub const SECONDS: u64 = 4 * STAYS_S as u64;

#[cfg(test)]
mod tests {
    use super::*;

    /// The default policy.
    const COUNTS: usize = 5;

    /// What stays hot is in the fast tier, by the default policy and each default way of tracking, wherever it lies.
    #[test]
    fn the_default_policy_promotes_a_fixed_hot_set() {
        for seed in 0..3 {
            for way in [Way::Damon, Way::Writes] {
                let ran = followed(Trace::Stays, way, COUNTS, 60, seed);
                assert!(
                    ran.fast_percent > ran.oracle_percent - 5.0,
                    "seed {seed}: {ran:?}"
                );
            }
        }
    }

    #[test]
    fn without_a_policy_nothing_moves() {
        let none = followed(Trace::Stays, Way::Damon, 3, 20, 1);
        assert_eq!((none.moved_mb_s, none.follow_s), (0.0, None));
        assert!(none.oracle_percent > 90.0, "{none:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let run = |seed| followed(Trace::Zipf, Way::Hints, 1, 10, seed);
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let kernel = || followed_by_kernel(Trace::Gups, 5, 7);
        assert_eq!(kernel(), kernel());
    }
}
