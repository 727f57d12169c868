//! The way of each descriptor, for who keeps books on it.

use dray_spec::{CompletionRecord, Descriptor};

use crate::WorkId;

/// Where a descriptor has got to. What an engine takes its runner knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
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

/// Steps since somebody looked, if anybody does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps(Option<Vec<Step>>);

impl Steps {
    pub(crate) fn keep(&mut self) {
        self.0.get_or_insert_default();
    }

    #[inline]
    pub(crate) fn push(&mut self, step: impl FnOnce() -> Step) {
        if let Some(steps) = &mut self.0 {
            steps.push(step());
        }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Step> + '_ {
        self.0.iter_mut().flat_map(|steps| steps.drain(..))
    }
}
