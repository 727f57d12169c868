//! A batch in progress: its members, their order, its fences (spec 3.8, 3.9).

use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

/// What can be said about the next member.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextMember {
    /// This one may start.
    Start(Descriptor),
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
}

impl Batch {
    /// The list is there. `failed`: an earlier part of the batch had failed already.
    pub(crate) fn begin(&mut self, list: &[Descriptor], failed: bool) {
        self.members.clear();
        self.members.extend_from_slice(list);
        self.next = 0;
        self.outstanding = 0;
        self.processed = 0;
        self.failed = failed;
        self.fetched = true;
        self.abandon_behind_failed_fence();
    }

    pub(crate) fn next(&mut self) -> NextMember {
        let Some(member) = self.members.get(self.next) else {
            return NextMember::None;
        };
        if member.flags().contains(Flags::FENCE) && self.outstanding > 0 {
            return NextMember::Fenced;
        }
        self.next += 1;
        self.outstanding += 1;
        NextMember::Start(*member)
    }

    /// A member ended. True if the batch has ended with it.
    pub(crate) fn member_done(&mut self, status: Status) -> bool {
        self.outstanding -= 1;
        self.processed += 1;
        // A false predicate is not plain success: it stops a fence too.
        self.failed |= status != Status::SUCCESS;
        self.abandon_behind_failed_fence();
        self.ended()
    }

    /// Whether all members that will ever run have run.
    pub(crate) fn ended(&self) -> bool {
        self.fetched && self.outstanding == 0 && self.next == self.members.len()
    }

    /// The record of the batch descriptor itself.
    pub(crate) fn record(&self) -> CompletionRecord {
        let mut record = CompletionRecord::with_status(match self.failed {
            true => Status::BATCH_FAIL,
            false => Status::SUCCESS,
        });
        record.bytes_completed = self.processed;
        record
    }

    /// A fenced member behind a failure never runs, nor does anything after it: no record, no
    /// interrupt (spec 3.9).
    fn abandon_behind_failed_fence(&mut self) {
        let fenced = |d: &Descriptor| d.flags().contains(Flags::FENCE);
        if self.outstanding == 0 && self.failed && self.members.get(self.next).is_some_and(fenced) {
            self.members.truncate(self.next);
        }
    }
}
