//! What copies take between two tiers.

use dray_platform::Distance;
use dray_tier::modelled::{CopyTimes, Linear};
use dray_workload::Op;

use super::{HUGE, Tiers};
use crate::model::{Model, Window};
use crate::tenants::Tenants;
use crate::workload::{What, Workload};
use crate::{FiguresError, Layout, List, Metric};

/// Pages of a batch on one device, by which the time of a further page is known.
const BATCH: u32 = 64;

/// What copies take between the tiers of a workload.
pub(super) fn copies(
    model: &Model,
    w: &Workload,
    promotes: bool,
    window: Window,
) -> Result<CopyTimes, FiguresError> {
    let tiers = Tiers {
        promotes,
        ..w.tiers
    };
    let nodes = tiers.nodes().unwrap_or(w.nodes);
    // These are parts of a sum: what a longer window changes in them is less than its guesses do.
    let window = match window {
        Window::Full | Window::Longer(_) => Window::Short,
        other => other,
    };
    let workload = Workload {
        nodes,
        what: What::Offload,
        tiers: Tiers {
            slow: None,
            ..Tiers::default()
        },
        ..*w
    };
    copy_times(model, &workload, nodes, window)
}

fn copy_times(
    model: &Model,
    w: &Workload,
    nodes: [Distance; 2],
    window: Window,
) -> Result<CopyTimes, FiguresError> {
    let time = |what: What, layout: Layout, pages: u32, depth: Option<u32>| {
        let tenants = match what {
            What::Software => Tenants::ALONE,
            _ => w.tenants,
        };
        let list = List {
            pages,
            layout,
            channels: None,
        };
        let workload = list.fill(Workload {
            what,
            op: Op::Move,
            nodes,
            depth,
            kernel: what == What::Software,
            tenants,
            ..*w
        });
        let metrics = model.run_for(&workload, window)?;
        Ok::<f64, FiguresError>(metrics.get(Metric::List).unwrap_or_default())
    };
    let devices = model.profile.devices()?;
    let queue = devices
        .first()
        .and_then(|device| device.work_queues.first());
    let batch = queue
        .map_or(1, |queue| queue.max_batch_size)
        .clamp(1, BATCH);
    let many = batch * u32::from(w.tenants.devices.max(1));
    let core = |layout, pages| time(What::Software, layout, pages, Some(1));
    let device = |layout, pages, depth| time(What::Offload, layout, pages, depth);
    let same = |each: f64| Linear { first: each, each };
    let one = device(Layout::Scattered, 1, Some(1))?;
    let all = device(Layout::Scattered, many, Some(1))?;
    Ok(CopyTimes {
        core_base: same(core(Layout::Scattered, 32)? / 32.0),
        core_huge: same(core(Layout::Contiguous, HUGE)?),
        device_base: Linear {
            first: one,
            each: (all - one).max(0.0) / f64::from(many.max(2) - 1),
        },
        device_huge: Linear {
            first: device(Layout::Contiguous, HUGE, Some(1))?,
            // The queue kept full: one behind the other.
            each: device(Layout::Contiguous, HUGE, None)?,
        },
        ceiling: ceiling(model, nodes),
    })
}

/// Bytes a nanosecond between two nodes, for any number of cores.
fn ceiling(model: &Model, nodes: [Distance; 2]) -> f64 {
    let p = model.platform.parameters();
    let rate = |femtoseconds: u64| 64e6 / femtoseconds.max(1) as f64;
    let side = |node: Distance, near: u64, cxl: u64| match node {
        Distance::Local => rate(near),
        Distance::Remote => rate(p.socket_link),
        Distance::Cxl => rate(cxl),
    };
    side(nodes[0], p.node_read, p.cxl_read).min(side(nodes[1], p.node_write, p.cxl_write))
}
