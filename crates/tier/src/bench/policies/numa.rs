//! A model of the kernel's own tiering (`numa_balancing` 2, demotion): pages of the slow tier lose their access right in
//! turn, and one that is accessed soon afterwards is promoted by that access; pages that reclaim has not seen accessed
//! are demoted when room is short. One page at a time: no block of 64 moves together.
//!
//! From kernel/sched/fair.c and mm/vmscan.c of Linux 6.12: 256 MiB are scanned at once, the first time each second, then
//! each scan period between 1 and 60 s; the threshold for the time to the access is 1 s at first, and is adapted to the
//! rate limit.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::memory::FAST;
use super::trace::BLOCKS;
use crate::mechanism::BLOCK_PAGES;

/// Pages of the program.
const PAGES: usize = BLOCKS * BLOCK_PAGES as usize;
/// Seconds between two scans, and the longest time from a scan to an access that promotes.
const SCAN_S: f64 = 1.0;
const THRESHOLD_S: f64 = 1.0;
/// Pages that are free at least after reclaim: the promotion watermark, as much as `dray tier` keeps free.
const FREE: u64 = FAST * 200 / 10_000;
/// Nanoseconds of a fault, and of a page's promotion in the thread that accesses (compaction's path, with the copy).
const FAULT: f64 = 1500.0;
const MOVE: f64 = 2962.0;

/// The kernel's state of each page.
#[derive(Debug)]
pub(super) struct Numa {
    fast: Vec<bool>,
    /// Seconds since the page lost its access right; negative: it has it.
    armed: Vec<f64>,
    /// Accessed since reclaim has last looked.
    young: Vec<bool>,
    fast_pages: u64,
    demoted_at: Vec<f32>,
    hand: usize,
    since: f64,
    rng: ChaCha8Rng,
    pub(super) moved: u64,
    pub(super) back: u64,
    /// Nanoseconds that faults took.
    pub(super) cost: f64,
}

impl Numa {
    pub(super) fn new(rng: ChaCha8Rng) -> Numa {
        let most = (FAST - FREE) as usize;
        Numa {
            fast: (0..PAGES).map(|page| page < most).collect(),
            armed: vec![-1.0; PAGES],
            young: vec![true; PAGES],
            fast_pages: most as u64,
            demoted_at: vec![f32::NEG_INFINITY; PAGES],
            hand: 0,
            since: 0.0,
            rng,
            moved: 0,
            back: 0,
            cost: 0.0,
        }
    }

    /// Part of a block's pages that are in the fast tier.
    pub(super) fn fast_part(&self, block: usize) -> f64 {
        let pages = BLOCK_PAGES as usize;
        let all = &self.fast[block * pages..(block + 1) * pages];
        all.iter().filter(|fast| **fast).count() as f64 / pages as f64
    }

    fn drawn(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An interval from `at` in which pages are accessed at these rates.
    pub(super) fn step(&mut self, rates: &[f64], at: f64, time: f64) {
        self.since += time;
        if self.since >= SCAN_S {
            self.since = 0.0;
            for page in 0..PAGES {
                if !self.fast[page] {
                    self.armed[page] = 0.0;
                }
            }
        }
        let nones: Vec<f64> = rates.iter().map(|rate| (-rate * time).exp()).collect();
        for page in 0..PAGES {
            let none = nones[page / BLOCK_PAGES as usize];
            if none < 1.0 && self.drawn() >= none {
                self.young[page] = true;
                self.accessed(page, at);
            }
            if self.armed[page] >= 0.0 {
                self.armed[page] += time;
            }
        }
    }

    fn accessed(&mut self, page: usize, at: f64) {
        let armed = std::mem::replace(&mut self.armed[page], -1.0);
        if armed < 0.0 || self.fast[page] {
            return;
        }
        self.cost += FAULT;
        if armed > THRESHOLD_S {
            return;
        }
        if self.fast_pages >= FAST - FREE {
            self.reclaim(at);
        }
        self.fast[page] = true;
        self.fast_pages += 1;
        self.moved += 1;
        self.cost += MOVE;
        self.back += u64::from(at as f32 - self.demoted_at[page] < 8.0);
    }

    /// Demotes 64 pages that were not accessed since the last look at them; each look takes the mark away.
    fn reclaim(&mut self, at: f64) {
        let mut left = BLOCK_PAGES;
        while left > 0 {
            let page = self.hand;
            self.hand = (self.hand + 1) % PAGES;
            if !self.fast[page] || std::mem::take(&mut self.young[page]) {
                continue;
            }
            self.fast[page] = false;
            self.demoted_at[page] = at as f32;
            self.fast_pages -= 1;
            self.moved += 1;
            left -= 1;
        }
    }
}
