//! A closed loop of operations: as many outstanding as there are slots, each ended one replaced.

use std::cell::Cell;
use std::rc::Rc;

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_clock::{Duration, Time};
use dray_model::CoreTime;
use dray_spec::Status;

use crate::workload::{Op, Workload};

/// Buffers that operations use in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    /// First address.
    pub(crate) base: u64,
    /// Distance of two buffers.
    pub(crate) stride: u64,
    /// Number of buffers.
    pub(crate) count: u64,
}

impl Ring {
    fn at(&self, index: u64) -> u64 {
        self.base + index % self.count * self.stride
    }
}

/// Source, destination and second destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffers {
    /// Sources.
    pub(crate) src: Ring,
    /// Destinations; the second source of a compare.
    pub(crate) dst: Ring,
    /// Second destinations of dualcast.
    pub dst2: Ring,
}

/// Pattern of fills and pattern comparisons.
pub(crate) const PATTERN: u64 = 0x5aa5_c33c_9669_f00f;

/// The operation of a workload on the buffers number `index`.
pub(crate) fn operation(w: &Workload, buffers: &Buffers, index: u64) -> Operation {
    let (src, dst) = (buffers.src.at(index), buffers.dst.at(index));
    let size = w.list.map_or(w.size, |list| list.size_of(w, index));
    let operation = match w.op {
        Op::Noop => Operation::noop(),
        Op::Memmove => Operation::memmove(src, dst, size),
        Op::Fill | Op::NtFill => Operation::fill(PATTERN, dst, size),
        Op::Compare => Operation::compare(src, dst, size),
        Op::ComparePattern => Operation::compare_pattern(src, PATTERN, size),
        Op::Dualcast => Operation::dualcast(src, dst, buffers.dst2.at(index), size),
        Op::Crc => Operation::crc(src, size, 0),
        Op::CopyCrc => Operation::copy_crc(src, dst, size, 0),
    };
    let writes = matches!(w.op, Op::Memmove | Op::Fill | Op::Dualcast | Op::CopyCrc);
    let operation = match w.cache_control && writes {
        true => operation.with_cache_control(),
        false => operation,
    };
    match w.block_on_fault {
        true => operation.with_block_on_fault(),
        false => operation,
    }
}

/// What a stream measured, from the end of the warm-up to the last completion that counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    /// Operations.
    pub(crate) operations: u64,
    /// Time that they took together.
    pub(crate) elapsed: Duration,
    /// Sum of the times from preparation to completion seen.
    pub(crate) latency: Duration,
    /// Core time spent preparing.
    pub(crate) prepare: Duration,
    /// Core time spent submitting, waiting for answers of ENQCMD included.
    pub(crate) submit: Duration,
    /// Operations that did not succeed.
    pub(crate) failed: u64,
}

/// Streams that load the machine together: what counts lies between the time when the last of them
/// is warm and the time when the last has counted enough.
#[derive(Debug, Default)]
pub(crate) struct Together {
    warming: Cell<usize>,
    counting: Cell<usize>,
}

impl Together {
    /// So many streams.
    pub(crate) fn new(streams: usize) -> Rc<Together> {
        Rc::new(Together {
            warming: Cell::new(streams),
            counting: Cell::new(streams),
        })
    }
}

/// The application.
#[derive(Debug)]
pub(crate) struct Stream {
    together: Option<Rc<Together>>,
    workload: Workload,
    buffers: Buffers,
    warm_up: u64,
    target: u64,
    issued: u64,
    completed: u64,
    started: Vec<Time>,
    submitting_since: Option<Time>,
    warm_at: Time,
    measured: Measured,
    completions: Vec<Completion>,
}

impl Stream {
    /// `warm_up` completions that do not count, then `count` that do.
    pub(crate) fn new(
        workload: Workload,
        buffers: Buffers,
        slots: usize,
        warm_up: u64,
        count: u64,
    ) -> Self {
        Stream {
            together: None,
            workload,
            buffers,
            warm_up,
            target: warm_up + count,
            issued: 0,
            completed: 0,
            started: vec![Time::ZERO; slots],
            submitting_since: None,
            warm_at: Time::ZERO,
            measured: Measured::default(),
            completions: vec![Completion::default(); slots.min(256)],
        }
    }

    /// The same as one of several that load the machine together.
    pub(crate) fn with(self, together: &Rc<Together>) -> Stream {
        Stream {
            together: Some(together.clone()),
            ..self
        }
    }

    /// What was measured.
    pub(crate) fn measured(&self) -> Measured {
        self.measured
    }

    fn collect<M: Mover>(&mut self, mover: &mut M) {
        let count = mover.poll(&mut self.completions);
        let now = mover.core_time();
        for completion in &self.completions[..count] {
            self.completed += 1;
            if completion.status() != Status::SUCCESS {
                self.measured.failed += 1;
            }
            if self.is_warming() {
                self.warm_at = now;
                self.measured.prepare = Duration::ZERO;
                self.measured.submit = Duration::ZERO;
            } else if !self.is_over() {
                let slot = completion.ticket.0 as usize % self.started.len();
                self.measured.latency += now.since(self.started[slot]);
                self.measured.operations += 1;
                self.measured.elapsed = now.since(self.warm_at);
                if let Some(together) = &self.together
                    && self.measured.operations == self.target - self.warm_up
                {
                    together.counting.update(|streams| streams - 1);
                }
            }
        }
    }

    /// Whether the completion that was just counted is one of the warm-up.
    fn is_warming(&self) -> bool {
        match &self.together {
            None => self.completed <= self.warm_up,
            Some(together) => {
                if self.completed == self.warm_up {
                    together.warming.update(|streams| streams - 1);
                }
                self.completed <= self.warm_up || together.warming.get() > 0
            }
        }
    }

    /// Whether the completion that was just counted comes too late to be measured.
    fn is_over(&self) -> bool {
        match &self.together {
            None => self.completed > self.target,
            Some(together) => together.counting.get() == 0,
        }
    }

    fn is_done(&self) -> bool {
        match &self.together {
            None => self.completed >= self.target,
            Some(together) => together.counting.get() == 0,
        }
    }

    fn refill<M: Mover>(&mut self, mover: &mut M) {
        let before = mover.core_time();
        loop {
            let at = mover.core_time();
            let next = operation(&self.workload, &self.buffers, self.issued);
            // SAFETY: the buffers belong to this experiment alone and outlive it; overlapping use
            // by operations in flight only ever writes the same bytes.
            let Ok(ticket) = (unsafe { mover.enqueue(&next) }) else {
                break;
            };
            let slot = ticket.0 as usize % self.started.len();
            self.started[slot] = at;
            self.issued += 1;
        }
        self.measured.prepare += mover.core_time().since(before);
    }
}

impl Application for Stream {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        if self.submitting_since.is_none() || self.issued > self.completed {
            self.collect(mover);
        }
        if self.is_done() {
            return Next::Done;
        }
        if self.submitting_since.is_none() {
            self.refill(mover);
        }
        let since = *self.submitting_since.get_or_insert(mover.core_time());
        match mover.submit() {
            Progress::Pending => Next::Again,
            Progress::Done => {
                self.measured.submit += mover.core_time().since(since);
                self.submitting_since = None;
                Next::Wait
            }
        }
    }
}
