//! Has submitters wait, for tools that look at their memory.

use std::sync::Arc;

use dray_ring::SharedRegion;

/// Has other processes wait a moment after each submission to a device, so that
/// [`Event::Accepted`](crate::Event::Accepted) finds their memory as they have submitted it. They do not at first.
#[derive(Clone)]
pub struct Watch(pub(crate) Arc<SharedRegion>);

impl Watch {
    /// Whether they wait from now on.
    pub fn set(&self, watched: bool) {
        self.0.doorbell().watch(watched);
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
