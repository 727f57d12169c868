//! What an adversary does with the descriptors that engines have begun.

use std::time::{Duration, Instant};

use dray_device::{Access, Action, DescriptorResult, Work, WorkId, WorkQueueMode};
use dray_ring::Gate;
use dray_spec::registers::{DeviceState, WorkQueueState};
use dray_spec::{Opcode, Status};

use super::Dispatcher;
use crate::chaos::Piece;
use crate::request::When;
use crate::scheduler::{Parked, Scheduler, Step};
use crate::worker::{Order, Report, execute, execute_chaotically};
use crate::{Event, SharedMemory};

impl<M: SharedMemory> Dispatcher<M> {
    /// An engine has begun something: it goes on when the adversary has it.
    #[cold]
    pub(super) fn park(&mut self, index: usize, work: Work, batch: Option<WorkId>) {
        let queue = self.function.device().queue_of(work.id);
        let queue = queue.map(|queue| (queue.id, queue.pasid.is_some()));
        let Some(task) = self.function.start(&work) else {
            return;
        };
        let (Some(scheduler), Some((wq, has_pasid))) = (&mut self.scheduler, queue) else {
            return;
        };
        let in_order = self.function.device().engines_of(wq).len() == 1;
        let origin = (wq, has_pasid);
        let plan = scheduler.add(&task, index, origin, batch, in_order);
        let engine = &mut self.engines[index];
        engine.outstanding += 1;
        engine.listing = matches!(task.action, Action::ReadList { .. });
        if !plan.retry.is_zero() && batch.is_none() {
            self.refuse_for(wq, plan.retry);
        }
    }

    /// Whether an engine begins nothing before the members of a batch have ended: with one engine, batches are executed
    /// in order (spec 3.9).
    #[inline]
    pub(super) fn keeps_order(&self, index: usize) -> bool {
        let Some(scheduler) = &self.scheduler else {
            return false;
        };
        let id = self.engines[index].id;
        let groups = self.function.config().groups.iter();
        let mut own = groups.filter(|group| group.engines.contains(&id));
        let alone = own.any(|group| group.engines.len() == 1);
        alone && scheduler.has_members(index)
    }

    /// A shared queue answers retry for a while: others have filled it.
    fn refuse_for(&mut self, wq: u16, time: Duration) {
        let is_open = self.function.queue_state(wq) == Some(WorkQueueState::Enabled)
            && self.function.state() == DeviceState::Enabled;
        let queue = self.function.queue(wq).filter(|_| is_open);
        let Some(queue) = queue.filter(|queue| queue.mode == WorkQueueMode::Shared) else {
            return;
        };
        let gate = Gate {
            dedicated: false,
            size: queue.size,
            threshold: 0,
        };
        self.sources[usize::from(wq)].reader.ring().open(gate);
        let until = Instant::now() + time;
        let later = self.retry_until.map_or(until, |other| other.max(until));
        self.retry_until = Some(later);
    }

    /// Takes the adversary's next step, if it is time.
    #[cold]
    pub(super) fn take_step(&mut self) -> bool {
        let at_once = self.shared.is_stopping();
        if self
            .retry_until
            .is_some_and(|until| until <= Instant::now())
        {
            self.retry_until = None;
            self.arrange();
        }
        let next = self.scheduler.as_mut().and_then(|s| s.next(at_once));
        let Some(mut parked) = next else {
            if self.scheduler.as_ref().is_some_and(Scheduler::is_idle) {
                self.sink.deliver_late();
            }
            return false;
        };
        let step = std::mem::replace(&mut parked.step, Step::Execute);
        let begins = matches!(step, Step::List | Step::Execute);
        let id = parked.task.id;
        // One that is given up already is in no queue.
        if let Some(outage) = parked.plan.outage.filter(|_| begins)
            && !self.function.device().is_abandoned(id)
        {
            self.begin_outage(outage, parked.wq);
        }
        let is_abandoned = self.function.device().is_abandoned(id);
        match step {
            Step::List => self.begin_list(&parked),
            // It may have written data (spec 3.15), and has written none.
            Step::EndBatch => {
                self.engines[parked.engine].outstanding -= 1;
                self.function.end_held(id, &mut self.effects);
                self.apply_effects();
            }
            Step::Execute if is_abandoned => self.end(&parked, &DescriptorResult::default()),
            Step::Execute => self.execute_parked(parked),
            Step::End { outcome, .. } if is_abandoned => self.end(&parked, &outcome),
            Step::End { outcome, rest } => {
                let outcome = self.finish(&parked, outcome, rest);
                self.end(&parked, &outcome);
            }
        }
        true
    }

    fn tell_parked(&mut self, parked: &Parked) {
        if self.sink.steps {
            let engine = self.engines[parked.engine].id;
            let (id, batch) = (parked.task.id, parked.batch);
            self.sink.tell_start(id, engine, batch, &mut self.function);
        }
    }

    fn begin_list(&mut self, parked: &Parked) {
        self.tell_parked(parked);
        let engine = &mut self.engines[parked.engine];
        engine.outstanding -= 1;
        engine.listing = false;
        engine.batch = Some(parked.task.id);
        self.read_list(&parked.task);
        self.apply_effects();
        self.forget_gone();
    }

    fn execute_parked(&mut self, parked: Parked) {
        self.tell_parked(&parked);
        let (task, plan) = (parked.task, parked.plan);
        let is_execution = matches!(task.action, Action::Execute(_));
        let waits = is_execution && self.sink.memory.may_wait(task.blocks());
        let worker = self.engines[parked.engine].worker.as_mut();
        if let Some(worker) = worker.filter(|_| waits) {
            let plan = Some(plan);
            worker.order(Order { task, plan });
            if let Some(scheduler) = &mut self.scheduler {
                scheduler.send_away(parked);
            }
            return;
        }
        let tear = !plan.record.is_zero() && !is_overlapping(&parked);
        let (outcome, rest) = execute_chaotically(
            &task,
            &plan,
            tear,
            &mut self.sink.memory,
            &self.shared,
            &self.name,
        );
        self.executed(parked, outcome, rest);
    }

    /// An engine's thread has executed a descriptor.
    #[cold]
    pub(super) fn come_back(&mut self, report: Report) {
        let back = self.scheduler.as_mut().and_then(|s| s.come_back(report.id));
        if let Some(parked) = back {
            self.executed(parked, report.outcome, Vec::new());
        }
    }

    fn executed(&mut self, parked: Parked, outcome: DescriptorResult, rest: Vec<Piece>) {
        let Some(scheduler) = &mut self.scheduler else {
            return;
        };
        let id = parked.task.id;
        let is_written = rest.is_empty() && outcome.record.status() == Status::SUCCESS;
        match scheduler.executed(parked, outcome, rest) {
            Some(parked) => self.end(&parked, &outcome),
            None if is_written && self.sink.steps => self.sink.tell(Event::Executed { id }),
            None => {}
        }
    }

    /// Writes what a descriptor has left. Where that cannot be written any more, it is executed again, and ends as it does.
    fn finish(
        &mut self,
        parked: &Parked,
        outcome: DescriptorResult,
        rest: Vec<Piece>,
    ) -> DescriptorResult {
        let Action::Execute(opcode) = parked.task.action else {
            return outcome;
        };
        if rest.is_empty() {
            return outcome;
        }
        let memory = &mut self.sink.memory;
        memory.enter(parked.task.operand_view(opcode));
        let is_there = rest.iter().all(|piece| {
            let len = piece.bytes.len() as u64;
            memory.accessible(piece.address, len, Access::Write) == len
        });
        if is_there {
            for piece in &rest {
                memory.write(piece.address, &piece.bytes);
            }
        }
        if memory.settle() && is_there {
            return outcome;
        }
        execute(&parked.task, memory, &self.shared, &self.name)
    }

    fn end(&mut self, parked: &Parked, outcome: &DescriptorResult) {
        self.engines[parked.engine].outstanding -= 1;
        self.function
            .done(parked.task.id, outcome, &mut self.effects);
        self.apply_effects();
        self.end_batches();
    }

    /// The records of batches whose members have ended come now, or later.
    fn end_batches(&mut self) {
        for id in self.function.take_held() {
            let late = self.scheduler.as_mut().and_then(|s| s.end_later(id));
            match late {
                Some(engine) => self.engines[engine].outstanding += 1,
                None => {
                    self.function.end_held(id, &mut self.effects);
                    self.apply_effects();
                }
            }
        }
    }

    fn forget_gone(&mut self) {
        let device = self.function.device();
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.forget_gone(|id| device.descriptor(id).is_some());
        }
    }

    /// Lets those go on who have submitted, once nothing is left that they wait for.
    pub(super) fn release_prompt(&mut self) {
        self.forget_gone();
        let is_awaited = self.scheduler.as_ref().is_some_and(Scheduler::has_prompt)
            || self.live.iter().any(|index| {
                let wq = self.sources[*index].portal.wq;
                self.function.device().occupancy(wq).unwrap_or(0) > 0
            });
        if is_awaited || !std::mem::take(&mut self.prompts) {
            return;
        }
        for source in &self.sources {
            source.reader.looked();
        }
        self.shared.region.doorbell().completions().ring();
    }

    /// How long it may sleep.
    pub(super) fn step_limit(&self, limit: Option<Duration>) -> Option<Duration> {
        let next = self.scheduler.as_ref().and_then(|s| s.until_next());
        let until = |until: Instant| until.saturating_duration_since(Instant::now());
        let times = self
            .requests
            .iter()
            .filter_map(|request| match request.when {
                When::At(time) => Some(until(time)),
                _ => None,
            });
        let all = [limit, next, self.retry_until.map(until), times.min()];
        all.into_iter().flatten().min()
    }

    /// Whether it is time for the adversary.
    #[inline]
    pub(super) fn is_step_due(&self) -> bool {
        self.scheduler.is_some() && self.step_limit(None).is_some_and(|left| left.is_zero())
    }
}

/// Whether it must not be executed twice, for it writes over what it has read.
fn is_overlapping(parked: &Parked) -> bool {
    let d = &parked.task.descriptor;
    let apart = d.address1.abs_diff(d.address2) >= d.size.into();
    d.opcode() == Ok(Opcode::Memmove) && !apart
}
