//! A closed loop of operations: as many in flight as there is room for, each ended one replaced.

use std::rc::Rc;

use dray::{Application, Completion, Mover, Next, Progress};
use dray_clock::{Duration, Time};
use dray_spec::Status;

use crate::time::now;
use crate::{Gauge, Operations, Together};

/// When the next operation is submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exec {
    /// All operations of a round, then wait for all of them.
    Sync,
    /// Each that ends is replaced at once.
    Async,
}

/// What a loop runs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The operations, by number.
    pub operations: Operations,
    /// When the next operation is submitted.
    pub exec: Exec,
    /// Operations of a round, batch members counted one by one.
    pub round: u64,
    /// Descriptors in flight at most, batches counted once.
    pub queue: u32,
    /// Operations in a batch; 1: none.
    pub batch: u32,
    /// Operations that do not count, whole rounds of them.
    pub warm_up: u64,
    /// Operations that count.
    pub count: u64,
    /// Submits exactly these operations, and drains its queue at the end. Otherwise it keeps the
    /// queue full until the operations that count have ended.
    pub bounded: bool,
}

/// What a loop measured, from the end of the warm-up to the last completion that counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// Operations.
    pub operations: u64,
    /// Time that they took together.
    pub elapsed: Duration,
    /// Sum of the times from preparation to completion seen.
    pub latency: Duration,
    /// Core time spent preparing.
    pub prepare: Duration,
    /// Core time spent submitting, waiting for answers of ENQCMD included.
    pub submit: Duration,
    /// Operations that did not succeed, warm-up and all.
    pub failed: u64,
    /// Status of the first of them.
    pub first_failure: Status,
}

/// A loop on one core.
#[derive(Debug)]
pub struct ClosedLoop {
    pub(crate) plan: Plan,
    together: Option<Rc<Together>>,
    gauge: Option<Gauge>,
    /// Operations handed over and ended so far, batch members counted one by one.
    issued: u64,
    ended: u64,
    /// When the operation of each slot was prepared.
    started: Vec<Time>,
    /// Since when the core waits for the answer to a submission.
    submitting_since: Option<Time>,
    warm_at: Time,
    /// When each round ended, warm-up and all.
    pub(crate) ends: Vec<Time>,
    measured: Measured,
    completions: Vec<Completion>,
}

impl ClosedLoop {
    /// A loop that has not started.
    pub fn new(plan: Plan) -> ClosedLoop {
        let slots = (plan.queue * plan.batch) as usize;
        ClosedLoop {
            together: None,
            gauge: None,
            issued: 0,
            ended: 0,
            started: vec![Time::ZERO; slots.max(1)],
            submitting_since: None,
            warm_at: Time::ZERO,
            ends: Vec::new(),
            measured: Measured::default(),
            completions: vec![Completion::default(); slots.clamp(1, 256)],
            plan,
        }
    }

    /// The same as one of several that load the machine together.
    pub fn with(self, together: &Rc<Together>) -> ClosedLoop {
        ClosedLoop {
            together: Some(together.clone()),
            ..self
        }
    }

    /// Counts the operations that end, for progress displays.
    pub fn watched(self, gauge: Gauge) -> ClosedLoop {
        ClosedLoop {
            gauge: Some(gauge),
            ..self
        }
    }

    /// What was measured.
    pub fn measured(&self) -> Measured {
        self.measured
    }

    /// Time from the end of the warm-up to the end of the last round.
    pub fn elapsed(&self) -> Duration {
        self.end_at().since(self.warm_at)
    }

    /// Core time that went into preparing and submitting what counts.
    pub fn busy(&self) -> Duration {
        self.measured.prepare + self.measured.submit
    }

    pub(crate) fn end_at(&self) -> Time {
        self.ends.last().copied().unwrap_or(Time::ZERO)
    }

    fn target(&self) -> u64 {
        self.plan.warm_up + self.plan.count
    }

    fn collect(&mut self, mover: &mut dyn Mover) {
        let count = mover.poll(&mut self.completions);
        if let Some(gauge) = &self.gauge {
            gauge.add(count as u64);
        }
        let now = now(mover);
        for index in 0..count {
            let completion = self.completions[index];
            self.ended += 1;
            if completion.status() != Status::SUCCESS {
                if self.measured.failed == 0 {
                    self.measured.first_failure = completion.status();
                }
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
                    && self.measured.operations == self.plan.count
                {
                    together.counting.update(|loops| loops - 1);
                }
            }
            if self.ended.is_multiple_of(self.plan.round) {
                self.ends.push(now);
            }
        }
    }

    /// Whether the completion that was just counted is one of the warm-up.
    fn is_warming(&self) -> bool {
        match &self.together {
            None => self.ended <= self.plan.warm_up,
            Some(together) => {
                if self.ended == self.plan.warm_up {
                    together.warming.update(|loops| loops - 1);
                }
                self.ended <= self.plan.warm_up || together.warming.get() > 0
            }
        }
    }

    /// Whether the completion that was just counted comes too late to be measured.
    fn is_over(&self) -> bool {
        match &self.together {
            None => self.ended > self.target(),
            Some(together) => together.counting.get() == 0,
        }
    }

    fn is_done(&self) -> bool {
        match &self.together {
            None => self.ended >= self.target(),
            Some(together) => together.counting.get() == 0,
        }
    }

    /// Prepares the next operation; false if the mover has no slot for it.
    fn prepare(&mut self, mover: &mut dyn Mover) -> bool {
        let at = now(mover);
        let next = self.plan.operations.at(self.issued);
        // SAFETY: the buffers belong to this loop alone and outlive it; operations in flight that
        // use the same ones write the same bytes.
        let Ok(ticket) = (unsafe { mover.enqueue(&next) }) else {
            return false;
        };
        let slot = ticket.0 as usize % self.started.len();
        self.started[slot] = at;
        self.issued += 1;
        true
    }

    /// Submits what was prepared; false while something is left, or an answer is awaited.
    fn submit(&mut self, mover: &mut dyn Mover) -> bool {
        let since = now(mover);
        match mover.submit() {
            Progress::Pending => {
                self.submitting_since = Some(since);
                false
            }
            Progress::Done => {
                self.measured.submit += now(mover).since(since);
                true
            }
        }
    }

    /// Whether another descriptor may be prepared.
    fn may_issue(&self) -> bool {
        let plan = &self.plan;
        let batch = u64::from(plan.batch);
        let room = self.issued - self.ended + batch <= u64::from(plan.queue) * batch;
        let open = match plan.exec {
            // A round begins when the one before it has ended.
            Exec::Sync => self.issued < (self.ended / plan.round + 1) * plan.round,
            Exec::Async => true,
        };
        room && open && (!plan.bounded || self.issued < self.target())
    }

    /// Prepares an operation for every free slot.
    fn refill(&mut self, mover: &mut dyn Mover) {
        let before = now(mover);
        while self.may_issue() && (0..self.plan.batch).all(|_| self.prepare(mover)) {}
        self.measured.prepare += now(mover).since(before);
    }

    /// [`Application::step`], compiled once and in this crate, which is optimised where its callers need not be.
    fn step_on(&mut self, mover: &mut dyn Mover) -> Next {
        let submitting = self.submitting_since.take();
        if let Some(since) = submitting {
            // The core was blocked until now.
            self.measured.submit += now(mover).since(since);
        }
        if self.issued > self.ended || submitting.is_none() {
            self.collect(mover);
        }
        if self.is_done() {
            return Next::Done;
        }
        self.refill(mover);
        match self.submit(mover) {
            true => Next::Wait,
            false => Next::Again,
        }
    }
}

impl Application for ClosedLoop {
    /// Collects what has ended, fills the slots that are free, whether or not something is being
    /// submitted, and submits what is ready.
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.step_on(mover)
    }
}
