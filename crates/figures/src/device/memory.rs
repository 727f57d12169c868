//! Where the buffers of each thread lie.

use dray_platform::Cache;
use dray_workload::{Buffers, Op, Ring};

use super::streams;
use crate::workload::Workload;

/// Memory for all buffers of a point together, on each node that one of them is on.
pub(super) const ARENA_BYTES: usize = 384 << 20;
/// Buffers are laid on pages: the two destinations of a dualcast must be alike in bits 11:0.
const PAGE: usize = 4096;

/// Whether each thread of a point has room for one operation at least.
pub(super) fn has_room(w: &Workload) -> bool {
    let neighbour = w.tenants.neighbour.map_or(0, |neighbour| neighbour.size);
    let largest = w.largest().max(neighbour.into());
    largest + 2 * PAGE as u64 <= part(streams::count(&w.tenants).into()) as u64
}

/// Bytes for one operand of one thread of so many.
fn part(threads: usize) -> usize {
    (ARENA_BYTES / 3 / threads.max(1)) & !(PAGE - 1)
}

/// Rings for thread `thread` of so many, that take equal parts of the arena; data that is to be in a cache
/// is used again. The arenas begin at `from` and `to`, which may be one.
pub(super) fn buffers(
    w: &Workload,
    outstanding: u64,
    [from, to]: [u64; 2],
    [thread, threads]: [usize; 2],
) -> Buffers {
    let offset = (w.dst_align % 64) as usize;
    let stride = (w.largest().max(64) as usize).next_multiple_of(match w.op {
        Op::Dualcast => PAGE,
        _ => 64,
    });
    let part = part(threads);
    let most = ((part - PAGE) / stride).max(1) as u64;
    let cached = w.hot || w.cache == Cache::Llc;
    let count = match cached {
        true => outstanding.min(most),
        false => most,
    };
    let ring = |start: u64, index: usize, offset: usize| Ring {
        base: start + ((3 * thread + index) * part + offset) as u64,
        stride: stride as u64,
        count,
    };
    Buffers {
        src: ring(from, 0, 0),
        dst: ring(to, 1, offset),
        dst2: ring(to, 2, offset),
    }
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    #[test]
    fn buffers_of_threads_do_not_overlap() {
        let point = Point::default().with("size", 1 << 20).with("dst_align", 8);
        let w = Workload::from_point(&point).unwrap();
        for threads in [1, 2, 3, 8] {
            let mut end = 0;
            for thread in 0..threads {
                let found = buffers(&w, 128, [0, 0], [thread, threads]);
                for ring in [found.src, found.dst, found.dst2] {
                    assert!(ring.base >= end, "{thread} of {threads}");
                    end = ring.base + ring.stride * ring.count;
                }
            }
            assert!(end <= ARENA_BYTES as u64);
        }
    }
}
