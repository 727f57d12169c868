//! The buffers of a thread.

use dray::model::World;
use dray_platform::{Cache, NodeId, PAGE_BYTES, Place};

use crate::buffers::{Buffers, Ring};
use crate::case::{Case, Location, Op};

/// As many buffers as a thread has operations in flight, each used again and again.
pub(super) fn buffers(world: &mut World, case: &Case, node: NodeId, count: u64) -> Buffers {
    let stride = u64::from(case.size.max(64)).next_multiple_of(match case.op {
        // Both destinations must be alike in address bits 11:0 (spec 8.3.8).
        Op::Dualcast => PAGE_BYTES,
        _ => 64,
    });
    let mut ring = |location: Location| {
        let cache = match location {
            Location::None | Location::Ram => Cache::Memory,
            // The device finds what a core's own cache holds where it finds the shared cache.
            Location::L1 | Location::L2 | Location::Llc => Cache::Llc,
        };
        let place = Place { node, cache };
        let region = world.memory.allocate(count * stride, place, false);
        Ring {
            base: world.memory.region(region).base,
            stride,
            count,
        }
    };
    Buffers {
        src: ring(case.in_mem),
        dst: ring(case.out_mem.location),
        dst2: ring(case.out_mem.location),
    }
}
