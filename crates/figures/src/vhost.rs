//! A virtual switch in modelled time: one core between a network port and a guest, as testpmd's
//! macfwd, whose packets the core copies or the device ("Intel DSA accelerates DPDK Vhost").
//!
//! A packet that is forwarded goes through both directions: to the guest and back. Each direction
//! costs the core the port and the switching, the ring, and the copy: made by the core, or prepared,
//! submitted and accounted for. The switch is offered as many packets as it takes, and loses none.
//!
//! Where packets lie: DPDK's buffers begin them on a cache line, on the host (the headroom is 128
//! bytes) as in the guest (the header of virtio stands before it), so that the last line alone is
//! written in part. Copies go to the cache: vhost asks for it (`RTE_DMA_OP_FLAG_LLC`), and DPDK's
//! driver sets cache control in every descriptor. A line that is written in part holds nothing up there.

use std::rc::Rc;

use dray_idxd::Profile;
use dray_model::Reads;
use dray_platform::{Cache, PlatformFile};

use crate::model::{Model, Window, channel};
use crate::setup::Setup;
use crate::workload::Workload;
use crate::{FiguresError, Metric, Metrics};

mod switch;

use switch::{Lock, Switch};

/// Packets in flight at most: two rings of 256.
const PACKETS_IN_FLIGHT: u32 = 512;
/// Bytes of a frame that the network port takes off: its check sequence (IEEE 802.3, 3.2.9).
const FRAME_CHECK: u32 = 4;

/// Which work queues the cores of a switch submit to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Queues {
    /// A dedicated one for each core.
    Own,
    /// One dedicated queue for all, under a lock: DPDK's DMA devices are for one thread at a time.
    Locked,
    /// One shared queue for all, by ENQCMD.
    Shared,
}

/// A virtual switch: who copies what, and by which queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Switching {
    /// The core copies all packets.
    pub(crate) by_core: bool,
    /// The core copies packets below this.
    pub(crate) threshold: u32,
    /// Which work queues the cores submit to.
    pub(crate) queues: Queues,
}

impl Switching {
    /// Whether the core copies packets of so many bytes.
    pub(crate) fn copied_by_core(&self, size: u32) -> bool {
        self.by_core || size < self.threshold
    }
}

/// Bursts that a core has in flight, of `most` that its work queue holds.
pub(crate) fn bursts_in_flight(w: &Workload, most: u32) -> u32 {
    (PACKETS_IN_FLIGHT / w.batch).clamp(1, most.max(1))
}

/// Runs a point.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn run(
    model: &Model,
    w: &Workload,
    switching: Switching,
    window: Window,
) -> Result<Metrics, FiguresError> {
    let run = || run_for(model, w, switching, window);
    model.known.of(model, w, window, run)
}

fn run_for(
    model: &Model,
    w: &Workload,
    switching: Switching,
    window: Window,
) -> Result<(Metrics, Reads), FiguresError> {
    let by_core = switching.copied_by_core(w.size);
    let (w, setup, queues) = arranged(&model.platform, &model.profile, w, switching)?;
    let cores = w.tenants.cores();
    let lock = match switching.queues {
        Queues::Locked if cores > 1 => Some(Rc::new(Lock::default())),
        _ => None,
    };
    let mut world = model.world(&setup)?;
    let mut switches = Vec::new();
    for core in 0..cores {
        let (device, of) = (
            core % w.tenants.devices.max(1),
            core / w.tenants.devices.max(1),
        );
        let queue = queues[usize::from(of) % queues.len()];
        let options = channel(&w, Some((device, queue)), setup.depth);
        let slots = u64::from(options.depth * options.batch);
        world.open(options).ok_or(FiguresError::NoWorkQueue)?;
        let buffers = model.buffers(&mut world, &w, slots)?;
        switches.push(Switch::new(
            world.parameters(),
            &w,
            buffers,
            by_core,
            lock.clone(),
            window,
        ));
    }
    world.run(&mut switches)?;
    if let Some(failed) = switches.iter().map(|s| s.failed).max().filter(|n| *n > 0) {
        return Err(FiguresError::Failed { operations: failed });
    }
    Ok((metrics(&w, &switches), world.reads()))
}

/// What the switches of a point run on: each of them as a workload, the devices, and the work queues.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn arranged(
    platform: &PlatformFile,
    profile: &Profile,
    w: &Workload,
    switching: Switching,
) -> Result<(Workload, Setup, Vec<u16>), FiguresError> {
    let w = Workload {
        size: w.size.saturating_sub(FRAME_CHECK).max(1),
        cache: Cache::Llc,
        cache_control: true,
        shared: match switching.queues {
            Queues::Own => w.shared,
            Queues::Locked => Some(false),
            Queues::Shared => Some(true),
        },
        ..*w
    };
    let mut setup = Setup::new(platform, profile, &w)?;
    let cores = w.tenants.cores();
    let queues = match switching.queues {
        Queues::Own => split(&mut setup, cores.div_ceil(w.tenants.devices.max(1)))?,
        Queues::Locked | Queues::Shared => vec![setup.wq],
    };
    Ok((w, setup, queues))
}

/// Makes so many queues of the first one of each device, of equal parts of its entries.
fn split(setup: &mut Setup, count: u16) -> Result<Vec<u16>, FiguresError> {
    let mut ids = vec![setup.wq];
    for device in &mut setup.devices {
        let Some(first) = device.work_queues.first().cloned() else {
            return Err(FiguresError::NoWorkQueue);
        };
        let used: Vec<u16> = device.work_queues.iter().map(|q| q.id).collect();
        let free = (0..device.capabilities.max_work_queues).filter(|id| !used.contains(id));
        let more: Vec<u16> = free.take(usize::from(count) - 1).collect();
        if more.len() + 1 < usize::from(count) {
            return Err(FiguresError::NoSecondTenant { what: "work queue" });
        }
        let size = first.size / count;
        if u32::from(size) < setup.depth {
            return Err(FiguresError::Limit {
                what: "depth",
                value: setup.depth.into(),
                limit: size.into(),
                field: "size",
            });
        }
        device.work_queues[0].size = size;
        for id in &more {
            let mut queue = first.clone();
            (queue.id, queue.size) = (*id, size);
            device.work_queues.push(queue);
        }
        ids.truncate(1);
        ids.extend(more);
    }
    Ok(ids)
}

fn metrics(w: &Workload, switches: &[Switch]) -> Metrics {
    let rate: f64 = switches.iter().map(Switch::rate).sum();
    let count = switches.len() as f64;
    let mean = |of: fn(&Switch) -> f64| switches.iter().map(of).sum::<f64>() / count;
    let (forward, ring, copy) = (mean(|s| s.forward), mean(|s| s.ring), mean(|s| s.copy));
    // What a core needs for a packet in both directions; the rest of it went to the device.
    let period = mean(|s| 1.0 / s.rate().max(f64::MIN_POSITIVE));
    let offload = match switches.iter().all(|s| s.by_core) {
        true => 0.0,
        false => (period - forward - ring - copy).max(0.0),
    };
    Metrics::default()
        .with(Metric::PacketRate, 1e3 * rate)
        .with(Metric::Period, period)
        .with(Metric::Throughput, rate * w.bytes() as f64)
        .with(Metric::Forward, forward)
        .with(Metric::Ring, ring)
        .with(Metric::Copy, copy)
        .with(Metric::Offload, offload)
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_idxd::Profile;

    use super::*;

    fn at(size: u64, copier: &str) -> Metrics {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("4e1w-d").unwrap());
        let point = Point::default()
            .with("kind", "vhost")
            .with("copier", copier)
            .with("batch", 32)
            .with("engines", 4)
            .with("size", size);
        model.run(&Workload::from_point(&point).unwrap()).unwrap()
    }

    fn rate(size: u64, copier: &str) -> f64 {
        at(size, copier).get(Metric::PacketRate).unwrap()
    }

    #[test]
    fn with_the_device_the_rate_does_not_depend_on_the_size() {
        let rates: Vec<f64> = [64, 256, 512, 1518].map(|size| rate(size, "dsa")).into();
        for rate in &rates {
            assert!((rate / rates[0] - 1.0).abs() < 0.05, "{rates:?}");
        }
    }

    #[test]
    fn small_packets_are_faster_by_the_core_and_large_ones_by_the_device() {
        assert!(rate(64, "core") > rate(64, "dsa"));
        assert!(rate(1518, "core") < rate(1518, "dsa"));
    }

    /// The article's statements, which the guessed parameters are set to meet together.
    #[test]
    fn gains_over_the_core_are_those_of_the_article() {
        let gain = |size| rate(size, "dsa") / rate(size, "core");
        for size in [64, 128, 256] {
            assert!(gain(size) < 1.0, "{size}: {}", gain(size));
        }
        for (size, published) in [(512, 1.14), (1518, 2.29)] {
            assert!(
                (gain(size) / published - 1.0).abs() < 0.03,
                "{}",
                gain(size)
            );
        }
        let found = at(1518, "core");
        let share = found.get(Metric::Copy).unwrap() / found.get(Metric::Period).unwrap();
        assert!((share - 0.59).abs() < 0.01, "{share}");
    }

    #[test]
    fn the_period_of_a_copying_core_is_the_sum_of_its_parts() {
        let found = at(1518, "core");
        let of = |metric| found.get(metric).unwrap();
        let parts = of(Metric::Forward) + of(Metric::Ring) + of(Metric::Copy);
        assert!((parts / of(Metric::Period) - 1.0).abs() < 1e-3);
        assert!((of(Metric::PacketRate) * of(Metric::Period) / 1e3 - 1.0).abs() < 1e-6);
    }

    /// The last line of 1514 bytes is written in part: in memory it would hold the engines up.
    #[test]
    fn partial_lines_cost_no_time_in_the_cache() {
        let (whole, part) = (rate(1536 + 4, "dsa"), rate(1518, "dsa"));
        assert!((whole / part - 1.0).abs() < 0.02, "{whole} {part}");
    }

    #[test]
    fn a_shared_queue_with_a_lock_is_slower_than_own_queues() {
        let all = |queues: &str, cores: u64| {
            let platform = dray_platform::builtin("spr-2s").unwrap();
            let model = Model::new(platform, Profile::named("4e1w-d").unwrap());
            let point = Point::default()
                .with("kind", "vhost")
                .with("batch", 32)
                .with("queues", queues)
                .with("cores", cores)
                .with("size", 64);
            let w = Workload::from_point(&point).unwrap();
            model.run(&w).unwrap().get(Metric::PacketRate).unwrap()
        };
        assert!((all("own", 1) / all("locked", 1) - 1.0).abs() < 1e-6);
        assert!(all("own", 2) > 1.9 * all("own", 1));
        assert!(all("locked", 8) < 0.8 * all("own", 8));
        assert!(all("shared", 8) > all("locked", 8));
    }

    #[test]
    fn more_queues_than_a_device_has_are_refused() {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("4e1w-d").unwrap());
        let point = Point::default()
            .with("kind", "vhost")
            .with("cores", 16)
            .with("depth", 1);
        let error = model
            .run(&Workload::from_point(&point).unwrap())
            .unwrap_err();
        assert!(error.to_string().contains("work queue"), "{error}");
    }
}
