//! What one descriptor of a queue names, and how it has ended.

use dray_spec::CompletionRecord;

/// Operations that one descriptor names: one, or a batch of neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) first: u32,
    pub(super) members: u32,
    /// It is larger than a descriptor may be, and travels in parts.
    pub(super) divided: bool,
    /// Submissions that were not accepted.
    pub(super) retries: u32,
}

/// A unit that has ended, and its next member to report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) unit: Unit,
    pub(super) next: u32,
    /// The record of the unit's descriptor.
    pub(super) record: CompletionRecord,
    /// It was taken back before a queue accepted it.
    pub(super) withdrawn: bool,
    /// A queue may have accepted it.
    pub(super) accepted: bool,
}

impl Ended {
    #[inline]
    pub(super) fn new(unit: Unit, record: CompletionRecord) -> Ended {
        Ended {
            unit,
            next: 0,
            record,
            withdrawn: false,
            accepted: true,
        }
    }
}
