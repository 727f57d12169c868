//! Nothing moves.

use super::{Plan, Policy, Room};
use crate::mechanism::Block;

/// Counts and moves nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPolicy;

impl Policy for NoPolicy {
    fn name(&self) -> &'static str {
        "none"
    }

    fn decide(&mut self, _: &[(u64, Block)], _: &Room) -> Plan {
        Plan::default()
    }
}
