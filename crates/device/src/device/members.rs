//! Batches on the device: their lists arrive, their members start.

use dray_spec::{Descriptor, Flags, Opcode, Status};

use super::Device;
use crate::batch::NextMember;
use crate::drain::DrainSlot;
use crate::job::{BatchRole, Disposition, Job, JobOrigin};
use crate::registers::{Claim, Source};
use crate::{Effect, Member, Work, WorkId, WorkKind};

impl Device {
    /// Next member of batch `id` that may start.
    #[inline]
    pub fn next_member(&mut self, id: WorkId) -> Member {
        let Some(&JobOrigin {
            queue,
            message_storage,
            disposition,
            submitter,
            role: BatchRole::Batch(slot),
            ..
        }) = self.jobs.get(id).map(|job| &job.job_origin)
        else {
            return Member::None;
        };
        let (descriptor, number) = match self.batches.get_mut(slot).next() {
            NextMember::Start(descriptor, number) => (descriptor, number),
            NextMember::Fenced => return Member::Fenced,
            NextMember::None => return Member::None,
        };
        let index = usize::from(queue);
        let mut checked = self.checkers[index].check(descriptor, submitter, true);
        if let Some(interrupts) = &self.interrupts
            && checked.is_ok()
        {
            let claim = Claim {
                pasid_enable: self.queues[index].config.pasid.is_some(),
                pasid: submitter.pasid,
            };
            if !interrupts.allow(descriptor, Source::of(message_storage), claim) {
                checked = Err(Status::INTERRUPT_HANDLE.into());
            }
        }
        let kind = match checked {
            Ok(opcode) => WorkKind::Execute(opcode),
            Err(rejection) => WorkKind::Reject(rejection),
        };
        let id = self.jobs.insert(Job {
            descriptor: *descriptor,
            job_origin: JobOrigin {
                queue,
                place: DrainSlot::default(),
                message_storage,
                disposition: Disposition {
                    abandoned: disposition.abandoned,
                    ..Disposition::default()
                },
                submitter,
                role: BatchRole::Member {
                    of: id,
                    slot,
                    number,
                },
            },
        });
        Member::Work(Work { id, kind })
    }

    /// How many members of batch `id` have started; `None` if it has ended.
    pub fn members_started(&mut self, id: WorkId) -> Option<u32> {
        let slot = self.jobs.get(id)?.job_origin.batch()?;
        Some(self.batches.get_mut(slot).started())
    }

    /// Starts the next member of batch `id` without a handle of its own, if `like` says of its operation that it will succeed;
    /// [`plain_done`](Device::plain_done) ends it. `None`, and nothing is changed, unless its end leaves a record and nothing
    /// else: it may run, and has neither a fence nor an interrupt.
    #[inline]
    pub fn start_plain<T>(
        &mut self,
        id: WorkId,
        like: impl FnOnce(Opcode, &Descriptor) -> Option<T>,
    ) -> Option<T> {
        const MORE: Flags = Flags::FENCE.union(Flags::REQUEST_COMPLETION_INTERRUPT);
        let job_origin = &self.jobs.get(id)?.job_origin;
        if job_origin.disposition.abandoned || self.lifecycle.is_kept() {
            return None;
        }
        let batch = self.batches.get_mut(job_origin.batch()?);
        let member = batch.peek()?;
        if member.flags().intersects(MORE) {
            return None;
        }
        let checker = &mut self.checkers[usize::from(job_origin.queue)];
        let opcode = checker.check(member, job_origin.submitter, true).ok()?;
        let started = like(opcode, member)?;
        batch.start_next();
        Some(started)
    }

    /// `count` members of batch `id` that [`start_plain`](Device::start_plain) has started have succeeded; their
    /// records are written.
    pub fn plain_done(&mut self, id: WorkId, count: u32, effects: &mut Vec<Effect>) {
        let Some(slot) = self.jobs.get(id).and_then(|job| job.job_origin.batch()) else {
            return;
        };
        let batch = self.batches.get_mut(slot);
        let ended = (0..count).fold(false, |_, _| batch.member_done(Status::SUCCESS));
        if ended {
            self.end_batch(id, slot, effects);
        }
    }

    pub(super) fn begin_batch(
        &mut self,
        id: WorkId,
        list: &[Descriptor],
        fault: Option<u64>,
        effects: &mut Vec<Effect>,
    ) {
        let Some((flags, disposition, slot)) = self.jobs.get(id).and_then(|job| {
            let job_origin = job.job_origin;
            Some((
                job.descriptor.flags(),
                job_origin.disposition,
                job_origin.batch()?,
            ))
        }) else {
            return;
        };
        let batch = self.batches.get_mut(slot);
        if batch.is_fetched() {
            // An abort has ended the wait for the list, and with its reader the batch is gone.
            if disposition.abandoned && batch.ended() {
                self.end_batch(id, slot, effects);
            }
            return;
        }
        batch.begin(list, fault, flags.contains(Flags::BATCH_ERROR));
        if batch.ended() {
            self.end_batch(id, slot, effects);
        }
    }
}
