//! Who carries requests out, and when threads go on.

use dray_platform::WaitMode;

use crate::program::Step;

/// One way to carry a program out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    /// Descriptors go to the device as they were submitted, in batches of at most so many; 0: as they were.
    Recorded {
        /// Members of a batch at most.
        batch: u32,
        /// What a thread waits for before a descriptor.
        order: Order,
        /// How threads wait.
        wait: WaitMode,
    },
    /// Calls are carried out by their threads.
    Core,
    /// Calls of `threshold` bytes and more go to the device, and the thread waits for each.
    Synchronous {
        /// Bytes.
        threshold: u64,
        /// How threads wait.
        wait: WaitMode,
    },
    /// Calls of `threshold` bytes and more go to the device, and the thread goes on: it waits for a call before it makes the
    /// one that comes `window` later.
    Asynchronous {
        /// Bytes.
        threshold: u64,
        /// Calls that may be in flight.
        window: u32,
        /// How threads wait.
        wait: WaitMode,
    },
}

impl Way {
    /// How threads wait.
    pub(crate) fn wait(self) -> WaitMode {
        match self {
            Way::Core => WaitMode::Poll,
            Way::Recorded { wait, .. }
            | Way::Synchronous { wait, .. }
            | Way::Asynchronous { wait, .. } => wait,
        }
    }

    /// Whether a call of so many bytes goes to the device.
    pub(crate) fn takes(self, bytes: u64) -> bool {
        match self {
            Way::Core => false,
            Way::Recorded { .. } => true,
            Way::Synchronous { threshold, .. } | Way::Asynchronous { threshold, .. } => {
                bytes >= threshold
            }
        }
    }

    /// Whether a thread does what it does between requests before it waits for an earlier one, and not after that.
    pub(crate) fn rests_before_it_waits(self) -> bool {
        matches!(self, Way::Asynchronous { .. })
    }

    /// How many requests back the one is that a thread waits for before a request.
    pub(crate) fn distance(self, step: &Step) -> u32 {
        match self {
            Way::Recorded { order, .. } => match order {
                Order::Records => step.reuses,
                Order::Ends => step.seen,
            },
            Way::Core | Way::Synchronous { .. } => 1,
            Way::Asynchronous { window, .. } => window.max(1),
        }
    }
}

/// What a thread waits for before it submits a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The end of the descriptor that had its completion record before: it has seen that for certain.
    Records,
    /// The last end that it could have seen when it was recorded, on a device that may have been faster or slower than this one
    /// beside its program.
    Ends,
}

/// What threads do between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Think {
    /// They use their cores, and rest, as they were recorded to.
    Recorded,
    /// Nothing.
    None,
}

/// Where operands are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Memory that was named before is in the last-level cache, and all else in DRAM.
    Recorded,
    /// In DRAM.
    Dram,
    /// In the last-level cache.
    Llc,
}
