//! Memory of a program in virtual time: blocks, their tiers, and what a page's move takes.

use std::borrow::Cow;

use super::trace::BLOCKS;
use crate::TierError;
use crate::back_end::{BackEnd, Limits};
use crate::mechanism::{BLOCK, BLOCK_PAGES, Block};
use crate::policy::Room;
use crate::session::Reason;
use crate::sys::PAGE;

/// Pages that the fast tier holds: 32 MiB.
pub(super) const FAST: u64 = (32 << 20) / PAGE;
/// Pages of it that are to be free, as by the knob's default.
const KEEP_FREE: u64 = FAST * 200 / 10_000;

/// Blocks in two tiers.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) blocks: Vec<(u64, Block)>,
    /// Pages that moved.
    pub(super) moved: u64,
    /// Blocks that came back soon after a demotion.
    pub(super) back: u64,
}

impl Memory {
    /// The first blocks by address are in the fast tier, until it is full.
    pub(super) fn new() -> Memory {
        let present = Block {
            present: u64::MAX,
            ..Block::default()
        };
        let block = |number: u64| {
            let fast = (number + 1) * BLOCK_PAGES + KEEP_FREE <= FAST;
            let slow = if fast { 0 } else { u64::MAX };
            (number, Block { slow, ..present })
        };
        Memory {
            blocks: (0..BLOCKS as u64).map(block).collect(),
            moved: 0,
            back: 0,
        }
    }

    /// What an interval may use, by the knobs' defaults and so many intervals a second.
    pub(super) fn limits(intervals: u32) -> Limits {
        Limits {
            fast: FAST,
            keep_free: KEEP_FREE.max(BLOCK / PAGE),
            slow: u64::MAX,
            promote: 65_536 * 1_000_000 / PAGE / u64::from(intervals),
            ping_pong: 2 * intervals,
            cooling: 2 * intervals,
        }
    }

    pub(super) fn is_fast(&self, block: usize) -> bool {
        self.blocks[block].1.slow == 0
    }

    pub(super) fn cool(&mut self) {
        for (_, block) in &mut self.blocks {
            block.heat /= 2;
        }
    }
}

impl BackEnd for Memory {
    fn name(&self) -> &'static str {
        "virtual time"
    }

    fn used(&self) -> [u64; 2] {
        let slow = self.blocks.iter().filter(|(_, block)| block.slow != 0);
        let slow = slow.count() as u64;
        [BLOCKS as u64 - slow, slow].map(|blocks| blocks * BLOCK_PAGES)
    }

    fn units(&mut self) -> Cow<'_, [(u64, Block)]> {
        Cow::Borrowed(&self.blocks)
    }

    fn migrate(&mut self, reason: Reason, units: &[u64], room: &Room) -> Result<(), TierError> {
        let demoted = reason == Reason::Demotion;
        let mut free = (FAST - self.used()[0]) / BLOCK_PAGES;
        for number in units {
            if !demoted && free == 0 {
                break;
            }
            free -= u64::from(!demoted);
            let block = &mut self.blocks[*number as usize].1;
            block.slow = if demoted { u64::MAX } else { 0 };
            let back = block.enter_move(demoted, room.interval, room.ping_pong);
            self.back += u64::from(back);
            self.moved += BLOCK_PAGES;
        }
        debug_assert!(self.used()[0] <= FAST, "the fast tier holds no more");
        Ok(())
    }
}
