//! As MEMTIS does (Lee et al., SOSP 2023), without its split of huge pages: a histogram of access
//! counts says from which count on blocks fill the fast tier; counts are halved at times. A block makes
//! room only if something at least two bins hotter waits: counts of neighbouring bins say little of which of two
//! blocks is hotter.

use super::{Plan, Policy, Room, exchange, fast, slow};
use crate::mechanism::Block;

/// Bins by log2 of the access count.
const BINS: usize = 16;

/// The access histogram, sized to the fast tier.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memtis {
    threshold: usize,
}

fn bin(block: &Block) -> usize {
    (block.heat.checked_ilog2().map_or(0, |log| log + 1) as usize).min(BINS - 1)
}

impl Memtis {
    /// The first bin of what is hot: all from it on fit the fast tier.
    fn adapt(&mut self, blocks: &[(u64, Block)], room: &Room) {
        let mut pages = [0u64; BINS];
        for (_, block) in blocks {
            pages[bin(block)] += fast(block) + slow(block);
        }
        let most = room.fast_limit.saturating_sub(room.keep_free);
        let mut sum = 0;
        self.threshold = BINS;
        for index in (1..BINS).rev() {
            sum += pages[index];
            if sum > most {
                break;
            }
            self.threshold = index;
        }
    }
}

impl Policy for Memtis {
    fn name(&self) -> &'static str {
        "memtis"
    }

    fn cools_by_samples(&self) -> bool {
        true
    }

    fn decide(&mut self, blocks: &[(u64, Block)], room: &Room) -> Plan {
        self.adapt(blocks, room);
        let threshold = self.threshold;
        let hot: Vec<_> = blocks
            .iter()
            .filter(|(_, block)| slow(block) > 0 && bin(block) >= threshold)
            .collect();
        let hottest = hot.iter().map(|(_, block)| bin(block)).max().unwrap_or(0);
        exchange(
            blocks,
            room,
            &hot,
            |block| u32::MAX - block.heat,
            |block| (block.heat, u16::MAX - block.idle),
            |block| bin(block) < threshold && bin(block) + 2 <= hottest,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::ROOM;

    fn with_heat(number: u64, heat: u32, slow: bool) -> (u64, Block) {
        let block = Block {
            present: u64::MAX,
            slow: if slow { u64::MAX } else { 0 },
            heat,
            ..Block::default()
        };
        (number, block)
    }

    #[test]
    fn hot_blocks_replace_idle_blocks_and_not_warm_ones() {
        let room = Room {
            fast_limit: 64 * 4,
            fast_used: 64 * 3,
            ..ROOM
        };
        // Nothing is between the hot ones and those in the fast tier.
        let decide = |fast: u32, slow: u32| {
            let mut blocks: Vec<_> = (0..3).map(|n| with_heat(n, fast, false)).collect();
            blocks.extend((3..5).map(|n| with_heat(n, slow, true)));
            Memtis::default().decide(&blocks, &room)
        };
        assert_eq!(decide(0, 8).promote, [3, 4]);
        assert_eq!(decide(0, 2).promote, [3, 4]);
        assert_eq!(decide(8, 32).promote, [3, 4]);
        assert_eq!(decide(8, 16), Plan::default());
        assert_eq!(decide(16, 8), Plan::default());
    }

    #[test]
    fn the_threshold_is_the_heat_of_the_blocks_that_fit() {
        let blocks: Vec<(u64, Block)> = (0..8)
            .map(|n| {
                let block = Block {
                    present: u64::MAX,
                    heat: 1 << n,
                    ..Block::default()
                };
                (n, block)
            })
            .collect();
        let mut policy = Memtis::default();
        let room = Room {
            fast_limit: 64 * 3,
            ..super::super::tests::ROOM
        };
        // Three blocks less 64 pages to keep free: two fit, those with bins 8 and 7.
        policy.adapt(&blocks, &room);
        assert_eq!(policy.threshold, 7);
        let room = Room {
            fast_limit: 1 << 20,
            ..room
        };
        policy.adapt(&blocks, &room);
        assert_eq!(policy.threshold, 1);
    }
}
