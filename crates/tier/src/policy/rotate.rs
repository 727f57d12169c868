//! Blocks in turn, at a rate: to measure what migration costs a program.

use super::{Plan, Policy, Room, fast, slow};
use crate::mechanism::Block;

/// Half of what may be promoted goes down, half comes up, each block when its turn has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rotate {
    /// The next block of the fast and of the slow tier.
    next: [u64; 2],
    /// Pages that were to move and have not yet: a block is many.
    due: u64,
}

impl Policy for Rotate {
    fn name(&self) -> &'static str {
        "rotate"
    }

    fn decide(&mut self, blocks: &[(u64, Block)], room: &Room) -> Plan {
        self.due += room.promote / 2;
        let demote = self.turn(0, blocks, fast, room.slow_room);
        let free = room.fast_limit.saturating_sub(room.fast_used);
        let promote = self.turn(1, blocks, slow, free);
        let pages = |numbers: &[u64], pages: fn(&Block) -> u64| -> u64 {
            let found = numbers.iter().filter_map(|number| {
                let index = blocks.binary_search_by_key(number, |(number, _)| *number);
                index.ok().map(|index| pages(&blocks[index].1))
            });
            found.sum()
        };
        let moved = pages(&demote, fast).max(pages(&promote, slow));
        self.due = self.due.saturating_sub(moved);
        if moved == 0 {
            // Nothing can move: that is not made up for.
            self.due = self.due.min(room.promote);
        }
        Plan { demote, promote }
    }
}

impl Rotate {
    /// The next blocks of a tier until their pages are as many as are due.
    fn turn(
        &mut self,
        tier: usize,
        blocks: &[(u64, Block)],
        pages: fn(&Block) -> u64,
        most: u64,
    ) -> Vec<u64> {
        let start = blocks.partition_point(|(number, _)| *number < self.next[tier]);
        let (before, after) = blocks.split_at(start);
        let (mut chosen, mut sum) = (Vec::new(), 0);
        for (number, block) in after.iter().chain(before) {
            let count = pages(block);
            if count == 0 {
                continue;
            }
            if sum + count > self.due || sum + count > most {
                break;
            }
            sum += count;
            chosen.push(*number);
            self.next[tier] = number + 1;
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_rotate_in_turn_at_the_rate_limit() {
        let blocks: Vec<(u64, Block)> = (0..8)
            .map(|number| {
                let block = Block {
                    present: u64::MAX,
                    slow: if number < 4 { u64::MAX } else { 0 },
                    ..Block::default()
                };
                (number, block)
            })
            .collect();
        let mut policy = Rotate::default();
        let room = Room {
            fast_limit: 1000,
            fast_used: 256,
            promote: 128,
            ..super::super::tests::ROOM
        };
        let mut turns = Vec::new();
        for _ in 0..5 {
            let plan = policy.decide(&blocks, &room);
            turns.push((plan.demote, plan.promote));
        }
        let expected = [(4, 0), (5, 1), (6, 2), (7, 3), (4, 0)].map(|(d, p)| (vec![d], vec![p]));
        assert_eq!(turns, expected);
        let none = Room { promote: 0, ..room };
        assert_eq!(policy.decide(&blocks, &none), Plan::default());
    }
}
