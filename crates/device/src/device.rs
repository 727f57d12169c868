//! The device: queues, groups and engines, and the way of a descriptor through them.

mod abort;
mod domains;
mod ending;
mod members;
mod setup;
mod start;
mod translation;

use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::arbiter::Arbiter;
use crate::batch::Batches;
use crate::check::{Checker, is_inter_domain};
use crate::idpt::Idpt;
use crate::job::{BatchRole, Job, JobOrigin, Jobs};
use crate::lifecycle::Lifecycle;
use crate::queue::{State, WorkQueue};
use crate::registers::{Claim, Interrupts, Source};
use crate::{
    DeviceConfig, Effect, LifecycleEvent, Portal, Submission, Work, WorkId, WorkKind,
    WorkQueueConfig, WorkQueueMode,
};
use domains::Windows;

pub(crate) use abort::Scope;

/// Software errors that are kept for [`Device::take_errors`]. Hardware keeps one and a bit that says
/// that there were more (spec 9.2.15); a writer that floods a full queue must not fill the memory.
const MOST_ERRORS: usize = 4096;

/// Flags of a drain that an engine has to carry out, once it has waited.
const READBACK: Flags = Flags::DRAIN_READBACK1_VALID.union(Flags::DRAIN_READBACK2_VALID);

/// What the device is enabled with that decides which ends go to the event log (spec 5.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EventLog {
    /// It is on.
    pub(crate) on: bool,
    /// PCI has the page request service on.
    pub(crate) page_requests: bool,
}

impl EventLog {
    /// Whether the success of a drain of this queue is reported there.
    fn takes_drains(self, queue: &WorkQueueConfig) -> bool {
        self.on && (!self.page_requests || queue.prs_disable)
    }
}

/// The virtual device without its registers: queues, groups, engines and what is in them.
///
/// [`Device::new`] makes one that is enabled; a [`Function`](crate::Function) enables, disables and
/// resets it as software writes its registers.
#[derive(Debug, Clone)]
pub struct Device {
    config: DeviceConfig,
    queues: Vec<WorkQueue>,
    checkers: Vec<Checker>,
    /// Queue index by work queue id.
    by_id: Vec<Option<usize>>,
    arbiters: Vec<Arbiter>,
    /// Arbiter (and group) index by engine id.
    group_of_engine: Vec<Option<usize>>,
    jobs: Jobs,
    batches: Batches,
    idpt: Idpt,
    windows: Windows,
    drained: Vec<WorkId>,
    /// Batches whose members have ended, where their runner ends them.
    held_batches: Option<Vec<WorkId>>,
    /// Drains with nothing left to wait for that read back, with their groups' indices.
    read_back: Vec<(usize, WorkId)>,
    errors: Vec<Effect>,
    /// Descriptors that a command waits for.
    awaited: u32,
    /// A queue has been enabled since the device was whose work is not translated.
    untranslated: bool,
    lifecycle: Lifecycle,
    /// The interrupt tables. Without them every handle is good, and goes to the runner as it is.
    interrupts: Option<Interrupts>,
    event_log: EventLog,
    /// GENCAP bits 12 and 15, which decide what records say.
    fault_info: bool,
    batch_continuation: bool,
}

impl Device {
    /// How it is configured.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Engines that serve the group of a work queue, in order; empty for a queue that is not there.
    pub fn engines_of(&self, wq: u16) -> &[u16] {
        let queue = self.queue_index(wq).map(|i| &self.queues[i]);
        let queue = queue.filter(|queue| queue.state != State::Disabled);
        let group = queue.map(|queue| queue.config.group);
        self.config
            .groups
            .iter()
            .find(|g| Some(g.id) == group)
            .map_or(&[], |g| &g.engines)
    }

    /// Entries of a work queue in use; `None` for a queue that is not there.
    pub fn occupancy(&self, wq: u16) -> Option<u16> {
        let queue = &self.queues[self.queue_index(wq)?];
        (queue.state != State::Disabled).then(|| queue.occupancy())
    }

    /// A posted 64-byte write to a portal (MOVDIR64B). The writer does not learn what became of it.
    #[inline]
    pub fn write_posted(&mut self, portal: Portal, descriptor: &Descriptor) -> Submission {
        self.post(portal, false, descriptor)
    }

    /// A deferrable 64-byte write to a portal (ENQCMD): accepted, or retry.
    #[inline]
    pub fn enqueue(&mut self, portal: Portal, descriptor: &Descriptor) -> Submission {
        self.defer(portal, false, descriptor)
    }

    /// A posted write; `message_storage` for one to an IMS portal.
    #[inline]
    pub(crate) fn post(&mut self, to: Portal, message_storage: bool, d: &Descriptor) -> Submission {
        const OPEN: State = State::Enabled(WorkQueueMode::Dedicated);
        match self.queue_index(to.wq) {
            Some(i) if self.queues[i].state == OPEN => {
                if self.queues[i].has_room(to.limited) {
                    self.accept(i, message_storage, d);
                    Submission::Accepted
                } else {
                    if self.errors.len() < MOST_ERRORS {
                        self.errors.push(Effect::SoftwareError {
                            status: Status::WQ_OVERFLOW,
                            wq: to.wq,
                            address: 0,
                            origin: None,
                            record: CompletionRecord::default(),
                        });
                    }
                    Submission::Lost
                }
            }
            _ => Submission::Ignored,
        }
    }

    /// A deferrable write; `message_storage` for one to an IMS portal.
    #[inline]
    pub(crate) fn defer(
        &mut self,
        to: Portal,
        message_storage: bool,
        d: &Descriptor,
    ) -> Submission {
        const OPEN: State = State::Enabled(WorkQueueMode::Shared);
        match self.queue_index(to.wq) {
            Some(i) if self.queues[i].state == OPEN && self.queues[i].has_room(to.limited) => {
                self.accept(i, message_storage, d);
                Submission::Accepted
            }
            _ => Submission::Retry,
        }
    }

    /// Software errors of submission since the last call, in order; the first 4096 of them.
    pub fn take_errors(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.errors)
    }

    /// Next descriptor for `engine` from the queues of its group; its entry is free with that.
    ///
    /// A drain with work before it does not reach the engine: it ends with the last of that work.
    #[inline]
    pub fn take(&mut self, engine: u16) -> Option<Work> {
        let group = (*self.group_of_engine.get(usize::from(engine))?)?;
        if !self.read_back.is_empty()
            && let Some(at) = self.read_back.iter().position(|drain| drain.0 == group)
        {
            let id = self.read_back.remove(at).1;
            let kind = WorkKind::Execute(Opcode::Drain);
            return Some(Work { id, kind });
        }
        loop {
            let queues = &self.queues;
            let index = self.arbiters[group].pick(|i| queues[i].front().is_some())?;
            let id = self.queues[index].pop()?;
            let job = self.jobs.get_mut(id);
            let job = job.expect("an entry of a queue has not ended");
            let submitter = job.job_origin.submitter;
            let mut checked = self.checkers[index].check(&job.descriptor, submitter, false);
            if let Some(interrupts) = &self.interrupts
                && checked.is_ok()
            {
                let claim = Claim {
                    pasid_enable: self.queues[index].config.pasid.is_some(),
                    pasid: submitter.pasid,
                };
                let source = Source::of(job.job_origin.message_storage);
                if !interrupts.allow(&job.descriptor, source, claim) {
                    checked = Err(Status::INTERRUPT_HANDLE.into());
                }
            }
            let queue = &mut self.queues[index];
            let counters = &mut queue.counters;
            if checked == Ok(Opcode::Drain) {
                job.job_origin.disposition.logged = self.event_log.takes_drains(&queue.config);
                let reads_back = job.descriptor.flags().intersects(READBACK);
                if let Some(place) = counters.begin_drain(submitter.pasid, id, reads_back) {
                    job.job_origin.place = place;
                    continue;
                }
            }
            job.job_origin.place = counters.begin(submitter.pasid);
            let kind = match checked {
                Err(rejection) => WorkKind::Reject(rejection),
                Ok(opcode) if is_inter_domain(opcode) => match self.begin_between(id, opcode) {
                    Some(kind) => kind,
                    None => continue,
                },
                Ok(Opcode::Batch) => {
                    job.job_origin.role = BatchRole::Batch(self.batches.insert());
                    WorkKind::FetchList {
                        address: job.descriptor.address1,
                        count: job.descriptor.size,
                    }
                }
                Ok(opcode) => WorkKind::Execute(opcode),
            };
            return Some(Work { id, kind });
        }
    }

    /// Whether something waits for `engine` in the queues of its group.
    pub fn has_work(&self, engine: u16) -> bool {
        let group = self.group_of_engine.get(usize::from(engine));
        let Some(group) = group.copied().flatten() else {
            return false;
        };
        self.read_back.iter().any(|drain| drain.0 == group)
            || self.arbiters[group].any(|queue| self.queues[queue].front().is_some())
    }

    /// The descriptor of work that has not ended.
    #[inline]
    pub fn descriptor(&self, id: WorkId) -> Option<&Descriptor> {
        self.jobs.get(id).map(|job| &job.descriptor)
    }

    /// Where the completion record of work that has not ended goes, if that must be writable before
    /// the work begins (spec 5.4). `None` also for work that is not [translated](Device::translates):
    /// there, a record that cannot be written is ignored (spec 3.13.1).
    #[inline]
    fn record_address(&self, id: WorkId) -> Option<u64> {
        let descriptor = self.descriptor(id)?;
        let addressed = descriptor.flags().contains(Flags::COMPLETION_ADDRESS_VALID);
        (addressed && self.translates(id)).then_some(descriptor.completion_addr)
    }

    /// The queue through which work that has not ended, or its batch, has come.
    #[inline]
    pub fn queue_of(&self, id: WorkId) -> Option<&WorkQueueConfig> {
        let job = self.jobs.get(id)?;
        Some(&self.queues[usize::from(job.job_origin.queue)].config)
    }

    /// The page of the record of this work cannot be written: the event log takes the record, if it is
    /// on (spec 3.13.3).
    fn record_faults(&mut self, id: WorkId) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.job_origin.disposition.record_faults = self.event_log.on;
        }
    }

    /// Keeps, from now on, what [`take_lifecycle`](Device::take_lifecycle) gives.
    pub fn record_lifecycle(&mut self) {
        self.lifecycle.keep();
    }

    /// What has happened to descriptors since the last call, in order, if that is
    /// [kept](Device::record_lifecycle).
    pub fn take_lifecycle(&mut self) -> impl Iterator<Item = LifecycleEvent> + '_ {
        self.lifecycle.take()
    }

    #[inline]
    fn accept(&mut self, index: usize, message_storage: bool, descriptor: &Descriptor) {
        let submitter = self.queues[index].submitter(descriptor);
        let id = self.jobs.insert(Job {
            descriptor: *descriptor,
            job_origin: JobOrigin {
                queue: index as u16,
                message_storage,
                submitter,
                ..JobOrigin::default()
            },
        });
        self.queues[index].push(id);
        debug_assert!(self.invariant(), "{:?}", self.queues[index]);
        let wq = self.queues[index].config.id;
        self.lifecycle.push(|| LifecycleEvent::Accepted {
            id,
            wq,
            pasid: submitter.pasid,
            descriptor: *descriptor,
        });
    }

    /// No queue holds more than its entries, and no more is waited for, or in queues, than is on its way.
    pub(crate) fn invariant(&self) -> bool {
        let within = |queue: &WorkQueue| queue.occupancy() <= queue.config.size;
        let queued: usize = self.queues.iter().map(|q| usize::from(q.occupancy())).sum();
        let live = self.jobs.live();
        self.queues.iter().all(within) && queued <= live && self.awaited as usize <= live
    }

    #[inline]
    fn queue_index(&self, wq: u16) -> Option<usize> {
        *self.by_id.get(usize::from(wq))?
    }
}
