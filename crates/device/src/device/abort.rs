//! Commands that wait for descriptors, or give them up (spec 3.15).

use dray_spec::{CompletionRecord, Flags, Status};

use super::Device;
use super::ending::abandoned;
use crate::job::JobOrigin;
use crate::{DescriptorResult, Effect, LifecycleEvent, WorkId};

/// Descriptors that a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All.
    All,
    /// Those of 16 work queues from `first` on, a bit each.
    Queues { first: u16, mask: u16 },
    /// Those of a PASID.
    Pasid(u32),
}

impl Scope {
    /// Whether it names the work queue.
    pub(crate) fn has_queue(self, wq: u16) -> bool {
        match self {
            Scope::Queues { first, mask } => {
                let bit = wq.checked_sub(first).filter(|bit| *bit < 16);
                bit.is_some_and(|bit| mask >> bit & 1 == 1)
            }
            _ => false,
        }
    }
}

impl Device {
    /// Waits for what is there now: [`Device::awaited`] counts it down. What comes later is not
    /// waited for, and only one command waits at a time.
    pub(crate) fn await_work(&mut self, scope: Scope) {
        self.awaited = 0;
        for id in self.jobs.ids() {
            let Some(job_origin) = self.jobs.get(id).map(|job| job.job_origin) else {
                continue;
            };
            // A batch ends after its members.
            let awaited = !job_origin.is_member() && self.concerns(scope, &job_origin);
            if let Some(job) = self.jobs.get_mut(id) {
                job.job_origin.disposition.awaited = awaited;
            }
            self.awaited += u32::from(awaited);
        }
    }

    /// Descriptors that the last command to wait still waits for.
    pub(crate) fn awaited(&self) -> u32 {
        self.awaited
    }

    /// Gives descriptors up: what is in a queue is gone, what has left it is not reported. Its end
    /// is still to come, and can be [awaited](Device::await_work): engines may be at it.
    pub(crate) fn abandon_work(&mut self, scope: Scope, effects: &mut Vec<Effect>) {
        for index in 0..self.queues.len() {
            let entries = self.queues[index].entries();
            let gone: Vec<WorkId> = entries
                .filter(|id| {
                    let job = self.jobs.get(*id);
                    job.is_some_and(|job| self.concerns(scope, &job.job_origin))
                })
                .collect();
            self.queues[index].forget(&gone);
            for id in gone {
                let job = self.jobs.remove(id).copied();
                let job = job.expect("an entry of a queue has not ended");
                self.no_longer_awaited(job.job_origin.disposition);
                effects.push(abandoned(self.queues[index].config.id, &job));
                self.lifecycle
                    .push(|| LifecycleEvent::Ended { id, record: None });
            }
        }
        let mut batches = Vec::new();
        for id in self.jobs.ids() {
            let Some(job_origin) = self.jobs.get(id).map(|job| job.job_origin) else {
                continue;
            };
            if !self.concerns(scope, &job_origin) {
                continue;
            }
            if let Some(job) = self.jobs.get_mut(id) {
                job.job_origin.disposition.abandoned = true;
            }
            if let Some(slot) = job_origin.batch() {
                batches.push((id, slot));
            }
        }
        for (id, slot) in batches {
            let batch = self.batches.get_mut(slot);
            // A list that is being read is still to come.
            let reading = !batch.is_fetched();
            batch.abandon();
            if !reading && batch.ended() {
                self.end_batch(id, slot, effects);
            }
        }
        self.end_read_backs(effects);
        debug_assert!(self.invariant());
    }

    /// Drains that an engine was to carry out, and that are given up before one has, end.
    fn end_read_backs(&mut self, effects: &mut Vec<Effect>) {
        let waiting = std::mem::take(&mut self.read_back);
        for (group, id) in waiting {
            match self.is_abandoned(id) {
                true => self.done(id, &DescriptorResult::default(), effects),
                false => self.read_back.push((group, id)),
            }
        }
    }

    /// Whether an engine's work on this need not go on: its end is not reported. The
    /// runner must call `done` for it all the same.
    pub fn is_abandoned(&self, id: WorkId) -> bool {
        let job = self.jobs.get(id);
        job.is_none_or(|job| job.job_origin.disposition.abandoned)
    }

    /// Of all descriptors that have not ended, and that a record was asked of: the record with this status, for a
    /// runner that cannot go on. Members come before their batches. The device knows nothing of it.
    pub fn records_of_unended(&self, status: Status) -> Vec<Effect> {
        let mut records: Vec<(bool, Effect)> = Vec::new();
        for id in self.jobs.ids() {
            let Some(job) = self.jobs.get(id) else {
                continue;
            };
            let addressed = job
                .descriptor
                .flags()
                .contains(Flags::COMPLETION_ADDRESS_VALID);
            if addressed && !job.job_origin.disposition.abandoned {
                let record = Effect::Record {
                    address: job.descriptor.completion_addr,
                    record: CompletionRecord::with_status(status),
                    pasid: job.job_origin.submitter.pasid,
                };
                records.push((job.job_origin.is_member(), record));
            }
        }
        records.sort_by_key(|(is_member, _)| !is_member);
        records.into_iter().map(|(_, record)| record).collect()
    }

    fn concerns(&self, scope: Scope, job_origin: &JobOrigin) -> bool {
        let queue = &self.queues[usize::from(job_origin.queue)].config;
        match scope {
            Scope::All => true,
            Scope::Queues { .. } => scope.has_queue(queue.id),
            Scope::Pasid(pasid) => queue.pasid.is_some() && job_origin.submitter.pasid == pasid,
        }
    }
}
