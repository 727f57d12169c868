//! A portal, mapped: where a client writes descriptors.

use std::sync::Arc;

use dray_ring::{Offer, Origin, Ring, SharedRegion, WriteKind, answer};
use dray_spec::{Descriptor, Portal, Submission, WorkQueueMode};
use zerocopy::transmute;

use crate::shared::Shared;

/// One portal of one work queue, for any thread to write to.
///
/// The answer comes from the queue's ring, without a call and without a lock; only while the device
/// carries a command out do writers wait.
#[derive(Debug, Clone)]
pub struct MappedPortal {
    ring: Ring,
    region: Arc<SharedRegion>,
    portal: Portal,
}

impl MappedPortal {
    pub(crate) fn new(shared: &Shared, ring: &Ring, portal: Portal) -> MappedPortal {
        MappedPortal {
            ring: ring.clone(),
            region: shared.region.clone(),
            portal,
        }
    }

    /// Which portal it is.
    pub fn portal(&self) -> Portal {
        self.portal
    }

    /// Whether its queue is dedicated or shared, as it was last enabled.
    #[inline]
    pub fn mode(&self) -> WorkQueueMode {
        self.ring.gate().mode()
    }

    /// Entries of its queue, as it was last enabled; 0 if it never was.
    #[inline]
    pub fn size(&self) -> u16 {
        self.ring.gate().size
    }

    /// Whether its queue takes descriptors now: it was enabled, and neither disabled nor reset since,
    /// and the device has not ended.
    pub fn is_enabled(&self) -> bool {
        self.size() > 0 && !self.ring.is_closed()
    }

    /// A posted 64-byte write (MOVDIR64B). The answer is more than hardware gives: there no writer
    /// learns what became of it.
    #[inline]
    pub fn write_posted(&self, descriptor: &Descriptor) -> Submission {
        let offer = self.offer(descriptor, WriteKind::Posted);
        answer(&self.ring, &self.region, offer, WriteKind::Posted)
    }

    /// A deferrable 64-byte write (ENQCMD): accepted, or retry.
    #[inline]
    pub fn enqueue(&self, descriptor: &Descriptor) -> Submission {
        let kind = WriteKind::deferrable(self.portal.limited);
        let offer = self.offer(descriptor, kind);
        answer(&self.ring, &self.region, offer, kind)
    }

    /// Submits as the queue wants it.
    #[inline]
    pub fn submit(&self, descriptor: &Descriptor) -> Submission {
        match self.mode() {
            WorkQueueMode::Dedicated => self.write_posted(descriptor),
            WorkQueueMode::Shared => self.enqueue(descriptor),
        }
    }

    /// As [`write_posted`](Self::write_posted) for a program, and says where in it that was.
    pub fn write_posted_from(&self, descriptor: &Descriptor, origin: &Origin) -> Submission {
        let kind = WriteKind::Posted;
        let words = transmute!(*descriptor);
        let offer = until_let_go(|| self.ring.offer_from(&words, kind, 0, origin));
        answer(&self.ring, &self.region, offer, kind)
    }

    /// As [`enqueue`](Self::enqueue) for a program, and says where in it that was.
    pub fn enqueue_from(&self, descriptor: &Descriptor, origin: &Origin) -> Submission {
        let kind = WriteKind::deferrable(self.portal.limited);
        let words = transmute!(*descriptor);
        let offer = until_let_go(|| self.ring.offer_from(&words, kind, 0, origin));
        answer(&self.ring, &self.region, offer, kind)
    }

    /// Whether submissions of programs say where they are made.
    pub fn is_traced(&self) -> bool {
        self.region.doorbell().is_traced()
    }

    #[inline]
    fn offer(&self, descriptor: &Descriptor, kind: WriteKind) -> Offer {
        let words = transmute!(*descriptor);
        until_let_go(|| self.ring.offer(&words, kind, 0))
    }
}

/// The dispatcher is in this process, and lets go or ends.
#[inline]
fn until_let_go(offer_once: impl Fn() -> Offer) -> Offer {
    let mut offer = offer_once();
    while offer == Offer::Held {
        Ring::relax();
        offer = offer_once();
    }
    offer
}
