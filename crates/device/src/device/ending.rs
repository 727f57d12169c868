//! How descriptors end, and what ends with them.

use dray_spec::{CompletionRecord, Flags, Status};

use super::{Device, READBACK};
use crate::error_report::{ErrorReport, is_plain};
use crate::job::{BatchRole, Disposition, Job, JobOrigin};
use crate::registers::Source;
use crate::{DescriptorResult, Effect, LifecycleEvent, WorkId};

impl Device {
    /// Work `id` has ended. Effects are appended in the order in which they must become visible.
    /// A handle whose work has ended before changes nothing.
    #[inline]
    pub fn done(&mut self, id: WorkId, outcome: &DescriptorResult, effects: &mut Vec<Effect>) {
        if outcome.record_in_log {
            self.record_faults(id);
        }
        let Some(job_origin) = self.report(id, &outcome.record, effects) else {
            return;
        };
        if !self.windows.is_empty() {
            self.end_between(id, effects);
        }
        match job_origin.role {
            BatchRole::Single => self.leave(&job_origin, effects),
            BatchRole::Batch(slot) => {
                self.batches.remove(slot);
                self.leave(&job_origin, effects);
            }
            // The batch may be gone, if its runner has ended it early.
            BatchRole::Member { of, slot, .. } => {
                let status = outcome.record.status();
                if self.jobs.get(of).is_some() && self.batches.get_mut(slot).member_done(status) {
                    match &mut self.held_batches {
                        Some(held) => held.push(of),
                        None => self.end_batch(of, slot, effects),
                    }
                }
            }
        }
    }

    /// From now on a batch does not end with its last member: its runner ends it, some time later.
    pub fn hold_batches(&mut self) {
        self.held_batches.get_or_insert_default();
    }

    /// Batches whose members have ended since the last call, to be [ended](Device::end_held).
    pub fn take_held(&mut self) -> Vec<WorkId> {
        self.held_batches
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Ends a batch that was [held](Device::take_held). One that is gone changes nothing.
    pub fn end_held(&mut self, id: WorkId, effects: &mut Vec<Effect>) {
        if let Some(slot) = self.jobs.get(id).and_then(|job| job.job_origin.batch()) {
            self.end_batch(id, slot, effects);
        }
    }

    /// A batch descriptor ends after its last member.
    pub(super) fn end_batch(&mut self, id: WorkId, batch: u32, effects: &mut Vec<Effect>) {
        let mut record = self.batches.get_mut(batch).record(self.batch_continuation);
        if record.status() == Status::BATCH_PAGE_FAULT && !self.translates(id) {
            // A read that failed, at an address that the device does not know (spec 5.8.1, 0x20).
            record.status = Status::HARDWARE_ERROR_READ.0;
            record.fault_address = 0;
            record.fault_info = 0;
        }
        self.done(id, &DescriptorResult::of(record), effects);
    }

    /// A descriptor that came through a queue has ended: drains may end with it.
    #[inline]
    fn leave(&mut self, job_origin: &JobOrigin, effects: &mut Vec<Effect>) {
        let queue = &mut self.queues[usize::from(job_origin.queue)];
        if queue.counters.end(job_origin.place) {
            self.end_drains(job_origin, effects);
        }
    }

    /// Drains of a queue have nothing left to wait for.
    #[cold]
    fn end_drains(&mut self, job_origin: &JobOrigin, effects: &mut Vec<Effect>) {
        let mut drained = std::mem::take(&mut self.drained);
        let mut given_up = Vec::new();
        let queue = &mut self.queues[usize::from(job_origin.queue)];
        queue.counters.drained(job_origin.place, &mut drained);
        for id in drained.drain(..) {
            let job = self.jobs.get(id);
            let works = job.is_some_and(|job| job.descriptor.flags().intersects(READBACK));
            if works && self.is_abandoned(id) {
                given_up.push(id);
                continue;
            }
            if works {
                let group = self.queues[usize::from(job_origin.queue)].config.group;
                let group = self.config.groups.iter().position(|g| g.id == group);
                self.read_back.extend(group.map(|group| (group, id)));
                continue;
            }
            let record = CompletionRecord::with_status(Status::SUCCESS);
            self.report(id, &record, effects);
        }
        self.drained = drained;
        for id in given_up {
            self.done(id, &DescriptorResult::default(), effects);
        }
    }

    /// A command that waits for this descriptor waits for one less. Counted twice, it would end early.
    pub(super) fn no_longer_awaited(&mut self, of: Disposition) {
        let left = self.awaited.checked_sub(of.awaited.into());
        self.awaited = left.expect("what is waited for ends once");
    }

    /// Ends a job and appends what is reported to its submitter.
    #[inline]
    fn report(
        &mut self,
        id: WorkId,
        record: &CompletionRecord,
        effects: &mut Vec<Effect>,
    ) -> Option<JobOrigin> {
        const RECORD: Flags =
            Flags::COMPLETION_ADDRESS_VALID.union(Flags::REQUEST_COMPLETION_RECORD);
        let job = self.jobs.remove(id)?;
        let job_origin = job.job_origin;
        if job_origin.disposition != Disposition::default() || !is_plain(record.status()) {
            let job = *job;
            self.tell_in_full(id, &job, record, effects);
            return Some(job_origin);
        }
        self.lifecycle.push(|| LifecycleEvent::Ended {
            id,
            record: Some(*record),
        });
        let flags = job.descriptor.flags();
        if flags.contains(RECORD) {
            effects.push(Effect::Record {
                address: job.descriptor.completion_addr,
                record: *record,
                pasid: job_origin.submitter.pasid,
            });
        }
        if flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT) {
            let handle = job.descriptor.interrupt_handle;
            self.interrupt(&job_origin, handle, effects);
        }
        Some(job_origin)
    }

    /// The end of a job that is not plain, or that a drain or a fence waits for.
    #[cold]
    fn tell_in_full(
        &mut self,
        id: WorkId,
        job: &Job,
        record: &CompletionRecord,
        effects: &mut Vec<Effect>,
    ) {
        let job_origin = job.job_origin;
        self.no_longer_awaited(job_origin.disposition);
        let queue = usize::from(job_origin.queue);
        let wq = self.queues[queue].config.id;
        // No record, no interrupt (spec 3.15).
        if job_origin.disposition.abandoned {
            self.lifecycle
                .push(|| LifecycleEvent::Ended { id, record: None });
            effects.push(abandoned(wq, job));
            return;
        }
        let mut record = *record;
        if !self.fault_info {
            record.fault_info = 0;
        }
        // With a check that fails, the record's own traffic class counts (spec 5.4).
        let class = self.checkers[queue].completion_class_enabled(job.descriptor.flags());
        let unwritable = !class && !is_plain(record.status());
        if unwritable && record.status() != Status::COMPLETION_ADDRESS_ALIGNMENT {
            record = CompletionRecord::with_status(Status::TRAFFIC_CLASS);
        }
        self.lifecycle.push(|| LifecycleEvent::Ended {
            id,
            record: Some(record),
        });
        let report = ErrorReport {
            wq,
            job,
            unwritable,
            logged: self.event_log.on,
            first: self.lacks_first_entry(&job_origin),
        };
        let reports = report.report(&record, effects);
        if let BatchRole::Member { of, slot, .. } = job_origin.role
            && let Some(batch) = self.jobs.get_mut(of)
        {
            batch.job_origin.disposition.logged |= reports.record_in_log;
            self.batches.get_mut(slot).entered |= reports.entered;
        }
        if reports.interrupt {
            self.interrupt(&job_origin, job.descriptor.interrupt_handle, effects);
        }
    }

    /// Whether an entry of the event log for this member would be the first of its batch.
    fn lacks_first_entry(&mut self, job_origin: &JobOrigin) -> bool {
        match job_origin.role {
            BatchRole::Member { of, slot, .. } => {
                self.jobs.get(of).is_some() && !self.batches.get_mut(slot).entered
            }
            _ => false,
        }
    }

    /// Out of the way of completions that are polled for.
    #[cold]
    fn interrupt(&mut self, job_origin: &JobOrigin, handle: u16, effects: &mut Vec<Effect>) {
        let source = Source::of(job_origin.message_storage);
        effects.extend(match &mut self.interrupts {
            None => Some(Effect::Interrupt { handle }),
            Some(tables) => tables.complete(source, handle),
        });
    }
}

/// The end of a descriptor that is not reported.
#[cold]
pub(super) fn abandoned(wq: u16, job: &Job) -> Effect {
    let d = &job.descriptor;
    let addressed = d.flags().contains(Flags::COMPLETION_ADDRESS_VALID);
    Effect::Abandoned {
        wq,
        completion: addressed.then_some(d.completion_addr),
        member: job.job_origin.is_member(),
    }
}
