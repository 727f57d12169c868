//! The back end in virtual time: a modelled program's memory, which moves as fast as the modelled machine
//! can.

use std::borrow::Cow;
use std::sync::Arc;

use super::program::{BASE_PAGES, STEP_S, UNIT};
use super::{Accesses, Copies, MigrationParameters, Pages, Pattern, System};
use crate::TierError;
use crate::back_end::BackEnd;
use crate::mechanism::{BLOCK_PAGES, Block};
use crate::policy::Room;
use crate::session::Reason;

/// Nanoseconds for a unit, by whether it is a huge page.
#[derive(Debug, Clone, Copy)]
struct UnitTimes {
    demote: [f64; 2],
    promote: [f64; 2],
}

/// A modelled program's memory on two tiers, by units of 2 MiB.
#[derive(Debug)]
pub struct ModelledMemory {
    fast_bytes: u64,
    huge_percent: u64,
    /// The kernel promotes in the threads of the program.
    by_program: bool,
    threads: u64,
    times: UnitTimes,
    pub(crate) blocks: Vec<(u64, Block)>,
    accesses: Arc<Accesses>,
    /// A bit for each unit in the fast tier, and how many there are.
    fast: Vec<u64>,
    fast_units: u64,
    /// Shares of the accesses that go to the fast tier, until a unit comes or moves, and to all units.
    fast_share: Option<f64>,
    share: f64,
    /// Time of this interval that the thread which demotes has left, in ns.
    left: f64,
    /// Time that the program's own threads spent on promotion in this interval, in ns.
    pub(super) own: f64,
    /// Bytes demoted and promoted since the start.
    pub(super) moved: [u64; 2],
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

impl ModelledMemory {
    /// Nothing is allocated yet. Copies down and up take what `copies` says; `accesses` are of the same
    /// pattern.
    pub fn new(
        pattern: Pattern,
        accesses: Arc<Accesses>,
        system: System,
        parameters: &MigrationParameters,
        copies: [&dyn Copies; 2],
    ) -> ModelledMemory {
        let units = pattern.bytes / UNIT;
        ModelledMemory {
            fast_bytes: pattern.fast_bytes,
            huge_percent: pattern.huge_percent,
            by_program: !matches!(system, System::UserCore | System::UserDsa),
            threads: pattern.threads,
            times: unit_times(system, parameters, copies[0], copies[1]),
            blocks: Vec::with_capacity(units as usize),
            accesses,
            fast: vec![0; units.div_ceil(64) as usize],
            fast_units: 0,
            fast_share: None,
            share: 0.0,
            left: 0.0,
            own: 0.0,
            moved: [0; 2],
        }
    }

    /// New units come to the fast tier while it has room.
    pub fn allocate(&mut self, until: u64) {
        let limit = self.fast_bytes / UNIT;
        for number in self.blocks.len() as u64..until {
            let fast = self.fast_units < limit;
            let block = Block {
                present: u64::MAX,
                slow: if fast { 0 } else { u64::MAX },
                huge: number * 61 % 100 < self.huge_percent,
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

    /// Share of the accesses to allocated memory that finds its page in the fast tier.
    pub(super) fn fast_part(&mut self) -> f64 {
        self.fast_share() / self.share.max(f64::MIN_POSITIVE)
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

    fn enter_move(&mut self, number: u64, demoted: bool, room: &Room) {
        let block = &mut self.blocks[number as usize].1;
        block.slow = if demoted { u64::MAX } else { 0 };
        block.enter_move(demoted, room.interval, room.ping_pong);
        self.place(number, !demoted);
        self.moved[usize::from(!demoted)] += UNIT;
    }

    fn time(&self, times: [f64; 2], number: u64) -> f64 {
        times[usize::from(self.blocks[number as usize].1.huge)]
    }

    /// One thread demotes.
    fn demote(&mut self, numbers: &[u64], room: &Room) {
        self.left = STEP_S * 1e9;
        for number in numbers {
            let time = self.time(self.times.demote, *number);
            if time > self.left {
                break;
            }
            self.left -= time;
            self.enter_move(*number, true, room);
        }
    }

    /// Promotion finds room or does not happen.
    fn promote(&mut self, numbers: &[u64], room: &Room) {
        let free = (self.fast_bytes / UNIT).saturating_sub(self.fast_units);
        let mut budget = match self.by_program {
            true => self.threads as f64 * STEP_S * 1e9,
            // The same thread promotes.
            false => self.left,
        };
        self.own = 0.0;
        for number in numbers.iter().take(free as usize) {
            let time = self.time(self.times.promote, *number);
            if time > budget {
                break;
            }
            budget -= time;
            self.own += if self.by_program { time } else { 0.0 };
            self.enter_move(*number, false, room);
        }
    }
}

impl BackEnd for ModelledMemory {
    fn name(&self) -> &'static str {
        "virtual time"
    }

    fn used(&self) -> [u64; 2] {
        let slow = self.blocks.len() as u64 - self.fast_units;
        [self.fast_units * BLOCK_PAGES, slow * BLOCK_PAGES]
    }

    fn units(&mut self) -> Cow<'_, [(u64, Block)]> {
        // A unit is a block here, huge or not.
        Cow::Borrowed(&self.blocks)
    }

    fn migrate(&mut self, reason: Reason, units: &[u64], room: &Room) -> Result<(), TierError> {
        match reason {
            Reason::Demotion => self.demote(units, room),
            Reason::NumaMisplaced => self.promote(units, room),
        }
        Ok(())
    }
}
