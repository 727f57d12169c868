//! By counts of accesses, and what of a difference is chance: a block takes the place of another if it was accessed more
//! often than that one by more than two equally hot blocks differ.

use super::{Plan, Policy, Room, fast, slow};
use crate::mechanism::Block;

/// Standard deviations of the difference of two counts, so that the extremes of thousands of blocks that are equally hot
/// do not change places.
const SURE: f64 = 5.0;
/// As often accessed, at least: a move pays for itself then.
const MORE: f64 = 1.5;

/// The most accessed blocks fill the fast tier.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts;

/// Whether one block is surely hotter than another: counts are those of a page, and a count's deviation is its root.
fn hotter(one: &Block, other: &Block) -> bool {
    let rate = |block: &Block| {
        let blocks = f64::from(1 + u16::from(block.others));
        let heat = f64::from(block.heat);
        (heat / blocks, heat / (blocks * blocks))
    };
    let ((one, by_one), (other, by_other)) = (rate(one), rate(other));
    one - other > SURE * (by_one + by_other).sqrt() && one > MORE * other
}

impl Policy for Counts {
    fn name(&self) -> &'static str {
        "counts"
    }

    fn decide(&mut self, blocks: &[(u64, Block)], room: &Room) -> Plan {
        let mut falling: Vec<&(u64, Block)> = blocks.iter().filter(|(_, b)| fast(b) > 0).collect();
        // The settled ones first; if those are not enough the others follow, for the fast tier must not overflow.
        falling.sort_unstable_by_key(|(number, b)| {
            (!room.settled(b), per_page(b), u16::MAX - b.idle, *number)
        });
        let mut rising: Vec<&(u64, Block)> = blocks
            .iter()
            .filter(|(_, b)| slow(b) > 0 && b.heat > 0 && room.settled(b))
            .collect();
        rising.sort_unstable_by_key(|(number, b)| (u32::MAX - per_page(b), *number));
        let mut plan = Plan::default();
        let (mut next, mut freed) = (0, 0);
        let shortage = room.shortage();
        while freed < shortage && next < falling.len() {
            freed += fast(&falling[next].1);
            plan.demote.push(falling[next].0);
            next += 1;
        }
        let mut free = (room.fast_limit + freed).saturating_sub(room.fast_used + room.keep_free);
        let mut promoted = 0;
        for (number, block) in rising {
            let pages = slow(block);
            // All that would have to go is colder, or nothing goes.
            let colder = |(_, other): &&&(u64, Block)| room.settled(other) && hotter(block, other);
            let (mut end, mut more) = (next, 0);
            while free + more < pages
                && let Some((_, other)) = falling.get(end).filter(colder)
            {
                more += fast(other);
                end += 1;
            }
            let fits = free + more >= pages && freed + more <= room.slow_room;
            if !fits || promoted + pages > room.promote {
                break;
            }
            plan.demote
                .extend(falling[next..end].iter().map(|(number, _)| *number));
            plan.promote.push(*number);
            next = end;
            freed += more;
            free = free + more - pages;
            promoted += pages;
        }
        plan
    }
}

/// Accesses to a block, or to one of a huge page.
fn per_page(block: &Block) -> u32 {
    block.heat / (1 + u32::from(block.others))
}
