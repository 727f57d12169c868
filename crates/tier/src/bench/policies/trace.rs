//! Accesses of programs, as rates of blocks: what each policy is put to.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use serde::Serialize;

use crate::mechanism::{BLOCK, BLOCK_PAGES};

/// Blocks of the program: 256 MiB.
pub(super) const BLOCKS: usize = (256 << 20) / BLOCK as usize;
/// Blocks of its hot set: 16 MiB.
const HOT: usize = (16 << 20) / BLOCK as usize;
/// Accesses a second: a core's, to random pages (`hot2`, 21.2 million).
const RATE: f64 = 20e6;
/// Seconds after which the set moves, and that a scan of all memory takes.
pub(super) const STAYS_S: f64 = 30.0;
const SCAN_S: f64 = 10.0;

/// Accesses over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trace {
    /// Nine of ten accesses go to 16 of 256 MiB, the others anywhere.
    Stays,
    /// The same, and the 16 MiB are others each 30 s.
    Moves,
    /// A Zipf law with exponent 0.99 over the blocks.
    Zipf,
    /// Random updates of all memory: no block is better than another.
    Gups,
    /// Half of the accesses go to 16 MiB, half to a scan of all memory each 10 s.
    Scan,
}

/// All of them.
pub const TRACES: [Trace; 5] = [
    Trace::Stays,
    Trace::Moves,
    Trace::Zipf,
    Trace::Gups,
    Trace::Scan,
];

impl Trace {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Trace::Stays => "stays",
            Trace::Moves => "moves",
            Trace::Zipf => "zipf",
            Trace::Gups => "gups",
            Trace::Scan => "scan",
        }
    }
}

/// A trace whose blocks lie anywhere.
#[derive(Debug)]
pub(super) struct Layout {
    trace: Trace,
    /// The block of each rank, anew each time that the set moves.
    order: Vec<u32>,
    rng: ChaCha8Rng,
    part: u64,
}

impl Layout {
    pub(super) fn new(trace: Trace, rng: ChaCha8Rng) -> Layout {
        let mut layout = Layout {
            trace,
            order: (0..BLOCKS as u32).collect(),
            rng,
            part: 0,
        };
        layout.shuffle();
        layout
    }

    fn shuffle(&mut self) {
        for last in (1..self.order.len()).rev() {
            let other = self.rng.next_u64() % (last as u64 + 1);
            self.order.swap(last, other as usize);
        }
    }

    /// The same over all the time in which the set stays: a scan is everywhere.
    pub(super) fn mean_rates(&self, rates: &[f64], mean: &mut [f64]) {
        mean.copy_from_slice(rates);
        if self.trace == Trace::Scan {
            mean.fill(RATE * 0.5 / (BLOCKS as f64 * BLOCK_PAGES as f64));
            for block in &self.order[..HOT] {
                mean[*block as usize] += RATE * 0.5 / (HOT as f64 * BLOCK_PAGES as f64);
            }
        }
    }

    /// Accesses a second to each page of each block, from `at` for `time` seconds; whether the set has moved.
    pub(super) fn rates(&mut self, at: f64, time: f64, rates: &mut [f64]) -> bool {
        let part = (at / STAYS_S) as u64;
        let moves = self.trace == Trace::Moves && part != self.part;
        if moves {
            self.shuffle();
            self.part = part;
        }
        let pages = BLOCK_PAGES as f64;
        let anywhere = |share: f64| RATE * share / (BLOCKS as f64 * pages);
        let hot = |share: f64| RATE * share / (HOT as f64 * pages);
        match self.trace {
            Trace::Stays | Trace::Moves => {
                rates.fill(anywhere(0.1));
                for block in &self.order[..HOT] {
                    rates[*block as usize] += hot(0.9);
                }
            }
            Trace::Gups => rates.fill(anywhere(1.0)),
            Trace::Zipf => {
                let weight = |rank: usize| (rank as f64 + 1.0).powf(-0.99);
                let sum: f64 = (0..BLOCKS).map(weight).sum();
                for (rank, block) in self.order.iter().enumerate() {
                    rates[*block as usize] = RATE * weight(rank) / sum / pages;
                }
            }
            Trace::Scan => {
                rates.fill(0.0);
                for block in &self.order[..HOT] {
                    rates[*block as usize] += hot(0.5);
                }
                // By address: the blocks that it passes in this time.
                let blocks = BLOCKS as f64 * time / SCAN_S;
                let first = (at / SCAN_S).fract() * BLOCKS as f64;
                for number in 0..blocks.ceil() as usize {
                    let block = (first as usize + number) % BLOCKS;
                    rates[block] += RATE * 0.5 / (blocks.ceil() * pages);
                }
            }
        }
        moves
    }
}
