//! Least recently used: the baseline.

use super::{Plan, Policy, Room, exchange, slow};
use crate::mechanism::Block;

/// The longest untouched goes down, whatever is touched comes up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lru;

impl Policy for Lru {
    fn name(&self) -> &'static str {
        "lru"
    }

    fn decide(&mut self, blocks: &[(u64, Block)], room: &Room) -> Plan {
        let touched: Vec<_> = blocks
            .iter()
            .filter(|(_, block)| slow(block) > 0 && block.touched & 1 != 0)
            .collect();
        exchange(
            blocks,
            room,
            &touched,
            |block| block.idle,
            |block| u16::MAX - block.idle,
            |block| block.idle > 0,
        )
    }
}
