//! A portal, mapped: where a client writes descriptors.

use std::sync::Arc;

use dray_device::{Portal, Submission, WorkQueueMode};
use dray_spec::Descriptor;
use zerocopy::transmute;

use crate::board::Board;
use crate::ring::{Offer, Ring};
use crate::shared::{Queue, Shared};

/// One portal of one work queue, for any thread to write to.
///
/// The answer comes from the queue's ring, without a call and without a lock.
#[derive(Debug, Clone)]
pub struct MappedPortal {
    ring: Ring,
    board: Arc<Board>,
    portal: Portal,
    mode: WorkQueueMode,
    size: u16,
    /// Occupancy at which the portal has no more room.
    limit: u64,
}

impl MappedPortal {
    pub(crate) fn new(shared: &Shared, queue: &Queue, limited: bool) -> MappedPortal {
        let config = &queue.config;
        let limit = match (config.mode, limited) {
            (WorkQueueMode::Shared, true) => config.threshold.min(config.size),
            _ => config.size,
        };
        MappedPortal {
            ring: queue.ring.clone(),
            board: shared.board.clone(),
            portal: Portal {
                wq: config.id,
                limited,
            },
            mode: config.mode,
            size: config.size,
            limit: limit.into(),
        }
    }

    /// Which portal it is.
    pub fn portal(&self) -> Portal {
        self.portal
    }

    /// Whether its queue is dedicated or shared.
    pub fn mode(&self) -> WorkQueueMode {
        self.mode
    }

    /// Entries of its queue.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// A posted 64-byte write (MOVDIR64B). The answer is more than hardware gives: there nobody
    /// learns what became of it.
    #[inline]
    pub fn write_posted(&self, descriptor: &Descriptor) -> Submission {
        if self.mode != WorkQueueMode::Dedicated {
            return Submission::Ignored;
        }
        match self.offer(descriptor) {
            Offer::Accepted => Submission::Accepted,
            Offer::Full => {
                self.ring.lose();
                self.board.doorbell().ring();
                Submission::Lost
            }
            // A queue that is not enabled (spec 9.3).
            Offer::Closed => Submission::Ignored,
        }
    }

    /// A deferrable 64-byte write (ENQCMD): accepted, or retry.
    #[inline]
    pub fn enqueue(&self, descriptor: &Descriptor) -> Submission {
        if self.mode != WorkQueueMode::Shared {
            return Submission::Retry;
        }
        match self.offer(descriptor) {
            Offer::Accepted => Submission::Accepted,
            Offer::Full | Offer::Closed => Submission::Retry,
        }
    }

    /// Submits as the queue wants it.
    #[inline]
    pub fn submit(&self, descriptor: &Descriptor) -> Submission {
        match self.mode {
            WorkQueueMode::Dedicated => self.write_posted(descriptor),
            WorkQueueMode::Shared => self.enqueue(descriptor),
        }
    }

    #[inline]
    fn offer(&self, descriptor: &Descriptor) -> Offer {
        let offer = self.ring.offer(&transmute!(*descriptor), self.limit);
        if offer == Offer::Accepted {
            self.board.doorbell().ring();
        }
        offer
    }
}
