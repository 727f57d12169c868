//! The application that a case runs: rounds of a queue's operations.

use dray::{Application, Completion, Mover, Next, Progress};
use dray_clock::{Duration, Time};
use dray_spec::Status;

use crate::buffers::{Buffers, operation};
use crate::case::{Exec, Op};

/// What a thread runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Operation.
    pub(crate) op: Op,
    /// Bytes of one operation.
    pub(crate) size: u32,
    /// Writes go to the cache.
    pub(crate) cache_control: bool,
    /// When the next operation is submitted.
    pub(crate) exec: Exec,
    /// Operations in flight, batches counted once.
    pub(crate) queue: u32,
    /// Operations in a batch; 1: none.
    pub(crate) batch: u32,
    /// Rounds that do not count.
    pub(crate) warm_up: u64,
    /// Rounds that count.
    pub(crate) rounds: u64,
    /// Operands.
    pub(crate) buffers: Buffers,
}

/// A thread's loop. A round is as many operations as the thread keeps in flight.
#[derive(Debug)]
pub(crate) struct Rounds {
    plan: Plan,
    /// Operations handed over and ended so far, batch members counted one by one.
    issued: u64,
    ended: u64,
    /// The submission of what was enqueued is not through.
    pending: bool,
    warm_at: Time,
    end_at: Time,
    failed: u64,
    first_failure: Status,
    completions: Vec<Completion>,
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
            end_at: Time::ZERO,
            failed: 0,
            first_failure: Status::SUCCESS,
            completions: vec![Completion::default(); slots.clamp(1, 256)],
        }
    }

    /// Time of the rounds that count.
    pub(crate) fn elapsed(&self) -> Duration {
        self.end_at.since(self.warm_at)
    }

    /// Operations that failed, and the status of the first.
    pub(crate) fn failed(&self) -> (u64, Status) {
        (self.failed, self.first_failure)
    }

    fn round(&self) -> u64 {
        u64::from(self.plan.queue) * u64::from(self.plan.batch)
    }

    fn collect<M: Mover>(&mut self, mover: &mut M) {
        let count = mover.poll(&mut self.completions);
        let warm = self.plan.warm_up * self.round();
        let last = warm + self.plan.rounds * self.round();
        for completion in &self.completions[..count] {
            self.ended += 1;
            if completion.status() != Status::SUCCESS {
                if self.failed == 0 {
                    self.first_failure = completion.status();
                }
                self.failed += 1;
            }
            if self.ended == warm {
                self.warm_at = mover.now();
            }
            if self.ended == last {
                self.end_at = mover.now();
            }
        }
    }

    /// Whether another operation may be handed over.
    fn may_issue(&self) -> bool {
        let total = (self.plan.warm_up + self.plan.rounds) * self.round();
        let batch = u64::from(self.plan.batch);
        let room = self.issued - self.ended + batch <= self.round();
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
            let next = operation(
                p.op,
                p.size,
                p.cache_control,
                &p.buffers,
                self.issued + member,
            );
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

impl Application for Rounds {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        loop {
            if self.pending {
                match mover.submit() {
                    Progress::Pending => return Next::Again,
                    Progress::Done => self.pending = false,
                }
            }
            if self.may_issue() && self.issue(mover) {
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
