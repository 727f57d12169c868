//! The application that a case runs: rounds of a queue's operations.

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_clock::{Duration, Time};
use dray_model::CoreTime;
use dray_spec::{Flags, Status};

use crate::buffers::Buffers;
use crate::case::Exec;
use crate::gauge::Gauge;
use crate::shape::Shape;

/// What a thread runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// What one operation does.
    pub(crate) shape: Shape,
    /// Writes go to the cache.
    pub(crate) cache_control: bool,
    /// When the next operation is submitted.
    pub(crate) exec: Exec,
    /// Operations of a round, batches counted once.
    pub(crate) per_round: u32,
    /// Operations in flight at most, batches counted once.
    pub(crate) queue: u32,
    /// Operations in a batch; 1: none.
    pub(crate) batch: u32,
    /// Rounds that do not count.
    pub(crate) warm_up: u64,
    /// Rounds that count.
    pub(crate) rounds: u64,
    /// Operands.
    pub(crate) buffers: Buffers,
    /// Flags that some descriptors get instead of their own.
    pub(crate) flags: Option<FlagChange>,
}

/// Descriptor flags taken away and added, on every nth operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagChange {
    /// Bits taken away.
    pub clear: u32,
    /// Bits added.
    pub set: u32,
    /// On the first of so many operations; 1: on all.
    pub every: u32,
}

/// A thread's loop.
#[derive(Debug)]
pub(crate) struct Rounds {
    plan: Plan,
    /// Operations handed over and ended so far, batch members counted one by one.
    issued: u64,
    ended: u64,
    /// The submission of what was enqueued is not through.
    pending: bool,
    warm_at: Time,
    /// When each round ended, warm-up and all.
    ends: Vec<Time>,
    /// Core time spent preparing and submitting in the rounds that count.
    busy: Duration,
    busy_since: Option<Time>,
    failed: u64,
    first_failure: Status,
    completions: Vec<Completion>,
    /// Order in which buffers are taken; empty: as they come.
    order: Vec<u32>,
    gauge: Option<Gauge>,
}

impl Rounds {
    /// A thread that has not started.
    pub(crate) fn new(plan: Plan) -> Rounds {
        let slots = (plan.queue * plan.batch) as usize;
        Rounds {
            plan,
            issued: 0,
            ended: 0,
            pending: false,
            warm_at: Time::ZERO,
            ends: Vec::with_capacity((plan.warm_up + plan.rounds) as usize),
            busy: Duration::ZERO,
            busy_since: None,
            failed: 0,
            first_failure: Status::SUCCESS,
            completions: vec![Completion::default(); slots.clamp(1, 256)],
            order: Vec::new(),
            gauge: None,
        }
    }

    /// Takes the buffers in this order, again and again.
    pub(crate) fn in_order(mut self, order: Vec<u32>) -> Rounds {
        self.order = order;
        self
    }

    /// Lets somebody watch the operations that end.
    pub(crate) fn watched(mut self, gauge: Option<Gauge>) -> Rounds {
        self.gauge = gauge;
        self
    }

    /// Time of the rounds that count.
    pub(crate) fn elapsed(&self) -> Duration {
        self.end_at().since(self.warm_at)
    }

    fn end_at(&self) -> Time {
        self.ends.last().copied().unwrap_or(Time::ZERO)
    }

    /// Core time that went into preparing and submitting meanwhile.
    pub(crate) fn busy(&self) -> Duration {
        self.busy
    }

    /// Operations that failed, and the status of the first.
    pub(crate) fn failed(&self) -> (u64, Status) {
        (self.failed, self.first_failure)
    }

    fn round(&self) -> u64 {
        u64::from(self.plan.per_round) * u64::from(self.plan.batch)
    }

    fn collect<M: Mover>(&mut self, mover: &mut M) {
        let count = mover.poll(&mut self.completions);
        if let Some(gauge) = &self.gauge {
            gauge.add(count as u64);
        }
        let warm = self.plan.warm_up * self.round();
        for completion in &self.completions[..count] {
            self.ended += 1;
            if completion.status() != Status::SUCCESS {
                if self.failed == 0 {
                    self.first_failure = completion.status();
                }
                self.failed += 1;
            }
            if self.ended == warm {
                self.warm_at = mover.core_time();
                self.busy = Duration::ZERO;
            }
            if self.ended.is_multiple_of(self.round()) {
                self.ends.push(mover.core_time());
            }
        }
    }

    /// Whether another operation may be handed over.
    fn may_issue(&self) -> bool {
        let total = (self.plan.warm_up + self.plan.rounds) * self.round();
        let batch = u64::from(self.plan.batch);
        let room = self.issued - self.ended + batch <= u64::from(self.plan.queue) * batch;
        let open = match self.plan.exec {
            // A round begins when the one before it has ended.
            Exec::Sync => self.issued < (self.ended / self.round() + 1) * self.round(),
            Exec::Async => true,
        };
        self.issued < total && room && open
    }

    fn issue<M: Mover>(&mut self, mover: &mut M) -> bool {
        let p = &self.plan;
        for member in 0..u64::from(p.batch) {
            let index = self.issued + member;
            let buffer = match self.order.len() as u64 {
                0 => index,
                len => self.order[(index % len) as usize].into(),
            };
            let mut next = p.shape.operation(&p.buffers, buffer, p.cache_control);
            if let Some(change) = p.flags
                && index.is_multiple_of(u64::from(change.every.max(1)))
            {
                next = changed(&next, change);
            }
            // SAFETY: the buffers belong to this thread of this case alone and outlive the run; an
            // operation in flight that uses the same ones writes the same bytes.
            if unsafe { mover.enqueue(&next) }.is_err() {
                return false;
            }
        }
        self.issued += u64::from(p.batch);
        true
    }
}

/// Rounds of several threads in a span of time in which all of them were at work: from when they
/// had, together, ended the rounds of the warm-up until the first thread was done. Threads need
/// not be treated alike by a queue: the time that each took would say too much of their sum.
pub(crate) fn together(threads: &[Rounds]) -> (u64, Duration) {
    let mut all: Vec<Time> = threads.iter().flat_map(|t| &t.ends).copied().collect();
    all.sort_unstable();
    let warm: u64 = threads.iter().map(|t| t.plan.warm_up).sum();
    let end = threads.iter().map(Rounds::end_at).min();
    let start = match (warm as usize).checked_sub(1) {
        Some(index) => all.get(index).copied(),
        None => Some(Time::ZERO),
    };
    match (start, end) {
        (Some(start), Some(end)) => {
            let after = all.partition_point(|at| *at <= start);
            let until = all.partition_point(|at| *at <= end);
            (until.saturating_sub(after) as u64, end.since(start))
        }
        _ => (0, Duration::ZERO),
    }
}

fn changed(operation: &Operation, change: FlagChange) -> Operation {
    operation.with_changed_flags(Flags::from_bits(change.clear), Flags::from_bits(change.set))
}

impl Application for Rounds {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        loop {
            if self.pending {
                match mover.submit() {
                    Progress::Pending => return Next::Again,
                    Progress::Done => self.pending = false,
                }
                if let Some(since) = self.busy_since.take() {
                    self.busy += mover.core_time().since(since);
                }
            }
            let now = mover.core_time();
            if self.may_issue() && self.issue(mover) {
                self.busy_since = Some(now);
                self.pending = true;
                continue;
            }
            let before = self.ended;
            self.collect(mover);
            if self.ended == (self.plan.warm_up + self.plan.rounds) * self.round() {
                return Next::Done;
            }
            if self.ended == before {
                return Next::Wait;
            }
        }
    }
}
