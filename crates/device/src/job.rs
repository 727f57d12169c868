//! Descriptors on their way, and the handles that runners hold on them.

use dray_spec::Descriptor;

use crate::drain::DrainSlot;

/// Handle of a descriptor on its way.
///
/// A handle whose descriptor has ended stands for nothing, also when its place is taken again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId {
    slot: u32,
    generation: u32,
}

/// A descriptor on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) descriptor: Descriptor,
    pub(crate) job_origin: JobOrigin,
}

/// In whose name a descriptor runs; a member of a batch runs in that of the batch (spec 8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Submitter {
    /// 20 bits; 0 where PASIDs are not in use.
    pub(crate) pasid: u32,
    pub(crate) privileged: bool,
}

/// Why the end of a descriptor on its way will not be a plain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Disposition {
    /// A command waits for its end (spec 3.15).
    pub(crate) awaited: bool,
    /// An abort has given it up: its end is not reported (spec 3.15).
    pub(crate) abandoned: bool,
    /// The page of its record cannot be written, and the event log takes the record (spec 3.13.3).
    pub(crate) record_faults: bool,
    /// The event log takes the end of this drain or batch, for what was before or in it (spec 5.9).
    pub(crate) logged: bool,
}

/// Where a descriptor came from and what it belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JobOrigin {
    /// Index of its queue.
    pub(crate) queue: u16,
    /// Where drains of its queue count it.
    pub(crate) place: DrainSlot,
    /// Its interrupt is one of the interrupt message storage.
    pub(crate) message_storage: bool,
    /// Why its end will not be plain.
    pub(crate) disposition: Disposition,
    /// In whose name it runs.
    pub(crate) submitter: Submitter,
    pub(crate) role: BatchRole,
}

/// What a descriptor has to do with a batch; there is none within another (spec 3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum BatchRole {
    /// Nothing, or it is one that has not been taken.
    #[default]
    Single,
    /// It is one, with its state in this slot.
    Batch(u32),
    /// It is a member.
    Member {
        /// The batch descriptor.
        of: WorkId,
        /// Slot of the batch.
        slot: u32,
        /// Which one.
        number: u16,
    },
}

impl JobOrigin {
    /// Slot of its own batch state.
    #[inline]
    pub(crate) fn batch(&self) -> Option<u32> {
        match self.role {
            BatchRole::Batch(slot) => Some(slot),
            _ => None,
        }
    }

    pub(crate) fn is_member(&self) -> bool {
        matches!(self.role, BatchRole::Member { .. })
    }
}

#[derive(Debug, Clone)]
struct Slot {
    generation: u32,
    job: Job,
}

/// All descriptors on their way. Places are used again: nothing is allocated once there are as many
/// as were ever on their way together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jobs {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Jobs {
    #[inline]
    pub(crate) fn insert(&mut self, job: Job) -> WorkId {
        match self.free.pop() {
            Some(slot) => {
                let place = &mut self.slots[slot as usize];
                place.job = job;
                WorkId {
                    slot,
                    generation: place.generation,
                }
            }
            None => {
                self.slots.push(Slot { generation: 0, job });
                WorkId {
                    slot: self.slots.len() as u32 - 1,
                    generation: 0,
                }
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: WorkId) -> Option<&Job> {
        let slot = self.slots.get(id.slot as usize)?;
        (slot.generation == id.generation).then_some(&slot.job)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: WorkId) -> Option<&mut Job> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.generation == id.generation).then_some(&mut slot.job)
    }

    /// How many are on their way.
    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Handles of all that are on their way, in no order that means anything.
    pub(crate) fn ids(&self) -> Vec<WorkId> {
        let mut live = vec![true; self.slots.len()];
        for slot in &self.free {
            live[*slot as usize] = false;
        }
        let slots = (0..).zip(&self.slots).zip(live);
        let id = |((slot, place), live): ((u32, &Slot), bool)| {
            live.then_some(WorkId {
                slot,
                generation: place.generation,
            })
        };
        slots.filter_map(id).collect()
    }

    /// Ends a job. It can be read until the next one is inserted.
    #[inline]
    pub(crate) fn remove(&mut self, id: WorkId) -> Option<&Job> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        Some(&slot.job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(queue: u16) -> Job {
        Job {
            descriptor: Descriptor::noop(),
            job_origin: JobOrigin {
                queue,
                ..JobOrigin::default()
            },
        }
    }

    #[test]
    fn an_old_handle_does_not_reach_the_new_job_in_its_place() {
        let mut jobs = Jobs::default();
        let first = jobs.insert(job(1));
        assert_eq!(jobs.remove(first).map(|j| j.job_origin.queue), Some(1));
        assert!(jobs.get(first).is_none());
        assert!(jobs.remove(first).is_none());
        let second = jobs.insert(job(2));
        assert!(jobs.get(first).is_none());
        assert!(jobs.get_mut(first).is_none());
        assert!(jobs.remove(first).is_none());
        assert_eq!(jobs.get(second).map(|j| j.job_origin.queue), Some(2));
        assert_eq!(jobs.slots.len(), 1);
    }
}
