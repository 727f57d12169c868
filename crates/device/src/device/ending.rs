//! How descriptors end, and what ends with them.

use dray_spec::{CompletionRecord, Flags, Status};

use super::{Device, READBACK};
use crate::job::{Fate, Job, Kin, Route};
use crate::notice::{Notice, is_plain};
use crate::registers::Source;
use crate::{Effect, Outcome, Step, WorkId};

impl Device {
    /// Work `id` has ended. Effects are appended in the order in which they must become visible.
    /// A handle whose work has ended before changes nothing.
    #[inline]
    pub fn done(&mut self, id: WorkId, outcome: &Outcome, effects: &mut Vec<Effect>) {
        if outcome.record_in_log {
            self.record_faults(id);
        }
        let Some(route) = self.tell(id, &outcome.record, effects) else {
            return;
        };
        if !self.windows.is_empty() {
            self.end_between(id, effects);
        }
        match route.kin {
            Kin::Single => self.leave(&route, effects),
            Kin::Batch(slot) => {
                self.batches.remove(slot);
                self.leave(&route, effects);
            }
            // The batch may be gone, if its runner has ended it early.
            Kin::Member { of, slot, .. } => {
                let status = outcome.record.status();
                if self.jobs.get(of).is_some() && self.batches.get_mut(slot).member_done(status) {
                    self.end_batch(of, slot, effects);
                }
            }
        }
    }

    /// A batch descriptor ends after its last member.
    pub(super) fn end_batch(&mut self, id: WorkId, batch: u32, effects: &mut Vec<Effect>) {
        let mut record = self.batches.get_mut(batch).record(self.batch_continuation);
        if record.status() == Status::BATCH_PAGE_FAULT && !self.translates(id) {
            // A read that failed, at an address that the device is not told (spec 5.8.1, 0x20).
            record.status = Status::HARDWARE_ERROR_READ.0;
            record.fault_address = 0;
            record.fault_info = 0;
        }
        self.done(id, &Outcome::of(record), effects);
    }

    /// A descriptor that came through a queue has ended: drains may end with it.
    #[inline]
    fn leave(&mut self, route: &Route, effects: &mut Vec<Effect>) {
        let queue = &mut self.queues[usize::from(route.queue)];
        if queue.lanes.end(route.place) {
            self.end_drains(route, effects);
        }
    }

    /// Drains of a queue have nothing left to wait for.
    #[cold]
    fn end_drains(&mut self, route: &Route, effects: &mut Vec<Effect>) {
        let mut drained = std::mem::take(&mut self.drained);
        let mut given_up = Vec::new();
        let queue = &mut self.queues[usize::from(route.queue)];
        queue.lanes.drained(route.place, &mut drained);
        for id in drained.drain(..) {
            let job = self.jobs.get(id);
            let works = job.is_some_and(|job| job.descriptor.flags().intersects(READBACK));
            if works && self.is_abandoned(id) {
                given_up.push(id);
                continue;
            }
            if works {
                let group = self.queues[usize::from(route.queue)].config.group;
                let group = self.config.groups.iter().position(|g| g.id == group);
                self.read_back.extend(group.map(|group| (group, id)));
                continue;
            }
            let record = CompletionRecord::with_status(Status::SUCCESS);
            self.tell(id, &record, effects);
        }
        self.drained = drained;
        for id in given_up {
            self.done(id, &Outcome::default(), effects);
        }
    }

    /// Ends a job and appends what its submitter is told.
    #[inline]
    fn tell(
        &mut self,
        id: WorkId,
        record: &CompletionRecord,
        effects: &mut Vec<Effect>,
    ) -> Option<Route> {
        const RECORD: Flags =
            Flags::COMPLETION_ADDRESS_VALID.union(Flags::REQUEST_COMPLETION_RECORD);
        let job = self.jobs.remove(id)?;
        let route = job.route;
        if route.fate != Fate::default() || !is_plain(record.status()) {
            let job = *job;
            self.tell_in_full(id, &job, record, effects);
            return Some(route);
        }
        self.steps.push(|| Step::Ended {
            id,
            record: Some(*record),
        });
        let flags = job.descriptor.flags();
        if flags.contains(RECORD) {
            effects.push(Effect::Record {
                address: job.descriptor.completion_addr,
                record: *record,
                pasid: route.submitter.pasid,
            });
        }
        if flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT) {
            let handle = job.descriptor.interrupt_handle;
            self.interrupt(&route, handle, effects);
        }
        Some(route)
    }

    /// The end of a job that is not plain, or that somebody waits for.
    #[cold]
    fn tell_in_full(
        &mut self,
        id: WorkId,
        job: &Job,
        record: &CompletionRecord,
        effects: &mut Vec<Effect>,
    ) {
        let route = job.route;
        self.awaited -= u32::from(route.fate.awaited);
        let queue = usize::from(route.queue);
        let wq = self.queues[queue].config.id;
        // No record, no interrupt (spec 3.15).
        if route.fate.abandoned {
            self.steps.push(|| Step::Ended { id, record: None });
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
        self.steps.push(|| Step::Ended {
            id,
            record: Some(record),
        });
        let notice = Notice {
            wq,
            job,
            unwritable,
            logged: self.event_log.on,
            first: self.lacks_first_entry(&route),
        };
        let told = notice.tell(&record, effects);
        if let Kin::Member { of, slot, .. } = route.kin
            && let Some(batch) = self.jobs.get_mut(of)
        {
            batch.route.fate.logged |= told.record_in_log;
            self.batches.get_mut(slot).entered |= told.entered;
        }
        if told.interrupt {
            self.interrupt(&route, job.descriptor.interrupt_handle, effects);
        }
    }

    /// Whether an entry of the event log for this member would be the first of its batch.
    fn lacks_first_entry(&mut self, route: &Route) -> bool {
        match route.kin {
            Kin::Member { of, slot, .. } => {
                self.jobs.get(of).is_some() && !self.batches.get_mut(slot).entered
            }
            _ => false,
        }
    }

    /// Out of the way of completions that are polled for.
    #[cold]
    fn interrupt(&mut self, route: &Route, handle: u16, effects: &mut Vec<Effect>) {
        let source = Source::of(route.message_storage);
        effects.extend(match &mut self.interrupts {
            None => Some(Effect::Interrupt { handle }),
            Some(tables) => tables.complete(source, handle),
        });
    }
}

/// The end of a descriptor that nobody is told of.
#[cold]
pub(super) fn abandoned(wq: u16, job: &Job) -> Effect {
    let d = &job.descriptor;
    let addressed = d.flags().contains(Flags::COMPLETION_ADDRESS_VALID);
    Effect::Abandoned {
        wq,
        completion: addressed.then_some(d.completion_addr),
        member: job.route.is_member(),
    }
}
