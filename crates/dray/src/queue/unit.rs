//! What one descriptor of a queue names, and how it has ended.

use dray_spec::CompletionRecord;

/// Operations that one descriptor names: one, or a batch of neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) first: u32,
    pub(super) members: u32,
    /// It travels in parts: it is larger than a descriptor may be, or it was resumed after a page fault.
    pub(super) in_parts: bool,
    /// A member of a batch that has ended, alone: the rest of the batch waits for it.
    pub(super) of_batch: bool,
    /// Submissions that were not accepted.
    pub(super) retries: u32,
    /// Page faults after which it went on.
    pub(super) resumed: u32,
}

/// A unit that has ended, and its next member to report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) unit: Unit,
    pub(super) next: u32,
    /// A member of it has gone on alone.
    pub(super) has_resumed: bool,
    /// A member that was reported has not succeeded, or not as was expected.
    pub(super) has_failed: bool,
    /// A fence was behind one that failed: no member that has not run runs any more.
    pub(super) is_abandoned: bool,
    /// The record of the unit's descriptor.
    pub(super) record: CompletionRecord,
    /// It was taken back before a queue accepted it.
    pub(super) withdrawn: bool,
    /// A queue may have accepted it.
    pub(super) accepted: bool,
}

impl Unit {
    #[inline]
    pub(super) fn new(first: u32, members: u32) -> Unit {
        Unit {
            first,
            members,
            in_parts: false,
            of_batch: false,
            retries: 0,
            resumed: 0,
        }
    }
}

impl Ended {
    #[inline]
    pub(super) fn new(unit: Unit, record: CompletionRecord) -> Ended {
        Ended {
            unit,
            next: 0,
            has_resumed: false,
            has_failed: false,
            is_abandoned: false,
            record,
            withdrawn: false,
            accepted: true,
        }
    }
}
