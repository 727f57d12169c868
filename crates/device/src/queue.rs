//! A work queue: entries, occupancy, and who must finish before a drain.

use std::collections::VecDeque;

use crate::{WorkId, WorkQueueConfig, WorkQueueMode};

/// Descriptors between two drains, counted.
#[derive(Debug, Clone, Copy, Default)]
struct Epoch {
    outstanding: u32,
    /// The drain that ends the epoch, once it has left the queue.
    drain: Option<WorkId>,
}

#[derive(Debug, Clone)]
pub(crate) struct WorkQueue {
    pub(crate) config: WorkQueueConfig,
    entries: VecDeque<WorkId>,
    epochs: VecDeque<Epoch>,
    first_epoch: u32,
}

impl WorkQueue {
    pub(crate) fn new(config: WorkQueueConfig) -> WorkQueue {
        WorkQueue {
            entries: VecDeque::with_capacity(config.size.into()),
            epochs: VecDeque::from([Epoch::default()]),
            first_epoch: 0,
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

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<WorkId> {
        self.entries.pop_front()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<WorkId> {
        self.entries.front().copied()
    }

    /// Counts a descriptor that leaves the queue; the epoch that it belongs to.
    #[inline]
    pub(crate) fn begin(&mut self) -> u32 {
        if let Some(epoch) = self.epochs.back_mut() {
            epoch.outstanding += 1;
        }
        self.first_epoch.wrapping_add(self.epochs.len() as u32 - 1)
    }

    /// A drain leaves the queue. True if nothing before it is outstanding: then it is done.
    pub(crate) fn begin_drain(&mut self, id: WorkId) -> bool {
        if self.epochs.len() == 1 && self.epochs[0].outstanding == 0 {
            return true;
        }
        if let Some(epoch) = self.epochs.back_mut() {
            epoch.drain = Some(id);
        }
        self.epochs.push_back(Epoch::default());
        false
    }

    /// A descriptor of `epoch` is done. Appends the drains that were waiting for it.
    #[inline]
    pub(crate) fn end(&mut self, epoch: u32, drains: &mut Vec<WorkId>) {
        let index = epoch.wrapping_sub(self.first_epoch) as usize;
        if let Some(epoch) = self.epochs.get_mut(index) {
            epoch.outstanding = epoch.outstanding.saturating_sub(1);
        }
        while self.epochs.len() > 1 && self.epochs[0].outstanding == 0 {
            drains.extend(self.epochs[0].drain);
            self.epochs.pop_front();
            self.first_epoch = self.first_epoch.wrapping_add(1);
        }
    }
}
