//! The adversary's list of what engines have begun: what goes on next, and when.
//!
//! Time here is of its own. What arrives is due some delay after the last step that was taken, and the clock moves with
//! the steps alone: so the order of steps does not depend on how fast a program submits, as long as it submits what it is
//! about to before the next step. A step therefore waits until nothing has arrived for a while.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dray_device::{Action, DescriptorResult, Task, WorkId};
use dray_spec::{Flags, Opcode};

use crate::chaos::{Chaos, Piece, Plan, Submission};

/// How long nothing has arrived before a step is taken.
const QUIET: Duration = Duration::from_micros(100);

/// What is to be done next with a descriptor.
#[derive(Debug)]
pub(crate) enum Step {
    /// Read the list of a batch.
    List,
    Execute,
    /// Write what is left, and the record.
    End {
        outcome: DescriptorResult,
        rest: Vec<Piece>,
    },
    /// Write the record of a batch whose members have ended.
    EndBatch,
}

/// A descriptor that an engine has begun.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) task: Task,
    /// Its engine, among all.
    pub(crate) engine: usize,
    pub(crate) batch: Option<WorkId>,
    pub(crate) wq: u16,
    pub(crate) plan: Plan,
    pub(crate) step: Step,
    /// Which one it was: of a batch for its members.
    number: u64,
    due: Duration,
    rank: u64,
}

/// A batch whose members begin.
#[derive(Debug)]
struct BatchInProgress {
    submission: Submission,
    number: u64,
    prompt: bool,
}

/// What engines have begun, and the adversary's time.
#[derive(Debug)]
pub(crate) struct Scheduler {
    chaos: Chaos,
    parked: Vec<Parked>,
    /// With engines' threads.
    away: Vec<Parked>,
    /// Submissions of each queue and address space.
    counts: HashMap<(u16, u32), u64>,
    batches: HashMap<WorkId, BatchInProgress>,
    /// Those whose records are late.
    late: HashMap<WorkId, Parked>,
    /// When the last of those is due that end in order, by queue.
    in_order: HashMap<u16, Duration>,
    next_number: u64,
    /// The oldest is overtaken by no more than these.
    reach: u64,
    clock: Duration,
    /// When the clock was set.
    set: Instant,
    /// When something has arrived.
    arrived: Instant,
}

impl Scheduler {
    pub(crate) fn new(chaos: Chaos, reach: usize) -> Scheduler {
        let now = Instant::now();
        Scheduler {
            chaos,
            parked: Vec::new(),
            away: Vec::new(),
            counts: HashMap::new(),
            batches: HashMap::new(),
            late: HashMap::new(),
            in_order: HashMap::new(),
            next_number: 0,
            reach: reach as u64,
            clock: Duration::ZERO,
            set: now,
            arrived: now,
        }
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.parked.is_empty() && self.away.is_empty()
    }

    /// Descriptors have arrived.
    pub(crate) fn hear(&mut self) {
        self.arrived = Instant::now();
    }

    /// An engine has begun a descriptor of this queue, which may have PASIDs. With `in_order` nothing of the queue overtakes what is before it
    /// (spec 3.9: one engine). The plan.
    pub(crate) fn add(
        &mut self,
        task: &Task,
        engine: usize,
        (wq, has_pasid): (u16, bool),
        batch: Option<WorkId>,
        in_order: bool,
    ) -> Plan {
        let (submission, number) = self.submission(task, wq, batch);
        let of_batch = batch.and_then(|batch| self.batches.get(&batch));
        let is_prompt = of_batch.is_some_and(|batch| batch.prompt);
        let mut plan = Plan::of(&self.chaos, submission);
        if is_prompt {
            plan = plan.at_once();
        }
        let late = plan.record;
        let mut plan = suited(plan, task);
        // What a kernel submits for itself is there.
        plan.unrecorded &= has_pasid;
        let step = match task.action {
            Action::ReadList { .. } => {
                let prompt = plan.prompt;
                let entry = BatchInProgress {
                    submission,
                    number,
                    prompt,
                };
                self.batches.insert(task.id, entry);
                Step::List
            }
            _ => Step::Execute,
        };
        let mut due = self.clock + plan.delay;
        if in_order && batch.is_none() {
            let last = self.in_order.entry(wq).or_default();
            due = due.max(*last + Duration::from_nanos(1));
            // A record that is late holds up those behind it.
            *last = due + plan.record;
        }
        let parked = |step, batch| Parked {
            task: *task,
            engine,
            batch,
            wq,
            plan,
            step,
            number,
            due,
            rank: plan.rank,
        };
        if matches!(step, Step::List) && (!late.is_zero() || plan.prompt) {
            // In its place among the members of its engine.
            let mut end = parked(Step::EndBatch, Some(task.id));
            end.plan.record = late;
            self.late.insert(task.id, end);
        }
        self.parked.push(parked(step, batch));
        plan
    }

    fn submission(&mut self, task: &Task, wq: u16, batch: Option<WorkId>) -> (Submission, u64) {
        if let Some(of) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            of.submission.member += 1;
            return (of.submission, of.number);
        }
        let count = self.counts.entry((wq, task.pasid)).or_default();
        let submission = Submission {
            wq,
            pasid: task.pasid,
            index: *count,
            member: 0,
        };
        *count += 1;
        self.next_number += 1;
        (submission, self.next_number)
    }

    /// All members of a batch have ended: its engine, if its record is late.
    pub(crate) fn end_later(&mut self, batch: WorkId) -> Option<usize> {
        let mut end = self.late.remove(&batch)?;
        end.due = self.clock + end.plan.record;
        let engine = end.engine;
        self.parked.push(end);
        Some(engine)
    }

    /// Batches that have ended otherwise have no late record.
    pub(crate) fn forget_gone(&mut self, is_there: impl Fn(WorkId) -> bool) {
        self.late.retain(|id, _| is_there(*id));
    }

    /// Whether something is on its way that its submitter waits for.
    pub(crate) fn has_prompt(&self) -> bool {
        let mut all = self.parked.iter().chain(&self.away);
        all.any(|parked| parked.plan.prompt) || self.late.values().any(|end| end.plan.prompt)
    }

    /// All members of a batch have begun.
    pub(crate) fn forget_batch(&mut self, batch: WorkId) {
        self.batches.remove(&batch);
    }

    /// Whether members of batches are on their way at an engine.
    pub(crate) fn has_members(&self, engine: usize) -> bool {
        let mut all = self.parked.iter().chain(&self.away);
        all.any(|parked| parked.engine == engine && parked.batch.is_some())
    }

    /// It has been executed: what is left is for later, if the plan says so; else it is given back.
    pub(crate) fn executed(
        &mut self,
        mut parked: Parked,
        outcome: DescriptorResult,
        rest: Vec<Piece>,
    ) -> Option<Parked> {
        let late = parked.plan.record;
        parked.step = Step::End { outcome, rest };
        if late.is_zero() {
            return Some(parked);
        }
        parked.due = self.clock + late;
        self.parked.push(parked);
        None
    }

    /// An engine's thread executes it.
    pub(crate) fn send_away(&mut self, parked: Parked) {
        self.away.push(parked);
    }

    /// An engine's thread has executed it.
    pub(crate) fn come_back(&mut self, id: WorkId) -> Option<Parked> {
        let index = self.away.iter().position(|away| away.task.id == id)?;
        Some(self.away.swap_remove(index))
    }

    /// The next step, if it is time; `at_once`, whatever the time.
    pub(crate) fn next(&mut self, at_once: bool) -> Option<Parked> {
        let index = self.first()?;
        if !at_once && !self.wait_for(index).is_zero() {
            return None;
        }
        let parked = self.parked.swap_remove(index);
        self.clock = self.clock.max(parked.due);
        self.set = Instant::now();
        Some(parked)
    }

    /// How long it is until the next step; `None` if there is none.
    pub(crate) fn until_next(&self) -> Option<Duration> {
        Some(self.wait_for(self.first()?))
    }

    fn wait_for(&self, index: usize) -> Duration {
        // What is not disturbed need not be in flight with what comes.
        let plan = &self.parked[index].plan;
        if (plan.is_plain() || plan.prompt) && self.parked[index].due <= self.clock {
            return Duration::ZERO;
        }
        let ahead = self.parked[index].due.saturating_sub(self.clock);
        let due = ahead.saturating_sub(self.set.elapsed());
        due.max(QUIET.saturating_sub(self.arrived.elapsed()))
    }

    /// The one whose step is next.
    fn first(&self) -> Option<usize> {
        let all = self.parked.iter().chain(&self.away);
        let limit = all.map(|parked| parked.number).min()? + self.reach;
        let within = self.parked.iter().enumerate();
        let within = within.filter(|(_, parked)| parked.number < limit);
        let first = within.min_by_key(|(_, parked)| (parked.due, parked.rank, parked.number));
        Some(first?.0)
    }
}

/// Only what this descriptor can meet.
fn suited(mut plan: Plan, task: &Task) -> Plan {
    let Action::Execute(opcode) = task.action else {
        // Nothing of a refused one is executed, and no member before the list.
        return Plan {
            record: Duration::ZERO,
            lines: None,
            fault: None,
            error: None,
            unrecorded: false,
            ..plan
        };
    };
    plan.unrecorded &= task.log_takes_record && task.record.is_some();
    let accesses = !matches!(
        opcode,
        Opcode::Noop
            | Opcode::Drain
            | Opcode::TranslationFetch
            | Opcode::CacheFlush
            | Opcode::UpdateWindow
    );
    // Of other address spaces the pages are not all the submitter's.
    if !accesses || task.domains.is_some() || !task.translates {
        (plan.fault, plan.error, plan.lines) = (None, None, None);
    }
    if task.descriptor.flags().contains(Flags::BLOCK_ON_FAULT) {
        plan.fault = None;
    }
    plan
}
