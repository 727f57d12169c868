//! Which blocks go to which tier.

mod counts;
mod lru;
mod memtis;
mod none;
mod rotate;
mod tpp;

pub use counts::Counts;
pub use lru::Lru;
pub use memtis::Memtis;
pub use none::NoPolicy;
pub use rotate::Rotate;
pub use tpp::Tpp;

use crate::mechanism::{BLOCK, BLOCK_PAGES, Block};
use crate::sys::HUGE;

/// Names of the policies, by their index.
pub const POLICIES: [&str; 6] = ["tpp", "memtis", "lru", "none", "rotate", "counts"];

/// A policy by its index in [`POLICIES`].
pub fn by_index(index: usize) -> Box<dyn Policy> {
    match POLICIES.get(index) {
        Some(&"tpp") => Box::new(Tpp),
        Some(&"memtis") => Box::new(Memtis::default()),
        Some(&"lru") => Box::new(Lru),
        Some(&"counts") => Box::new(Counts),
        Some(&"rotate") => Box::new(Rotate::default()),
        _ => Box::new(NoPolicy),
    }
}

/// Whether a policy decides by accesses. Those that do not move pages blindly, or none.
pub fn needs_accesses(index: usize) -> bool {
    matches!(
        POLICIES.get(index),
        Some(&("tpp" | "memtis" | "lru" | "counts"))
    )
}

/// What a policy has to do with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Pages that the fast tier holds at most.
    pub fast_limit: u64,
    /// Pages that it holds.
    pub fast_used: u64,
    /// Pages that are to be free there.
    pub keep_free: u64,
    /// Pages that the slow tier has room for.
    pub slow_room: u64,
    /// Pages that may be promoted now.
    pub promote: u64,
    /// Number of this interval.
    pub interval: u32,
    /// Intervals in which a block that moved does not move back.
    pub ping_pong: u32,
    /// Intervals from one cooling to the next.
    pub cooling: u32,
}

impl Room {
    /// Pages to demote for `keep_free` of them to be free.
    pub fn shortage(&self) -> u64 {
        (self.fast_used + self.keep_free)
            .saturating_sub(self.fast_limit)
            .min(self.slow_room)
    }

    /// Whether a block may move the other way than it last did. One that went back and forth waits
    /// twice as long each time.
    pub fn settled(&self, block: &Block) -> bool {
        let wait = u64::from(self.ping_pong) << block.ping_pongs.min(8);
        block.moved_at == 0 || u64::from(self.interval.saturating_sub(block.moved_at)) >= wait
    }
}

/// Blocks to move, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// To the slow tier.
    pub demote: Vec<u64>,
    /// To the fast tier.
    pub promote: Vec<u64>,
}

/// Decides which blocks move.
pub trait Policy: Send {
    /// As on the command line.
    fn name(&self) -> &'static str;

    /// Whether counts of accesses are halved after so many samples; otherwise after so much time.
    fn cools_by_samples(&self) -> bool {
        false
    }

    /// Decides, once an interval. `blocks` are in the order of their numbers.
    fn decide(&mut self, blocks: &[(u64, Block)], room: &Room) -> Plan;
}

/// Pages of a block in the fast tier.
pub(crate) fn fast(block: &Block) -> u64 {
    u64::from((block.present & !block.slow).count_ones()) * (1 + u64::from(block.others))
}

/// Pages of a block in the slow tier.
pub(crate) fn slow(block: &Block) -> u64 {
    u64::from((block.present & block.slow).count_ones()) * (1 + u64::from(block.others))
}

/// What a policy decides on: the blocks of a huge page, which move together, as one. It has the number
/// of the first of them, their accesses together, and their last migration.
pub(crate) fn units(blocks: &[(u64, Block)]) -> Vec<(u64, Block)> {
    const BLOCKS: u64 = HUGE / BLOCK;
    let mut units: Vec<(u64, Block)> = Vec::with_capacity(blocks.len());
    for (number, block) in blocks {
        if !block.huge {
            units.push((*number, *block));
            continue;
        }
        let first = number / BLOCKS * BLOCKS;
        let unit = match units.last_mut() {
            Some((before, unit)) if *before == first && unit.others > 0 => unit,
            _ => {
                let unit = Block {
                    others: BLOCKS as u8 - 1,
                    present: u64::MAX,
                    ..*block
                };
                units.push((first, unit));
                continue;
            }
        };
        unit.slow |= block.slow;
        unit.touched |= block.touched;
        unit.idle = unit.idle.min(block.idle);
        unit.heat = unit.heat.saturating_add(block.heat);
        unit.ping_pongs = unit.ping_pongs.max(block.ping_pongs);
        if block.moved_at > unit.moved_at {
            (unit.moved_at, unit.demoted) = (block.moved_at, block.demoted);
        }
    }
    for (_, unit) in &mut units {
        if unit.others > 0 && unit.slow != 0 {
            unit.slow = u64::MAX;
        }
    }
    units
}

/// A block that may move: by what it is put in order, its number, its pages.
type Candidate<K> = (K, u64, u64);

/// The first blocks in order of key and number, as many as have `wanted` pages together, or all; they are in
/// order, the others behind them are not.
fn first_of<K: Ord + Copy>(candidates: &mut [Candidate<K>], wanted: u64) -> &[Candidate<K>] {
    let key = |candidate: &Candidate<K>| (candidate.0, candidate.1);
    // Few of many are wanted, mostly: only those are put in order.
    let mut count = wanted.div_ceil(BLOCK_PAGES).max(1);
    while count < candidates.len() as u64 {
        candidates.select_nth_unstable_by_key(count as usize, key);
        let chosen = &candidates[..count as usize];
        if chosen.iter().map(|(_, _, pages)| pages).sum::<u64>() >= wanted {
            break;
        }
        count = count.saturating_mul(2);
    }
    let end = count.min(candidates.len() as u64) as usize;
    candidates[..end].sort_unstable_by_key(key);
    &candidates[..end]
}

/// What one pass over all blocks finds of those in the fast tier.
struct FastTier<K> {
    /// Blocks to demote, the settled ones first: if those are not enough the others follow, for the fast
    /// tier must not overflow.
    candidates: Vec<Candidate<(bool, K)>>,
    /// Pages of settled blocks that may make room for others.
    cold_pages: u64,
}

impl<K: Ord + Copy> FastTier<K> {
    fn of(
        blocks: &[(u64, Block)],
        room: &Room,
        coldness: impl Fn(&Block) -> K,
        cold: impl Fn(&Block) -> bool,
    ) -> FastTier<K> {
        let mut tier = FastTier {
            candidates: Vec::with_capacity(blocks.len()),
            cold_pages: 0,
        };
        for (number, block) in blocks {
            let pages = fast(block);
            if pages == 0 {
                continue;
            }
            let settled = room.settled(block);
            if settled && cold(block) {
                tier.cold_pages += pages;
            }
            let key = (!settled, coldness(block));
            tier.candidates.push((key, *number, pages));
        }
        tier
    }

    /// Blocks to demote for so many pages to be free.
    fn demote(&mut self, room: &Room, wanted: u64) -> Vec<u64> {
        let wanted = wanted.min(room.slow_room);
        let (mut chosen, mut sum) = (Vec::new(), 0);
        if wanted > 0 {
            for (_, number, pages) in first_of(&mut self.candidates, wanted) {
                if sum >= wanted {
                    break;
                }
                sum += pages;
                chosen.push(*number);
            }
        }
        chosen
    }
}

/// Promotes the hottest of some blocks, by `hotness`, and demotes colder blocks beyond the shortage to make room for
/// them. The least `hotness` is the hottest, the least `coldness` the coldest.
pub(crate) fn exchange<H: Ord + Copy, C: Ord + Copy>(
    blocks: &[(u64, Block)],
    room: &Room,
    promote: &[&(u64, Block)],
    hotness: impl Fn(&Block) -> H,
    coldness: impl Fn(&Block) -> C,
    cold: impl Fn(&Block) -> bool,
) -> Plan {
    let shortage = room.shortage();
    let mut rising: Vec<Candidate<H>> = promote
        .iter()
        .filter(|(_, block)| room.settled(block))
        .map(|(number, block)| (hotness(block), *number, slow(block)))
        .collect();
    if rising.is_empty() && shortage == 0 {
        return Plan::default();
    }
    let mut tier = FastTier::of(blocks, room, coldness, cold);
    let free = room
        .fast_limit
        .saturating_sub(room.fast_used + room.keep_free);
    // No more comes up than there is room for, or that something colder leaves.
    let most = (free + tier.cold_pages.min(room.slow_room)).saturating_sub(shortage);
    let (mut up, mut sum) = (Vec::new(), 0);
    if room.promote > 0 && most > 0 {
        for (_, number, pages) in first_of(&mut rising, room.promote.min(most)) {
            if sum >= room.promote || sum + pages > most {
                break;
            }
            sum += pages;
            up.push(*number);
        }
    }
    Plan {
        demote: tier.demote(room, shortage + sum.saturating_sub(free)),
        promote: up,
    }
}

/// Pages of all blocks, for tests and figures.
pub fn capacity(blocks: u64) -> u64 {
    blocks * BLOCK_PAGES
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const ROOM: Room = Room {
        fast_limit: 640,
        fast_used: 0,
        keep_free: 64,
        slow_room: u64::MAX,
        promote: u64::MAX,
        interval: 100,
        ping_pong: 10,
        cooling: 20,
    };

    fn block(slow: bool, touched: u16, idle: u16, heat: u32) -> Block {
        Block {
            present: u64::MAX,
            slow: if slow { u64::MAX } else { 0 },
            touched,
            idle,
            heat,
            ..Block::default()
        }
    }

    /// Ten fast blocks, of which the first is coldest, and two slow ones, of which the first is hot.
    fn blocks() -> Vec<(u64, Block)> {
        let mut blocks: Vec<(u64, Block)> = (0..10u16)
            .map(|n| (u64::from(n), block(false, 0b1, 20 - n, u32::from(n))))
            .collect();
        blocks.push((10, block(true, 0b111, 0, 100)));
        blocks.push((11, block(true, 0, 30, 0)));
        blocks
    }

    #[test]
    fn every_policy_but_none_demotes_the_coldest_to_make_room() {
        for (index, name) in POLICIES.iter().enumerate() {
            let mut policy = by_index(index);
            assert_eq!(policy.name(), *name);
            let room = Room {
                fast_used: 640,
                promote: 0,
                ..ROOM
            };
            let plan = policy.decide(&blocks(), &room);
            let expected: &[u64] = match policy.name() {
                "none" => &[],
                // It keeps no order of its own.
                "rotate" => continue,
                _ => &[0],
            };
            assert_eq!(plan.demote, expected, "{}", policy.name());
            assert_eq!(plan.promote, [] as [u64; 0]);
        }
    }

    #[test]
    fn a_hot_block_is_promoted_and_a_cold_one_demoted() {
        for (index, name) in POLICIES.iter().enumerate().take(3) {
            let mut policy = by_index(index);
            let room = Room {
                fast_used: 640 - 64,
                ..ROOM
            };
            let plan = policy.decide(&blocks(), &room);
            assert_eq!(plan.promote, [10], "{name}");
            assert_eq!(plan.demote, [0], "{name}");
        }
    }

    #[test]
    fn blocks_that_moved_recently_do_not_move() {
        let mut moved = blocks();
        moved[10].1.moved_at = 95;
        moved[0].1.moved_at = 95;
        for (index, name) in POLICIES.iter().enumerate().take(3) {
            let room = Room {
                fast_used: 640,
                ..ROOM
            };
            let plan = by_index(index).decide(&moved, &room);
            assert_eq!(plan.promote, [] as [u64; 0], "{}", name);
            assert_eq!(plan.demote, [1], "{}", name);
        }
    }

    #[test]
    fn a_full_slow_tier_stops_all_moves() {
        let room = Room {
            fast_used: 640,
            slow_room: 0,
            ..ROOM
        };
        for (index, name) in POLICIES.iter().enumerate().take(3) {
            let plan = by_index(index).decide(&blocks(), &room);
            assert_eq!(plan, Plan::default(), "{}", name);
        }
    }

    #[test]
    fn a_huge_page_is_one_unit() {
        let mut all: Vec<(u64, Block)> = (3..24)
            .map(|number| (number, block(number >= 16, 0, 9, 1)))
            .collect();
        for (number, block) in &mut all {
            block.huge = *number >= 8;
        }
        // One of its eight blocks is touched.
        all[20].1.idle = 0;
        all[20].1.touched = 0b11;
        all[20].1.heat = 50;
        let units = units(&all);
        let numbers: Vec<u64> = units.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [3, 4, 5, 6, 7, 8, 16]);
        let [.., (_, cold), (_, hot)] = &units[..] else {
            panic!("two huge pages");
        };
        assert_eq!((fast(cold), slow(cold), cold.idle), (512, 0, 9));
        assert_eq!((fast(hot), slow(hot), hot.idle, hot.heat), (0, 512, 0, 57));
        // The hot one comes up whole, and the cold one goes for it: nothing smaller is as cold.
        let room = Room {
            fast_limit: 5 * 64 + 512 + 64,
            fast_used: 5 * 64 + 512,
            ..ROOM
        };
        for (index, name) in POLICIES.iter().enumerate().take(2) {
            let plan = by_index(index).decide(&units, &room);
            assert_eq!(plan.promote, [16], "{name}");
            let down: u64 = plan
                .demote
                .iter()
                .map(|n| match n {
                    8 => 512,
                    _ => 64,
                })
                .sum();
            assert!(plan.demote.contains(&8) && down >= 512, "{name}: {plan:?}");
        }
    }

    #[test]
    fn the_rate_limit_bounds_promotion() {
        let mut many = blocks();
        many[11].1 = block(true, 0b111, 0, 90);
        let room = Room {
            promote: 64,
            ..ROOM
        };
        for (index, name) in POLICIES.iter().enumerate().take(3) {
            let plan = by_index(index).decide(&many, &room);
            assert_eq!(plan.promote, [10], "{}", name);
        }
    }
}
