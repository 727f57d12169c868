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

use std::cell::Cell;
use std::rc::Rc;

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_clock::{Duration, Time};
use dray_model::{CoreTime, Reads};
use dray_platform::{Cache, LINE_BYTES, RecordedParameters};
use dray_workload::Buffers;

use crate::model::{Model, Window, channel};
use crate::setup::Setup;
use crate::workload::Workload;
use crate::{FiguresError, Metric, Metrics};

/// Packets in flight at most: two rings of 256.
const PACKETS_IN_FLIGHT: u32 = 512;
/// First-level data cache of a Golden Cove core, bytes (Intel 64 and IA-32 Architectures Optimization Reference Manual, 2.3).
const FIRST_CACHE: u64 = 48 << 10;
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
    let mut setup = Setup::new(&model.platform, &model.profile, &w)?;
    let cores = w.tenants.cores();
    let queues = match switching.queues {
        Queues::Own => split(&mut setup, cores.div_ceil(w.tenants.devices.max(1)))?,
        Queues::Locked | Queues::Shared => vec![setup.wq],
    };
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

/// A lock that cores busy-wait for.
#[derive(Debug, Default)]
struct Lock {
    /// When it is free again, and which switch had it last.
    free: Cell<(Time, Option<usize>)>,
}

/// What a core does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Takes back packets whose copies have ended.
    Collect,
    /// Submits the copies of the next burst.
    Submit,
}

/// One core of the switch.
struct Switch {
    buffers: Buffers,
    size: u32,
    burst: u32,
    by_core: bool,
    /// Of the work queue, where cores share one.
    lock: Option<Rc<Lock>>,
    /// Core time to take the lock from another core.
    handover: Duration,
    /// Core time of a packet in one direction, the device's part excluded.
    turn: Duration,
    /// Core time of an asynchronous packet when it comes back.
    tracking: Duration,
    /// Parts of it in both directions, in nanoseconds.
    forward: f64,
    ring: f64,
    copy: f64,
    phase: Phase,
    /// Packets of both directions that do not count, and then do.
    warm_up: u64,
    count: u64,
    taken: u64,
    finished: u64,
    began: Option<(Time, u64)>,
    ended: Option<(Time, u64)>,
    failed: u64,
    operations: Vec<Operation>,
    completions: Vec<Completion>,
}

/// Bytes of the first-level cache that the copies of a burst drive out: none while its sources and destinations fit, all
/// from twice the cache's size on.
fn displaced(w: &Workload) -> u64 {
    let copied = 2 * u64::from(w.batch) * w.bytes();
    copied.saturating_sub(FIRST_CACHE).min(FIRST_CACHE)
}

impl Switch {
    fn new(
        p: &RecordedParameters,
        w: &Workload,
        buffers: Buffers,
        by_core: bool,
        lock: Option<Rc<Lock>>,
        window: Window,
    ) -> Switch {
        let copy = match by_core {
            true => p.cpu_call() + p.vhost_copy_line() * w.bytes().div_ceil(LINE_BYTES),
            false => Duration::ZERO,
        };
        let refetch = match by_core {
            true => Duration(p.vhost_refetch().0 * displaced(w) / FIRST_CACHE),
            false => Duration::ZERO,
        };
        let handover = match lock {
            Some(_) => p.vhost_lock(),
            None => Duration::ZERO,
        };
        let tracking = match by_core {
            true => Duration::ZERO,
            false => p.vhost_async(),
        };
        let bursts = match window {
            Window::Full | Window::Longer(_) => (64, 256),
            Window::Short => (32, 64),
            Window::Probe => (20, 32),
        };
        let burst = u64::from(w.batch);
        let both = |of: Duration| 2.0 * of.as_ns();
        Switch {
            buffers,
            size: w.size,
            burst: w.batch,
            by_core,
            lock,
            handover,
            turn: p.vhost_forward() + p.vhost_ring() + refetch + copy,
            tracking,
            forward: both(p.vhost_forward()),
            ring: both(p.vhost_ring() + refetch),
            copy: both(copy),
            phase: Phase::Collect,
            warm_up: bursts.0 * burst,
            count: bursts.1 * burst,
            taken: 0,
            finished: 0,
            began: None,
            ended: None,
            failed: 0,
            operations: Vec::new(),
            completions: vec![Completion::default(); w.batch as usize],
        }
    }

    /// Forwarded packets a nanosecond: each has gone through both directions.
    fn rate(&self) -> f64 {
        let (Some(began), Some(ended)) = (self.began, self.ended) else {
            return 0.0;
        };
        let packets = (ended.1 - began.1) as f64 / 2.0;
        packets / ended.0.since(began.0).as_ns().max(f64::MIN_POSITIVE)
    }

    fn note(&mut self, now: Time) {
        if self.began.is_none() && self.finished >= self.warm_up {
            self.began = Some((now, self.finished));
        }
        if self.ended.is_none() && self.finished >= self.warm_up + self.count {
            self.ended = Some((now, self.finished));
        }
    }

    /// Waits for the lock of the work queue, if there is one.
    fn lock<M: Mover>(&self, mover: &mut M) {
        let Some(lock) = &self.lock else { return };
        let (free, last) = lock.free.get();
        let now = mover.core_time();
        mover.spend(free.since(now.min(free)).0);
        if last != Some(self.identity()) {
            mover.spend(self.handover.0);
        }
    }

    fn unlock<M: Mover>(&self, mover: &mut M) {
        if let Some(lock) = &self.lock {
            lock.free.set((mover.core_time(), Some(self.identity())));
        }
    }

    /// Tells the switches of a run apart.
    fn identity(&self) -> usize {
        self.buffers.src.base as usize
    }

    /// Takes packets back whose copies have ended.
    fn collect<M: Mover>(&mut self, mover: &mut M) {
        self.lock(mover);
        let count = mover.poll(&mut self.completions);
        self.unlock(mover);
        for completion in &self.completions[..count] {
            self.failed += u64::from(!completion.status().is_success());
        }
        mover.spend(self.tracking.0 * count as u64);
        self.finished += count as u64;
    }

    /// The copies of the next burst, to the cache.
    fn prepare(&mut self) {
        self.operations.clear();
        for packet in self.taken..self.taken + u64::from(self.burst) {
            let (src, dst) = (&self.buffers.src, &self.buffers.dst);
            let at = |base: u64, stride: u64, count: u64| base + packet % count * stride;
            let from = at(src.base, src.stride, src.count);
            let to = at(dst.base, dst.stride, dst.count);
            let copy = Operation::memmove(from, to, self.size);
            self.operations.push(copy.with_cache_control());
        }
    }

    /// Submits the next burst, if there is room for it.
    fn submit<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.prepare();
        self.lock(mover);
        let taken = match self.operations.as_slice() {
            // SAFETY: modelled memory checks itself.
            [one] => unsafe { mover.enqueue(one) }.is_ok(),
            // SAFETY: as above.
            all => unsafe { mover.enqueue_batch(all) }.is_ok(),
        };
        let submitted = mover.submit();
        self.unlock(mover);
        if taken {
            let burst = u64::from(self.burst);
            self.taken += burst;
            mover.spend(self.turn.0 * burst);
        }
        match submitted {
            Progress::Done if !taken => Next::Wait,
            _ => Next::Again,
        }
    }
}

impl Application for Switch {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        if self.by_core {
            let burst = u64::from(self.burst);
            mover.spend(self.turn.0 * burst);
            self.finished += burst;
            self.note(mover.core_time());
            return match self.ended {
                Some(_) => Next::Done,
                None => Next::Again,
            };
        }
        match self.phase {
            Phase::Collect => {
                self.collect(mover);
                self.note(mover.core_time());
                self.phase = Phase::Submit;
                match self.ended {
                    Some(_) => Next::Done,
                    None => Next::Again,
                }
            }
            Phase::Submit => {
                self.phase = Phase::Collect;
                self.submit(mover)
            }
        }
    }
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
    fn what_is_published_of_the_switch_holds_together() {
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

    /// Small bursts fit the first-level cache whatever the size of their packets.
    #[test]
    fn a_burst_that_fits_the_cache_drives_nothing_out() {
        let of = |batch: u64, size: u64| {
            let point = Point::default()
                .with("kind", "vhost")
                .with("copier", "core")
                .with("batch", batch)
                .with("size", size);
            displaced(&Workload::from_point(&point).unwrap())
        };
        assert_eq!((of(16, 1514), of(32, 512), of(32, 768)), (0, 0, 0));
        assert_eq!(of(32, 1024), 2 * 32 * 1024 - FIRST_CACHE);
        assert_eq!(of(64, 1514), FIRST_CACHE);
    }

    #[test]
    fn a_core_that_copies_is_the_sum_of_its_parts() {
        let found = at(1518, "core");
        let of = |metric| found.get(metric).unwrap();
        let parts = of(Metric::Forward) + of(Metric::Ring) + of(Metric::Copy);
        assert!((parts / of(Metric::Period) - 1.0).abs() < 1e-3);
        assert!((of(Metric::PacketRate) * of(Metric::Period) / 1e3 - 1.0).abs() < 1e-6);
    }

    /// The last line of 1514 bytes is written in part: in memory it would hold the engines up.
    #[test]
    fn parts_of_lines_cost_nothing_in_the_cache() {
        let (whole, part) = (rate(1536 + 4, "dsa"), rate(1518, "dsa"));
        assert!((whole / part - 1.0).abs() < 0.02, "{whole} {part}");
    }

    #[test]
    fn a_lock_costs_and_queues_of_their_own_do_not() {
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
