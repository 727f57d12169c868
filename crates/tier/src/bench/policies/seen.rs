//! What each way of tracking sees of accesses, and what it costs: the rules of the trackers, in virtual time.
//!
//! Times are those measured for the trackers themselves, one percent of a core at most: a first write after a scan takes
//! 1.1 us; a scan of 1 GiB 0.68 ms, and 6.43 ms where all of it was written; a hint 3.2 us to put out, 16 us more if it
//! is touched; a look of DAMON at a region 3.5 us of a percent (1000 regions each 5 ms take 0.7 %).

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use serde::Serialize;

use super::memory::Memory;
use super::trace::BLOCKS;
use crate::mechanism::BLOCK_PAGES;
use crate::tracking::access;

/// Part of the accesses that write.
const WRITES: f64 = 0.3;
/// Nanoseconds that tracking gains each second, and that it keeps at most.
const BUDGET: f64 = 1e7;
const KEPT: f64 = 1e7;

/// Ways of tracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Writes by PAGEMAP_SCAN: the default inside of a program.
    Writes,
    /// Hints: single pages are out until they are touched.
    Hints,
    /// DAMON on virtual addresses: the default from outside.
    Damon,
}

/// All of them.
pub const WAYS: [Way; 3] = [Way::Damon, Way::Writes, Way::Hints];

impl Way {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Way::Writes => "writes",
            Way::Hints => "hints",
            Way::Damon => "damon",
        }
    }
}

/// A tracker.
#[derive(Debug)]
pub(super) struct Seen {
    way: Way,
    rng: ChaCha8Rng,
    credit: f64,
    /// Nanoseconds that tracking has taken.
    pub(super) cost: f64,
    /// Writes are looked for in a short window.
    short: bool,
    /// Seconds since the pages were last looked at.
    since: f64,
    /// Expected accesses to each page of a block since then.
    accesses: Vec<f64>,
    /// Blocks that have a hint out, and where the turn of each tier is.
    hints: Vec<usize>,
    cursor: [usize; 2],
    turned: [bool; 2],
}

impl Seen {
    pub(super) fn new(way: Way, rng: ChaCha8Rng) -> Seen {
        Seen {
            way,
            rng,
            credit: 0.0,
            cost: 0.0,
            short: false,
            since: 0.0,
            accesses: vec![0.0; BLOCKS],
            hints: Vec::new(),
            cursor: [0; 2],
            turned: [false; 2],
        }
    }

    /// One interval of `time` seconds in which pages are accessed at these rates.
    pub(super) fn step(&mut self, memory: &mut Memory, rates: &[f64], time: f64) {
        self.credit = (self.credit + BUDGET * time).min(KEPT);
        self.since += time;
        for (sum, rate) in self.accesses.iter_mut().zip(rates) {
            *sum += rate * time;
        }
        let cost = match self.way {
            Way::Hints => self.hints(memory),
            _ if self.credit <= 0.0 => 0.0,
            Way::Writes => self.writes(memory),
            Way::Damon => self.damon(memory),
        };
        self.credit -= cost;
        self.cost += cost;
    }

    fn drawn(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of `count` pages, or times, those with an access where each has `expected`.
    fn touched(&mut self, count: u32, expected: f64) -> u32 {
        let none = (-expected).exp();
        if none < 1e-9 {
            return count;
        }
        (0..count).map(|_| u32::from(self.drawn() >= none)).sum()
    }

    fn round(memory: &mut Memory) {
        for (_, block) in &mut memory.blocks {
            block.idle = block.idle.saturating_add(1);
            block.touched <<= 1;
        }
    }

    /// All pages that were written since the last time, or where those are many in 10 ms.
    fn writes(&mut self, memory: &mut Memory) -> f64 {
        const WINDOW_S: f64 = 0.01;
        Self::round(memory);
        let part = if self.short {
            WINDOW_S / self.since
        } else {
            1.0
        };
        let mut all = 0;
        for block in 0..BLOCKS {
            let expected = std::mem::take(&mut self.accesses[block]) * WRITES * part;
            let written = self.touched(BLOCK_PAGES as u32, expected);
            if written > 0 {
                access(&mut memory.blocks[block].1, written);
            }
            all += written;
        }
        self.since = 0.0;
        let pages = BLOCKS as f64 * BLOCK_PAGES as f64;
        let clean = 0.68e6 * pages / 262_144.0;
        let scan = clean + 5.75e6 * f64::from(all) / 262_144.0;
        // Before the window all is protected, which was written since, and afterwards nothing is.
        let more = if self.short {
            clean + 6.43e6 * pages / 262_144.0
        } else {
            0.0
        };
        let least = pages / if self.short { 64.0 } else { 4.0 };
        self.short = f64::from(all) > least;
        scan + more + 1100.0 * f64::from(all)
    }

    /// Twenty looks at a page of each block, 5 ms apart, in the time since the last aggregation.
    fn damon(&mut self, memory: &mut Memory) -> f64 {
        const LOOKS: u32 = 20;
        const LOOK_S: f64 = 0.005;
        if self.since < f64::from(LOOKS) * LOOK_S - 1e-9 {
            return 0.0;
        }
        Self::round(memory);
        for block in 0..BLOCKS {
            let rate = std::mem::take(&mut self.accesses[block]) / self.since;
            let seen = self.touched(LOOKS, rate * LOOK_S);
            if seen > 0 {
                access(&mut memory.blocks[block].1, seen);
            }
        }
        self.since = 0.0;
        BLOCKS as f64 * f64::from(LOOKS) * 35.0
    }

    /// Takes in the hints that are out, and puts others out, of blocks in turn.
    fn hints(&mut self, memory: &mut Memory) -> f64 {
        const HINT: f64 = 3200.0;
        const TOUCH: f64 = 16_000.0;
        const UNTOUCHED: u16 = 8;
        let mut cost = 0.0;
        for block in std::mem::take(&mut self.hints) {
            let expected = self.accesses[block];
            if self.touched(1, expected) > 0 {
                access(&mut memory.blocks[block].1, 8);
                cost += TOUCH;
            } else {
                let block = &mut memory.blocks[block].1;
                block.idle = block.idle.saturating_add(UNTOUCHED);
            }
        }
        self.accesses.fill(0.0);
        if self.turned == [true; 2] {
            self.turned = [false; 2];
            Self::round(memory);
        }
        let count = ((self.credit - cost) / (HINT + TOUCH)).clamp(0.0, 1024.0) as usize;
        for tier in [1, 0] {
            let wanted = count / 2;
            let mut chosen = Vec::new();
            let mut at = self.cursor[tier];
            while at < BLOCKS && chosen.len() < wanted {
                let block = &memory.blocks[at].1;
                let here = match tier {
                    1 => block.slow != 0,
                    _ => block.slow == 0 && block.idle > 1,
                };
                if here {
                    chosen.push(at);
                }
                at += 1;
            }
            self.turned[tier] |= at == BLOCKS && count > 0;
            self.cursor[tier] = at % BLOCKS;
            self.hints.extend(chosen);
        }
        cost + HINT * self.hints.len() as f64
    }
}
