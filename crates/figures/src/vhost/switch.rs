//! One core of a virtual switch: bursts copied by the core itself, or handed to the device.

use std::cell::Cell;
use std::rc::Rc;

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_clock::{Duration, Time};
use dray_model::CoreTime;
use dray_platform::{LINE_BYTES, RecordedParameters};
use dray_workload::Buffers;

use crate::model::Window;
use crate::workload::Workload;

/// First-level data cache of a Golden Cove core, bytes (Intel 64 and IA-32 Architectures Optimization Reference Manual, 2.3).
const FIRST_CACHE: u64 = 48 << 10;

/// A lock that cores busy-wait for.
#[derive(Debug, Default)]
pub(super) struct Lock {
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
pub(super) struct Switch {
    buffers: Buffers,
    size: u32,
    burst: u32,
    pub(super) by_core: bool,
    /// Of the work queue, where cores share one.
    lock: Option<Rc<Lock>>,
    /// Core time to take the lock from another core.
    handover: Duration,
    /// Core time of a packet in one direction, the device's part excluded.
    turn: Duration,
    /// Core time of an asynchronous packet when it comes back.
    tracking: Duration,
    /// Parts of it in both directions, in nanoseconds.
    pub(super) forward: f64,
    pub(super) ring: f64,
    pub(super) copy: f64,
    phase: Phase,
    /// Packets of both directions that do not count, and then do.
    warm_up: u64,
    count: u64,
    taken: u64,
    finished: u64,
    began: Option<(Time, u64)>,
    ended: Option<(Time, u64)>,
    pub(super) failed: u64,
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
    pub(super) fn new(
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
    pub(super) fn rate(&self) -> f64 {
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

    /// Number of the switch within a run.
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

    use super::*;

    /// Small bursts fit the first-level cache whatever the size of their packets.
    #[test]
    fn a_burst_that_fits_the_cache_evicts_no_lines() {
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
}
