//! As TPP does (Maruf et al., ASPLOS 2023): demote from the cold end before room runs out, promote on
//! the second touch.

use super::{Plan, Policy, Room, exchange, slow};
use crate::mechanism::Block;

/// Watermarks, and promotion on the second touch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tpp;

/// Rounds of the tracker in which the second touch must come.
const WINDOW: u16 = 0x00ff;
/// Rounds without a touch after which a block may make room for another.
const COLD: u16 = 8;

impl Policy for Tpp {
    fn name(&self) -> &'static str {
        "tpp"
    }

    fn decide(&mut self, blocks: &[(u64, Block)], room: &Room) -> Plan {
        let twice = |block: &Block| (block.touched & WINDOW).count_ones() >= 2;
        let hot: Vec<_> = blocks
            .iter()
            .filter(|(_, block)| slow(block) > 0 && twice(block))
            .collect();
        exchange(
            blocks,
            room,
            &hot,
            |block| u32::MAX - block.heat,
            |block| (u16::MAX - block.idle, block.heat),
            |block| block.idle >= COLD,
        )
    }
}
