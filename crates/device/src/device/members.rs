//! Batches on the device: their lists arrive, their members start.

use dray_spec::{Descriptor, Flags, Status};

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
