//! Where descriptors come in, and what is answered.

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
