//! Why the CPU executes what a device could have.

/// Declares the reasons, their names and what they mean from one table.
macro_rules! reasons {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// Why the CPU executed an operation, or a part of it.
        ///
        /// One list for all that choose between the CPU and a device; each gives some of them. Statistics and JSON
        /// have the [`name`](Reason::name).
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
            $(#[doc = $meaning] $variant,)*
        }

        impl Reason {
            /// All, in the order of their numbers.
            pub const ALL: [Reason; [$($name),*].len()] = [$(Reason::$variant),*];

            /// As in results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Reason::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    Chosen "no device asked for" "The CPU was to execute all that it can: no device was asked for.",
    NoDevice "no work queue"
        "No channel, or work queue that can be used, leads to a device with this operation.",
    Busy "lanes busy"
        "All lanes are taken by other threads, or by the call that a signal has interrupted.",
    QueueFull "work queue full" "Every queue was full, or its channel had no room.",
    Overlap "buffers overlap"
        "The buffers overlap, and the device is not to move them, or cannot.",
    Share "share of the core" "The CPU does its share while the device does the rest.",
    Rest "rest below the threshold" "What is left over is below the threshold.",
    PageFault "page fault" "A device met a page that was not present.",
    DeviceError "device error" "The device reports another error.",
    Forked "child of fork" "A child of fork, which the threads of the virtual device are not in.",
    Deadline "no completion in time" "The device has not ended it in time.",
    BelowThreshold "below the threshold"
        "The operation, or the list of pages, is below the threshold.",
    Faster "core faster" "The cost model takes the CPU for faster.",
    Tried "core tried" "The cost model tries out whether the CPU is faster by now.",
    QueueLost "work queue lost"
        "The queues that could have executed it were disabled or reset, or are gone with their device.",
    NotExecuted "not executed" "The queue has not executed it, for it was lost or full.",
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
