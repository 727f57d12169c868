//! Batches in progress: their members, the order of these, their fences (spec 3.8, 3.9).

use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use crate::effect::{Operand, fault_info};

/// What can be said about the next member.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextMember<'a> {
    /// This one may start; its number in the batch.
    Start(&'a Descriptor, u16),
    /// A fence waits for members that have started.
    Fenced,
    /// There is none left to start.
    None,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    members: Vec<Descriptor>,
    next: usize,
    outstanding: u32,
    processed: u32,
    failed: bool,
    fetched: bool,
    /// Where the list could not be read further.
    fault: Option<u64>,
    /// The event log has the entry that says it is the first of the batch.
    pub(crate) entered: bool,
}

impl Batch {
    /// The list is there, or what of it can be read before `fault`. `failed`: an earlier part of
    /// the batch had failed already.
    pub(crate) fn begin(&mut self, list: &[Descriptor], fault: Option<u64>, failed: bool) {
        self.members.clear();
        self.members.extend_from_slice(list);
        self.failed = failed;
        self.fault = fault;
        self.fetched = true;
        self.abandon_behind_failed_fence();
        debug_assert!(self.invariant(), "{self:?}");
    }

    /// Each member that has started is on its way or has ended.
    fn invariant(&self) -> bool {
        let started = self.outstanding as usize + self.processed as usize;
        self.next == started && self.next <= self.members.len()
    }

    pub(crate) fn is_fetched(&self) -> bool {
        self.fetched
    }

    #[inline]
    pub(crate) fn next(&mut self) -> NextMember<'_> {
        let Some(member) = self.members.get(self.next) else {
            return NextMember::None;
        };
        if member.flags().contains(Flags::FENCE) && self.outstanding > 0 {
            return NextMember::Fenced;
        }
        let number = self.next as u16;
        self.next += 1;
        self.outstanding += 1;
        NextMember::Start(member, number)
    }

    /// Members that have started.
    pub(crate) fn started(&self) -> u32 {
        self.next as u32
    }

    /// The next member, whether it may start or not.
    #[inline]
    pub(crate) fn peek(&self) -> Option<&Descriptor> {
        self.members.get(self.next)
    }

    /// The next member starts, which has no fence.
    #[inline]
    pub(crate) fn start_next(&mut self) {
        self.next += 1;
        self.outstanding += 1;
        debug_assert!(self.invariant(), "{self:?}");
    }

    /// A member ended. True if the batch has ended with it.
    #[inline]
    pub(crate) fn member_done(&mut self, status: Status) -> bool {
        let left = self.outstanding.checked_sub(1);
        self.outstanding = left.expect("a member ends once");
        self.processed += 1;
        debug_assert!(self.invariant(), "{self:?}");
        // A false predicate is not plain success: it stops a fence too.
        self.failed |= status != Status::SUCCESS;
        if self.outstanding > 0 {
            return false;
        }
        self.abandon_behind_failed_fence();
        self.ended()
    }

    /// No further member starts, and no list is waited for.
    pub(crate) fn abandon(&mut self) {
        self.fetched = true;
        self.members.truncate(self.next);
    }

    /// Whether all members that will ever run have run.
    pub(crate) fn ended(&self) -> bool {
        self.fetched && self.outstanding == 0 && self.next == self.members.len()
    }

    /// The record of the batch descriptor itself. With `continuation` (GENCAP bit 15) it says also
    /// beside a page fault whether a member failed (spec 8.3.2).
    pub(crate) fn record(&self, continuation: bool) -> CompletionRecord {
        let mut record = CompletionRecord::with_status(match (self.fault, self.failed) {
            (Some(_), _) => Status::BATCH_PAGE_FAULT,
            (None, true) => Status::BATCH_FAIL,
            (None, false) => Status::SUCCESS,
        });
        if let Some(address) = self.fault {
            record.fault_address = address;
            record.fault_info = fault_info(Operand::First);
        }
        record.result = u8::from(continuation && self.failed);
        record.bytes_completed = self.processed;
        record
    }

    /// A fenced member behind a failure never runs, nor does anything after it: no record, no
    /// interrupt (spec 3.9). What could not be read of the list does not matter then.
    fn abandon_behind_failed_fence(&mut self) {
        let fenced = |d: &Descriptor| d.flags().contains(Flags::FENCE);
        if self.outstanding == 0 && self.failed && self.members.get(self.next).is_some_and(fenced) {
            self.members.truncate(self.next);
            self.fault = None;
        }
    }
}

/// All batches in progress. Places, and the room for their lists, are used again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batches {
    slots: Vec<Batch>,
    free: Vec<u32>,
}

impl Batches {
    pub(crate) fn insert(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Batch::default());
            self.slots.len() as u32 - 1
        })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Batch {
        &mut self.slots[slot as usize]
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let batch = self.get_mut(slot);
        let mut members = std::mem::take(&mut batch.members);
        members.clear();
        *batch = Batch {
            members,
            ..Batch::default()
        };
        self.free.push(slot);
    }
}
