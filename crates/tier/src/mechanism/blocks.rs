//! What is known of the pages of managed memory, by blocks of 64.
//!
//! A block is 256 KiB, aligned: one machine word holds a bit of each of its pages.

use std::collections::BTreeMap;

use crate::sys::PAGE;

/// Pages of a block.
pub const BLOCK_PAGES: u64 = 64;
/// Bytes of a block.
pub const BLOCK: u64 = BLOCK_PAGES * PAGE;

/// Number of the block that an address lies in.
pub fn block_of(address: u64) -> u64 {
    address / BLOCK
}

/// One block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Block {
    /// Pages on frames of the slow tier.
    pub slow: u64,
    /// Pages that the program has asked to drop and that have not been missing since.
    pub dropping: u64,
    /// Pages that migration has written, so that the next scan for writes counts them in vain.
    pub fresh: u64,
    /// Pages that a scan has protected from unseen writes.
    pub protected: u64,
    /// Pages that were present at the last scan.
    pub present: u64,
    /// It is mapped by a huge page.
    pub huge: bool,
    /// Other blocks that it stands for, in what a policy is shown: those of its huge page.
    pub others: u8,
    /// One bit for each of the last rounds of the tracker, in which it looks at every block: accessed or not, the newest
    /// lowest.
    pub touched: u16,
    /// Rounds since the last access that was seen.
    pub idle: u16,
    /// Accesses seen, halved at each cooling.
    pub heat: u32,
    /// Interval of its last migration; 0 is never.
    pub moved_at: u32,
    /// It was demoted then.
    pub demoted: bool,
    /// How often it was promoted soon after a demotion.
    pub ping_pongs: u8,
}

impl Block {
    /// Enters that it has moved in an interval; whether it came back soon after a demotion, within four times
    /// `soon` intervals.
    pub fn enter_move(&mut self, demoted: bool, interval: u32, soon: u32) -> bool {
        let lately = interval.saturating_sub(self.moved_at) < soon.saturating_mul(4);
        let back = !demoted && self.demoted && self.moved_at != 0 && lately;
        self.ping_pongs = self.ping_pongs.saturating_add(u8::from(back));
        self.moved_at = interval.max(1);
        self.demoted = demoted;
        back
    }
}

/// Bits of the pages of block `number` in `start..end`.
pub(crate) fn mask(number: u64, start: u64, end: u64) -> u64 {
    let base = number * BLOCK;
    let first = start.saturating_sub(base) / PAGE;
    let last = end.saturating_sub(base).div_ceil(PAGE).min(BLOCK_PAGES);
    if first >= last {
        return 0;
    }
    let below = |count: u64| match count {
        64 => u64::MAX,
        count => (1 << count) - 1,
    };
    below(last) & !below(first)
}

/// The blocks by number.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) map: BTreeMap<u64, Block>,
    slow_pages: u64,
}

impl Blocks {
    /// Pages on frames of the slow tier.
    pub(crate) fn slow_pages(&self) -> u64 {
        self.slow_pages
    }

    /// Changes what is known of a block's pages.
    pub(crate) fn change(&mut self, number: u64, change: impl FnOnce(&mut Block)) {
        let block = self.map.entry(number).or_default();
        let before = u64::from(block.slow.count_ones());
        change(block);
        let after = u64::from(block.slow.count_ones());
        self.slow_pages = self.slow_pages + after - before;
    }

    /// Changes the blocks of a range, each with the bits of its pages in it.
    pub(crate) fn change_range(
        &mut self,
        start: u64,
        end: u64,
        mut change: impl FnMut(&mut Block, u64),
    ) {
        let mut at = start;
        while at < end {
            let number = block_of(at);
            self.change(number, |block| change(block, mask(number, start, end)));
            at = (number + 1) * BLOCK;
        }
    }

    /// As [`Blocks::change_range`], but for blocks of which nothing is known: most of what a program
    /// reserves it never uses.
    pub(crate) fn change_known(
        &mut self,
        start: u64,
        end: u64,
        mut change: impl FnMut(&mut Block, u64),
    ) {
        let (mut less, mut more) = (0, 0);
        for (number, block) in self.map.range_mut(block_of(start)..=block_of(end - 1)) {
            less += u64::from(block.slow.count_ones());
            change(block, mask(*number, start, end));
            more += u64::from(block.slow.count_ones());
        }
        self.slow_pages = self.slow_pages + more - less;
    }

    /// Forgets the pages of a range.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        let numbers: Vec<u64> = self
            .map
            .range(block_of(start)..=block_of(end - 1))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            let gone = mask(number, start, end);
            if gone == u64::MAX {
                self.change(number, |block| block.slow = 0);
                self.map.remove(&number);
            } else {
                self.change(number, |block| {
                    block.slow &= !gone;
                    block.dropping &= !gone;
                    block.fresh &= !gone;
                    block.present &= !gone;
                });
            }
        }
    }

    /// Pages have moved to other addresses (mremap).
    pub(crate) fn shift(&mut self, from: u64, to: u64, len: u64) {
        let numbers = block_of(from)..=block_of(from + len - 1);
        let old: Vec<(u64, Block)> = self
            .map
            .range(numbers)
            .map(|(number, block)| (*number, *block))
            .collect();
        self.forget(from, from + len);
        for (number, block) in old {
            let ours = mask(number, from, from + len);
            for page in (0..BLOCK_PAGES).filter(|page| ours >> page & 1 != 0) {
                let bit = |bits: u64| bits >> page & 1;
                let address = (number * BLOCK + page * PAGE) - from + to;
                let place = (address % BLOCK) / PAGE;
                self.change(block_of(address), |new| {
                    new.slow |= bit(block.slow) << place;
                    new.dropping |= bit(block.dropping) << place;
                    new.fresh |= bit(block.fresh) << place;
                    new.present |= bit(block.present) << place;
                    new.heat = new.heat.max(block.heat);
                    new.touched |= block.touched;
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_the_pages_of_a_range() {
        assert_eq!(mask(0, 0, BLOCK), u64::MAX);
        assert_eq!(mask(0, PAGE, 3 * PAGE), 0b110);
        assert_eq!(mask(1, 0, BLOCK + PAGE), 1);
        assert_eq!(mask(1, 0, BLOCK), 0);
        assert_eq!(mask(0, 63 * PAGE, 2 * BLOCK), 1 << 63);
    }

    #[test]
    fn pages_keep_their_tier_when_their_mapping_moves() {
        let mut blocks = Blocks::default();
        blocks.change_range(10 * PAGE, 70 * PAGE, |block, pages| block.slow |= pages);
        assert_eq!(blocks.slow_pages(), 60);
        blocks.shift(20 * PAGE, 1000 * PAGE, 50 * PAGE);
        assert_eq!(blocks.slow_pages(), 60);
        assert_eq!(blocks.map[&0].slow, mask(0, 10 * PAGE, 20 * PAGE));
        blocks.forget(0, 1020 * PAGE);
        assert_eq!(blocks.slow_pages(), 30);
        blocks.forget(1020 * PAGE, 1100 * PAGE);
        assert_eq!(blocks.slow_pages(), 0);
    }
}
