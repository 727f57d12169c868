//! A work queue: entries, occupancy, and in whose name its descriptors come.

use std::collections::{HashSet, VecDeque};

use dray_spec::Descriptor;

use crate::drain::PasidCounters;
use crate::job::Submitter;
use crate::{WorkId, WorkQueueConfig, WorkQueueMode};

/// Whether a work queue takes descriptors, and gives any to engines (spec 9.2.24, WQ State).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Disabled,
    /// Takes them as its mode has it.
    Enabled(WorkQueueMode),
    /// Takes none; engines get what is in it.
    Draining,
}

#[derive(Debug, Clone)]
pub(crate) struct WorkQueue {
    pub(crate) config: WorkQueueConfig,
    pub(crate) state: State,
    entries: VecDeque<WorkId>,
    /// What has left the queue and not ended.
    pub(crate) counters: PasidCounters,
}

impl WorkQueue {
    pub(crate) fn new(config: WorkQueueConfig) -> WorkQueue {
        WorkQueue {
            entries: VecDeque::with_capacity(config.size.into()),
            counters: PasidCounters::new(),
            state: State::Enabled(config.mode),
            config,
        }
    }

    /// Entries in use. An entry is free again when an engine takes its descriptor (spec 3.3).
    #[inline]
    pub(crate) fn occupancy(&self) -> u16 {
        self.entries.len() as u16
    }

    /// Whether a portal has room. The limited portal of a shared queue stops at the threshold.
    #[inline]
    pub(crate) fn has_room(&self, limited: bool) -> bool {
        let limit = match (self.config.mode, limited) {
            (WorkQueueMode::Shared, true) => self.config.threshold.min(self.config.size),
            _ => self.config.size,
        };
        self.occupancy() < limit
    }

    #[inline]
    pub(crate) fn push(&mut self, id: WorkId) {
        self.entries.push_back(id);
    }

    /// What waits for an engine, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = WorkId> {
        self.entries.iter().copied()
    }

    /// No entry is any more, nor what has left the queue.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.counters = PasidCounters::new();
    }

    /// Some entries are no more.
    pub(crate) fn forget(&mut self, gone: &[WorkId]) {
        if gone.len() == self.entries.len() {
            self.entries.clear();
        } else if !gone.is_empty() {
            let gone: HashSet<WorkId> = gone.iter().copied().collect();
            self.entries.retain(|id| !gone.contains(id));
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<WorkId> {
        self.entries.pop_front()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<WorkId> {
        self.entries.front().copied()
    }

    /// PASID of a descriptor, and whether it is privileged: the queue's if the queue is dedicated
    /// (spec 8.1.1).
    #[inline]
    pub(crate) fn submitter(&self, descriptor: &Descriptor) -> Submitter {
        match self.config.mode {
            WorkQueueMode::Shared => Submitter {
                pasid: descriptor.pasid(),
                privileged: descriptor.privileged(),
            },
            WorkQueueMode::Dedicated => Submitter {
                pasid: self.config.pasid.unwrap_or(0),
                privileged: self.config.privileged,
            },
        }
    }
}
