//! The buffers of a thread.

use dray_model::World;
use dray_platform::{Cache, MemoryLocation, NodeId};
use dray_workload::{Buffers, Location, Ring};

use crate::case::Case;

/// As many buffers as a thread has operations in flight, each used again and again.
pub(super) fn buffers(world: &mut World, case: &Case, node: NodeId, count: u64) -> Buffers {
    let shape = case.shape();
    let mut ring = |operand: usize, location: Location| {
        let len = u64::from(shape.operand(operand).max(64));
        let stride = len.next_multiple_of(shape.alignment());
        let cache = match location {
            Location::None | Location::Ram => Cache::Memory,
            // The device finds what a core's own cache holds where it finds the shared cache.
            Location::L1 | Location::L2 | Location::Llc => Cache::Llc,
        };
        let place = MemoryLocation { node, cache };
        let region = world.memory.allocate(count * stride, place, false);
        Ring {
            base: world.memory.region(region).base,
            stride,
            count,
        }
    };
    Buffers {
        src: ring(0, case.in_mem),
        dst: ring(1, case.out_mem.location),
        dst2: ring(2, case.out_mem.location),
    }
}
