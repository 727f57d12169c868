//! An engine as the dispatcher sees it.

use dray_device::WorkId;

use crate::worker::Worker;

/// One engine of the device.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) id: u16,
    /// Its thread; without one the dispatcher carries its work out.
    pub(crate) worker: Option<Worker>,
    /// The dispatcher carries its work out, but for what may wait: no other thread works, or is to.
    pub(crate) alone: bool,
    /// It serves a group.
    pub(crate) active: bool,
    /// Descriptors that its thread may hold.
    depth: usize,
    /// Descriptors that its thread holds.
    pub(crate) outstanding: usize,
    /// It waits for the list of a batch, and starts nothing meanwhile.
    pub(crate) listing: bool,
    /// The batch whose members it starts.
    pub(crate) batch: Option<WorkId>,
}

impl Engine {
    pub(crate) fn new(id: u16, worker: Option<Worker>, depth: usize) -> Engine {
        Engine {
            id,
            worker,
            alone: false,
            active: false,
            depth,
            outstanding: 0,
            listing: false,
            batch: None,
        }
    }

    /// Whether it may start something.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.outstanding < self.depth && !self.listing && (self.active || self.batch.is_some())
    }

    /// Whether nothing of its work is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.batch.is_none()
    }
}
