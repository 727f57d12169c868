//! Where descriptors come in, and what is answered (spec 3.2, 9.3).

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

/// How a work queue takes descriptors (spec 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkQueueMode {
    /// One client, MOVDIR64B, no answer: a write to a full queue is lost.
    Dedicated,
    /// Many clients, ENQCMD, accepted or retry.
    #[default]
    Shared,
}
