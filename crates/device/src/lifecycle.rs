//! The lifecycle of each descriptor, for recorders.

use dray_spec::{CompletionRecord, Descriptor};

use crate::WorkId;

/// Where a descriptor has got to. What an engine takes its runner knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// It waits in its queue.
    Accepted {
        /// Its handle.
        id: WorkId,
        /// Work queue.
        wq: u16,
        /// In whose name it runs; 0 where PASIDs are not in use.
        pasid: u32,
        /// It.
        descriptor: Descriptor,
    },
    /// It is gone, and its handle stands for nothing.
    Ended {
        /// Its handle.
        id: WorkId,
        /// What its completion record says, wherever that goes; `None` if it was given up.
        record: Option<CompletionRecord>,
    },
}

/// Events since the last look, if they are recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lifecycle(Option<Vec<LifecycleEvent>>);

impl Lifecycle {
    pub(crate) fn keep(&mut self) {
        self.0.get_or_insert_default();
    }

    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    pub(crate) fn push(&mut self, event: impl FnOnce() -> LifecycleEvent) {
        if let Some(events) = &mut self.0 {
            events.push(event());
        }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> impl Iterator<Item = LifecycleEvent> + '_ {
        self.0.iter_mut().flat_map(|events| events.drain(..))
    }
}
