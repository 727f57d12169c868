//! Has submitters wait, for tools that look at their memory.

use std::sync::Arc;

use dray_ring::{NotedCall, SharedRegion};

/// Has other processes wait a moment after each submission to a device, so that
/// [`Event::Accepted`](crate::Event::Accepted) finds their memory as they have submitted it. They do not at first.
#[derive(Clone)]
pub struct Watch(pub(crate) Arc<SharedRegion>);

impl Watch {
    /// Whether they wait from now on.
    pub fn set(&self, watched: bool) {
        self.0.doorbell().watch(watched);
    }

    /// How many calls that take memory away programs have made so far.
    pub fn noted_calls(&self) -> u64 {
        self.0.noted_calls()
    }

    /// The last one of an address space behind the first `since` that took a byte of a range away, with its stack.
    pub fn last_call(
        &self,
        pasid: u32,
        range: (u64, u64),
        since: u64,
    ) -> Option<(NotedCall, Vec<u8>)> {
        self.0.last_call(pasid, range, since)
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
