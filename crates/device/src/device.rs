//! The device: queues, groups and engines, and the way of a descriptor through them.

use dray_spec::{Descriptor, Flags, Opcode, Status};

use crate::arbiter::Arbiter;
use crate::batch::{Batch, NextMember};
use crate::check::Checker;
use crate::config::ConfigError;
use crate::effect::emit;
use crate::queue::WorkQueue;
use crate::{DeviceConfig, Effect, Outcome, Rejection, WorkQueueMode};

/// A page of BAR2 (spec 9.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portal {
    /// Work queue.
    pub wq: u16,
    /// The page that stops at a shared queue's threshold.
    pub limited: bool,
}

/// What a portal answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submission {
    /// The descriptor has an entry.
    Accepted,
    /// ENQCMD found no room, or a queue that takes none: zero flag set.
    Retry,
    /// MOVDIR64B found a dedicated queue full: dropped, with a software error.
    Lost,
    /// A posted write where none is taken: nothing happens.
    Ignored,
}

/// Handle of a descriptor on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkId(u32);

/// Something for an engine to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// To say what became of it.
    pub id: WorkId,
    /// The descriptor.
    pub descriptor: Descriptor,
    /// What to do with it.
    pub kind: WorkKind,
}

/// What an engine does with a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Carry it out, then [`Device::done`].
    Execute(Opcode),
    /// Read `count` descriptors at `address`, then [`Device::list_fetched`].
    FetchList {
        /// 64-byte aligned address of the list.
        address: u64,
        /// Number of descriptors.
        count: u32,
    },
    /// Touch nothing; [`Device::done`] with the rejection's outcome.
    Reject(Rejection),
}

/// The next member of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// May start.
    Work(Work),
    /// A fence waits for members that have started: ask again after one of them is done.
    Fenced,
    /// All have started.
    None,
}

/// A descriptor on its way.
#[derive(Debug, Clone, Copy)]
struct Job {
    descriptor: Descriptor,
    wq: u16,
    epoch: u32,
    /// Batch that it is a member of.
    parent: Option<WorkId>,
    /// Slot of its own batch state, for a batch descriptor.
    batch: u32,
}

/// One virtual device, enabled.
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
    jobs: Vec<Job>,
    free_jobs: Vec<WorkId>,
    batches: Vec<Batch>,
    free_batches: Vec<u32>,
    drained: Vec<WorkId>,
    errors: Vec<Effect>,
}

impl Device {
    /// An enabled device.
    ///
    /// # Errors
    /// What the Enable Device and Enable WQ commands refuse (spec 5.1, 5.2).
    pub fn new(config: DeviceConfig) -> Result<Device, ConfigError> {
        config.check()?;
        let capabilities = &config.capabilities;
        let queues: Vec<WorkQueue> = config
            .work_queues
            .iter()
            .cloned()
            .map(WorkQueue::new)
            .collect();
        let checkers = config
            .work_queues
            .iter()
            .map(|wq| Checker::new(capabilities, wq))
            .collect();
        let mut by_id = vec![None; capabilities.max_work_queues.into()];
        for (index, wq) in config.work_queues.iter().enumerate() {
            by_id[usize::from(wq.id)] = Some(index);
        }
        let mut group_of_engine = vec![None; capabilities.max_engines.into()];
        let mut arbiters = Vec::new();
        for (index, group) in config.groups.iter().enumerate() {
            for engine in &group.engines {
                group_of_engine[usize::from(*engine)] = Some(index);
            }
            let members = config.work_queues.iter().enumerate();
            arbiters.push(Arbiter::new(
                members
                    .filter(|(_, wq)| wq.group == group.id)
                    .map(|(i, wq)| (i, wq.priority))
                    .collect(),
            ));
        }
        Ok(Device {
            queues,
            checkers,
            by_id,
            arbiters,
            group_of_engine,
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            batches: Vec::new(),
            free_batches: Vec::new(),
            drained: Vec::new(),
            errors: Vec::new(),
            config,
        })
    }

    /// How it is configured.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Engines that serve the group of a work queue, in order; empty for a queue that is not there.
    pub fn engines_of(&self, wq: u16) -> &[u16] {
        let group = self.queue_index(wq).map(|i| self.queues[i].config.group);
        self.config
            .groups
            .iter()
            .find(|g| Some(g.id) == group)
            .map_or(&[], |g| &g.engines)
    }

    /// Entries of a work queue in use; `None` for a queue that is not there.
    pub fn occupancy(&self, wq: u16) -> Option<u16> {
        self.queue_index(wq).map(|i| self.queues[i].occupancy())
    }

    /// A posted 64-byte write to a portal (MOVDIR64B). Nobody tells the writer what became of it.
    pub fn write_posted(&mut self, portal: Portal, descriptor: &Descriptor) -> Submission {
        match self.queue_index(portal.wq) {
            Some(i) if self.queues[i].config.mode == WorkQueueMode::Dedicated => {
                if self.queues[i].has_room(portal.limited) {
                    self.accept(i, descriptor);
                    Submission::Accepted
                } else {
                    self.errors.push(Effect::SoftwareError {
                        status: Status::WQ_OVERFLOW,
                        wq: portal.wq,
                        address: 0,
                    });
                    Submission::Lost
                }
            }
            _ => Submission::Ignored,
        }
    }

    /// A deferrable 64-byte write to a portal (ENQCMD): accepted, or retry.
    pub fn enqueue(&mut self, portal: Portal, descriptor: &Descriptor) -> Submission {
        match self.queue_index(portal.wq) {
            Some(i)
                if self.queues[i].config.mode == WorkQueueMode::Shared
                    && self.queues[i].has_room(portal.limited) =>
            {
                self.accept(i, descriptor);
                Submission::Accepted
            }
            _ => Submission::Retry,
        }
    }

    /// Software errors since the last call, in order.
    pub fn take_errors(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.errors)
    }

    /// Next descriptor for `engine` from the queues of its group; its entry is free with that.
    ///
    /// A drain with work before it does not reach the engine: it ends with the last of that work.
    pub fn take(&mut self, engine: u16) -> Option<Work> {
        let group = (*self.group_of_engine.get(usize::from(engine))?)?;
        loop {
            let queues = &self.queues;
            let index = self.arbiters[group].pick(|i| queues[i].front().is_some())?;
            let id = self.queues[index].pop()?;
            let descriptor = self.job(id).descriptor;
            let checked = self.checkers[index].check(&descriptor, false);
            if checked == Ok(Opcode::Drain) && !self.queues[index].begin_drain(id) {
                continue;
            }
            let epoch = self.queues[index].begin();
            self.job_mut(id).epoch = epoch;
            let kind = match checked {
                Err(rejection) => WorkKind::Reject(rejection),
                Ok(Opcode::Batch) => {
                    let batch = self.new_batch();
                    self.job_mut(id).batch = batch;
                    WorkKind::FetchList {
                        address: descriptor.address1,
                        count: descriptor.size,
                    }
                }
                Ok(opcode) => WorkKind::Execute(opcode),
            };
            return Some(Work {
                id,
                descriptor,
                kind,
            });
        }
    }

    /// The descriptor list of batch `id` has been read. An empty list ends the batch at once.
    pub fn list_fetched(&mut self, id: WorkId, list: &[Descriptor], effects: &mut Vec<Effect>) {
        let job = *self.job(id);
        let failed = job.descriptor.flags().contains(Flags::BATCH_ERROR);
        let batch = &mut self.batches[job.batch as usize];
        batch.begin(list, failed);
        if batch.ended() {
            self.end_batch(id, effects);
        }
    }

    /// The descriptor list of batch `id` cannot be read: no member runs (spec 3.13).
    pub fn list_faulted(&mut self, id: WorkId, address: u64, effects: &mut Vec<Effect>) {
        let batch = self.job(id).batch;
        self.free_batches.push(batch);
        let mut outcome = Outcome::status(Status::BATCH_PAGE_FAULT);
        outcome.record.fault_address = address;
        self.done(id, &outcome, effects);
    }

    /// Next member of batch `id` that may start.
    pub fn next_member(&mut self, id: WorkId) -> Member {
        let job = *self.job(id);
        let descriptor = match self.batches[job.batch as usize].next() {
            NextMember::Start(descriptor) => descriptor,
            NextMember::Fenced => return Member::Fenced,
            NextMember::None => return Member::None,
        };
        let index = self.queue_index(job.wq).unwrap_or_default();
        let kind = match self.checkers[index].check(&descriptor, true) {
            Ok(opcode) => WorkKind::Execute(opcode),
            Err(rejection) => WorkKind::Reject(rejection),
        };
        let id = self.new_job(Job {
            descriptor,
            wq: job.wq,
            epoch: 0,
            parent: Some(id),
            batch: 0,
        });
        Member::Work(Work {
            id,
            descriptor,
            kind,
        })
    }

    /// Work `id` has ended. Effects are appended in the order in which they must become visible.
    pub fn done(&mut self, id: WorkId, outcome: &Outcome, effects: &mut Vec<Effect>) {
        let job = *self.job(id);
        self.free_jobs.push(id);
        let d = &job.descriptor;
        let (flags, address, handle) = (d.flags(), d.completion_addr, d.interrupt_handle);
        emit(effects, job.wq, flags, address, handle, &outcome.record);
        match job.parent {
            Some(parent) => {
                let batch = self.job(parent).batch;
                if self.batches[batch as usize].member_done(outcome.record.status()) {
                    self.end_batch(parent, effects);
                }
            }
            None => self.leave(&job, effects),
        }
    }

    /// A batch descriptor ends after its last member.
    fn end_batch(&mut self, id: WorkId, effects: &mut Vec<Effect>) {
        let batch = self.job(id).batch;
        let record = self.batches[batch as usize].record();
        self.free_batches.push(batch);
        self.done(id, &Outcome { record }, effects);
    }

    /// A descriptor that came through a queue has ended: drains may end with it.
    fn leave(&mut self, job: &Job, effects: &mut Vec<Effect>) {
        let Some(index) = self.queue_index(job.wq) else {
            return;
        };
        let mut drained = std::mem::take(&mut self.drained);
        self.queues[index].end(job.epoch, &mut drained);
        for id in drained.drain(..) {
            let d = self.job(id).descriptor;
            let record = Outcome::status(Status::SUCCESS).record;
            let (flags, address, handle) = (d.flags(), d.completion_addr, d.interrupt_handle);
            emit(effects, job.wq, flags, address, handle, &record);
            self.free_jobs.push(id);
        }
        self.drained = drained;
    }

    fn accept(&mut self, index: usize, descriptor: &Descriptor) {
        let wq = self.queues[index].config.id;
        let id = self.new_job(Job {
            descriptor: *descriptor,
            wq,
            epoch: 0,
            parent: None,
            batch: 0,
        });
        self.queues[index].push(id);
    }

    fn queue_index(&self, wq: u16) -> Option<usize> {
        *self.by_id.get(usize::from(wq))?
    }

    fn job(&self, id: WorkId) -> &Job {
        &self.jobs[id.0 as usize]
    }

    fn job_mut(&mut self, id: WorkId) -> &mut Job {
        &mut self.jobs[id.0 as usize]
    }

    fn new_job(&mut self, job: Job) -> WorkId {
        match self.free_jobs.pop() {
            Some(id) => {
                self.jobs[id.0 as usize] = job;
                id
            }
            None => {
                self.jobs.push(job);
                WorkId(self.jobs.len() as u32 - 1)
            }
        }
    }

    fn new_batch(&mut self) -> u32 {
        self.free_batches.pop().unwrap_or_else(|| {
            self.batches.push(Batch::default());
            self.batches.len() as u32 - 1
        })
    }
}
