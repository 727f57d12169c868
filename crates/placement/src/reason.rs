//! Why the CPU executes what a device could have.

/// Why the CPU executed an operation, or a part of it.
///
/// One list for all that choose between the CPU and a device; each gives some of them. Statistics and JSON have the
/// [`name`](Reason::name).
///
/// ```
/// use dray_placement::Reason;
///
/// assert_eq!(Reason::QueueFull.name(), "work queue full");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// The CPU was to execute all that it can: no device was asked for.
    Chosen,
    /// No channel, or work queue that can be used, leads to a device with this operation.
    NoDevice,
    /// All lanes are taken by other threads, or by the call that a signal has interrupted.
    Busy,
    /// Every queue was full, or its channel had no room.
    QueueFull,
    /// The buffers overlap, and the device is not to move them, or cannot.
    Overlap,
    /// The CPU does its share while the device does the rest.
    Share,
    /// What is left over is below the threshold.
    Rest,
    /// A device met a page that was not present.
    PageFault,
    /// The device reports another error.
    DeviceError,
    /// A child of fork, which the threads of the virtual device are not in.
    Forked,
    /// The device has not ended it in time.
    Deadline,
    /// The operation, or the list of pages, is below the threshold.
    BelowThreshold,
    /// The cost model takes the CPU for faster.
    Faster,
    /// The cost model tries out whether the CPU is faster by now.
    Tried,
    /// The queues that could have executed it were disabled or reset, or are gone with their device.
    QueueLost,
    /// The queue has not executed it, for it was lost or full.
    NotExecuted,
}

impl Reason {
    /// All, in the order of their numbers.
    pub const ALL: [Reason; 16] = [
        Reason::Chosen,
        Reason::NoDevice,
        Reason::Busy,
        Reason::QueueFull,
        Reason::Overlap,
        Reason::Share,
        Reason::Rest,
        Reason::PageFault,
        Reason::DeviceError,
        Reason::Forked,
        Reason::Deadline,
        Reason::BelowThreshold,
        Reason::Faster,
        Reason::Tried,
        Reason::QueueLost,
        Reason::NotExecuted,
    ];

    /// As in results.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Chosen => "no device asked for",
            Reason::NoDevice => "no work queue",
            Reason::Busy => "lanes busy",
            Reason::QueueFull => "work queue full",
            Reason::Overlap => "buffers overlap",
            Reason::Share => "share of the core",
            Reason::Rest => "rest below the threshold",
            Reason::PageFault => "page fault",
            Reason::DeviceError => "device error",
            Reason::Forked => "child of fork",
            Reason::Deadline => "no completion in time",
            Reason::BelowThreshold => "below the threshold",
            Reason::Faster => "core faster",
            Reason::Tried => "core tried",
            Reason::QueueLost => "work queue lost",
            Reason::NotExecuted => "not executed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_name_and_a_number_of_its_own() {
        for (n, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, n);
            let same = |other: &&Reason| other.name() == reason.name();
            assert_eq!(Reason::ALL.iter().filter(same).count(), 1, "{reason:?}");
        }
    }
}
