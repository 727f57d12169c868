//! The narrowest resource on the way of a workload: no throughput can be above it.

use dray_platform::{Distance, LINE_BYTES, PlatformFile};
use dray_workload::Op;

use crate::workload::Workload;

/// What rounding of times to picoseconds, and a window that ends within a batch, may add.
const SLACK: f64 = 1.002;

/// Lines read and written for each line of payload.
fn directions(op: Op) -> (f64, f64) {
    match op {
        Op::Nop => (0.0, 0.0),
        Op::Fill | Op::NtFill | Op::CacheFlush => (0.0, 1.0),
        Op::Compare | Op::CreateDelta => (2.0, 0.0),
        Op::ComparePattern | Op::Crc | Op::DifCheck | Op::DixGenerate => (1.0, 0.0),
        Op::Dualcast => (1.0, 2.0),
        _ => (1.0, 1.0),
    }
}

/// Most payload that the devices of a workload can move, in 1e9 bytes a second, by their ports
/// and by the memory that they use.
pub(crate) fn ceiling(w: &Workload, platform: &PlatformFile) -> f64 {
    let p = platform.parameters();
    let (reads, writes) = directions(w.op);
    // Femtoseconds a line become 1e9 bytes a second.
    let rate = |fs: u64, lines: f64| match lines > 0.0 && fs > 0 {
        true => LINE_BYTES as f64 * 1e6 / fs as f64 / lines,
        false => f64::INFINITY,
    };
    let devices = f64::from(w.tenants.devices.max(1));
    let ports = devices * rate(p.port_read, reads).min(rate(p.port_write, writes));
    let memory = |distance: Distance, read: u64, write: u64| {
        let from = if w.nodes[0] == distance { reads } else { 0.0 };
        let to = if w.nodes[1] == distance { writes } else { 0.0 };
        rate(read, from).min(rate(write, to))
    };
    let cxl = memory(Distance::Cxl, p.cxl_read, p.cxl_write);
    let local = memory(Distance::Local, p.node_read, p.node_write);
    ports.min(cxl).min(local) * SLACK
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    fn of(names: &[(&str, &str)]) -> f64 {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let point = names
            .iter()
            .fold(Point::default(), |p, (name, value)| p.with(name, *value));
        let w = Workload::from_point(&point).unwrap();
        ceiling(&w, &platform) / SLACK
    }

    #[test]
    fn the_ceiling_is_the_lower_rate_of_ports_and_memory() {
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-3, "{a} {b}");
        near(of(&[("op", "memmove")]), 31.7);
        near(of(&[("op", "fill")]), 31.76);
        near(of(&[("op", "compare")]), 15.85);
        near(of(&[("op", "memmove"), ("dst_node", "cxl")]), 17.0);
        assert_eq!(of(&[("op", "noop")]), f64::INFINITY);
    }
}
