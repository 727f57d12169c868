//! Points that tell parameters apart.

use dray_experiment::Point;

use crate::FiguresError;
use crate::workload::Workload;

/// How many there are.
pub const PARAMETER_POINTS: usize = 67;

/// Operations that differ from each other in what they read and write, alone and pipelined, from memory and from the
/// cache, aligned and not, in batches and not.
///
/// # Errors
/// A word that is not in the vocabulary.
pub(crate) fn parameter_points() -> Result<Vec<(String, Workload)>, FiguresError> {
    let sync = Point::default().with("mode", "sync");
    let pipelined = Point::default().with("mode", "async");
    let mut points = vec![sync.with("op", "noop"), pipelined.with("op", "noop")];
    for wait in ["pause", "umwait"] {
        points.push(sync.with("op", "noop").with("wait", wait));
    }
    for batch in [2_u64, 8, 32] {
        points.push(pipelined.with("op", "noop").with("batch", batch));
    }
    for op in [
        "memmove", "fill", "compare", "compval", "crc", "copy_crc", "dualcast",
    ] {
        for size in [64_u64, 256, 4096, 64 << 10, 1 << 20] {
            points.push(sync.with("op", op).with("size", size));
        }
    }
    for op in ["memmove", "fill", "compare"] {
        for size in [256_u64, 1024, 4096, 64 << 10] {
            points.push(pipelined.with("op", op).with("size", size));
        }
        for size in [256_u64, 4096] {
            let batches = pipelined.with("op", op).with("batch", 32_u64);
            points.push(batches.with("size", size));
        }
    }
    for size in [64_u64, 1024, 4096] {
        let copy = sync.with("op", "memmove").with("size", size);
        points.push(copy.with("placement", "llc"));
    }
    for align in ["8", "32"] {
        for point in [&sync, &pipelined] {
            let copy = point.with("op", "memmove").with("size", 1024_u64);
            points.push(copy.with("dst_align", align));
        }
    }
    let named = |point: Point| Ok((point.to_string(), Workload::from_point(&point)?));
    points.into_iter().map(named).collect()
}
