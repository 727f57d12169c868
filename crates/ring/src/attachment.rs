//! A device of another process: where a client of it writes descriptors.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use dray_spec::{Descriptor, Portal, Submission, WorkQueueMode};
use rustix::io::Errno;
use thiserror::Error;
use zerocopy::transmute;

use crate::gate::WriteKind;
use crate::memory_calls::NotedCall;
use crate::origin::Origin;
use crate::ring::{Offer, Ring};
use crate::shared_region::SharedRegion;

/// Why a region cannot be shared, or cannot be mapped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AttachError {
    /// Its size could change under its users.
    #[error("the file is not sealed against changes of its size")]
    NotSealed,
    /// It is a region of other queues, or none.
    #[error("the file has {found} bytes, not {expected}")]
    Size {
        /// Bytes of the file.
        found: u64,
        /// Bytes of a region for these queues.
        expected: u64,
    },
    /// The system refuses.
    #[error("no shared memory")]
    System(#[from] Errno),
}

/// What decides where the parts of a region lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionLayout {
    /// Work queues that the part has.
    pub queues: u16,
    /// Entries for each of them; not 0.
    pub entries: u16,
}

impl RegionLayout {
    /// Entries of each ring.
    pub(crate) fn sizes(self) -> Vec<u16> {
        vec![self.entries.max(1); self.queues.into()]
    }
}

/// The region of a device, for other processes to map.
#[derive(Debug)]
pub struct SharedRegionFile {
    pub(crate) fd: OwnedFd,
    pub(crate) layout: RegionLayout,
}

impl SharedRegionFile {
    /// To be sent to a client. Its size is sealed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// To be sent with it.
    pub fn layout(&self) -> RegionLayout {
        self.layout
    }
}

/// The region of a device that another process runs, mapped.
///
/// A child of `fork` does not have the mapping. It must leave an attachment of its parent alone
/// (`mem::forget`): to write to its portals is an access to memory that is not there, and to drop it
/// unmaps whatever the child may have there instead.
#[derive(Debug, Clone)]
pub struct Attachment {
    region: Arc<SharedRegion>,
    client: u16,
}

impl Attachment {
    /// Maps what [`SharedRegion::shared`] shares, for the client
    /// with this number.
    ///
    /// # Errors
    /// The file is not a region of this layout, or its size could change; it cannot be mapped.
    pub fn new(
        fd: impl AsFd,
        layout: RegionLayout,
        client: u16,
    ) -> Result<Attachment, AttachError> {
        let region = SharedRegion::attached(fd.as_fd(), layout)?;
        Ok(Attachment { region, client })
    }

    /// A portal to write descriptors to; `None` for a queue that the part does not have.
    pub fn portal(&self, portal: Portal) -> Option<RemotePortal> {
        Some(RemotePortal {
            ring: self.region.ring(portal.wq.into())?,
            region: self.region.clone(),
            client: self.client,
            limited: portal.limited,
        })
    }
}

/// A portal of a device that another process runs.
///
/// The answers are those of a portal of the device's own process, but that no call waits while the
/// device carries a command out. Both kinds of write may be made from a signal handler: they
/// allocate nothing, take no lock, use no thread-local storage and call the kernel only to wake the
/// device (futex) and to wait for a moment (sched_yield), without the C library; not even that after
/// [`begin_polling`](Self::begin_polling). A handler that has
/// interrupted a write to the same queue may wait for its own descriptor's completion, which comes before
/// that of the interrupted one.
#[derive(Debug, Clone)]
pub struct RemotePortal {
    ring: Ring,
    region: Arc<SharedRegion>,
    client: u16,
    limited: bool,
}

/// Polls of a posted write while a command is carried out: a second or so, far longer than any
/// command keeps writers waiting.
const POLLS: u32 = 1 << 20;

impl RemotePortal {
    /// A posted 64-byte write (MOVDIR64B). The answer is more than hardware gives: there
    /// its end is not reported.
    #[inline]
    pub fn write_posted(&self, descriptor: &Descriptor) -> Submission {
        self.post(|| self.offer(descriptor, WriteKind::Posted))
    }

    #[inline]
    fn post(&self, offer_once: impl Fn() -> Offer) -> Submission {
        let mut polls = 0;
        let mut offer = offer_once();
        while offer == Offer::Held && polls < POLLS {
            polls += 1;
            match self.region.doorbell().is_polled() {
                true => std::hint::spin_loop(),
                false => Ring::relax(),
            }
            offer = offer_once();
        }
        answer(&self.ring, &self.region, offer, WriteKind::Posted)
    }

    /// A deferrable 64-byte write (ENQCMD): accepted, or retry, which it also is while a command is
    /// carried out. The descriptor has the PASID in it, as ENQCMD puts it there.
    #[inline]
    pub fn enqueue(&self, descriptor: &Descriptor) -> Submission {
        let kind = WriteKind::deferrable(self.limited);
        let offer = self.offer(descriptor, kind);
        answer(&self.ring, &self.region, offer, kind)
    }

    /// As [`write_posted`](Self::write_posted), and says where in the program that was.
    pub fn write_posted_from(&self, descriptor: &Descriptor, origin: &Origin) -> Submission {
        self.post(|| self.offer_from(descriptor, WriteKind::Posted, origin))
    }

    /// As [`enqueue`](Self::enqueue), and says where in the program that was.
    pub fn enqueue_from(&self, descriptor: &Descriptor, origin: &Origin) -> Submission {
        let kind = WriteKind::deferrable(self.limited);
        let offer = self.offer_from(descriptor, kind, origin);
        answer(&self.ring, &self.region, offer, kind)
    }

    /// Whether who submits has more to do than that: the device [waits for a processor](Self::lacks_processor), or
    /// submissions are [traced](Self::is_traced).
    #[inline]
    pub fn is_delayed(&self) -> bool {
        self.region.doorbell().is_delayed()
    }

    /// Whether the device waits for a processor: who is about to wait for a descriptor does well to sleep.
    pub fn lacks_processor(&self) -> bool {
        self.region.doorbell().lacks_processor()
    }

    /// Whether submissions say where in the program they are made.
    pub fn is_traced(&self) -> bool {
        self.region.doorbell().is_traced()
    }

    /// Whether submissions are to say how much CPU time their threads have used, too.
    pub fn is_timed(&self) -> bool {
        self.region.doorbell().is_timed()
    }

    /// Says that the program is about to make a call that takes memory away. `stack` stands at its stack pointer.
    pub fn note_call(&self, call: &NotedCall, stack: &[u64]) {
        self.region.memory_calls().note(call, stack);
    }

    /// Whether who submits gives the device a moment to look at its memory.
    pub fn is_watched(&self) -> bool {
        self.region.doorbell().is_watched()
    }

    /// Entries of the queue that are occupied.
    #[inline]
    pub fn occupancy(&self) -> u64 {
        self.ring.occupancy()
    }

    /// Has the device look for descriptors by itself, so that writes make no system calls from now on.
    pub fn begin_polling(&self) {
        self.region.doorbell().begin_polling();
    }

    /// Sleeps until the device has written a completion record, whosever, unless `ended`; at most for
    /// `limit`. May return early.
    pub fn await_completion(&self, ended: impl FnOnce() -> bool, limit: Duration) {
        let completions = self.region.doorbell().completions();
        completions.wait(ended, Some(limit));
    }

    /// Descriptors of the queue that were accepted so far, for [`has_looked`](Self::has_looked).
    pub fn accepted(&self) -> u64 {
        self.ring.claims().0
    }

    /// Whether the device has looked at the memory of so many descriptors, where submitters [are watched](Self::is_watched).
    pub fn has_looked(&self, accepted: u64) -> bool {
        self.ring.unlooked(accepted) == 0
    }

    /// Whether the queue is dedicated or shared, as it was last enabled.
    #[inline]
    pub fn mode(&self) -> WorkQueueMode {
        self.ring.gate().mode()
    }

    #[inline]
    fn offer(&self, descriptor: &Descriptor, kind: WriteKind) -> Offer {
        self.ring.offer(&transmute!(*descriptor), kind, self.client)
    }

    fn offer_from(&self, descriptor: &Descriptor, kind: WriteKind, origin: &Origin) -> Offer {
        let words = transmute!(*descriptor);
        self.ring.offer_from(&words, kind, self.client, origin)
    }
}

/// What becomes of an offer: the device is woken to see it, the queue counts what it cannot take.
#[inline]
pub fn answer(ring: &Ring, region: &SharedRegion, offer: Offer, kind: WriteKind) -> Submission {
    match (offer, kind) {
        (Offer::Accepted, _) => {
            region.doorbell().ring();
            Submission::Accepted
        }
        (Offer::Full, WriteKind::Posted) => {
            ring.lose();
            region.doorbell().ring();
            Submission::Lost
        }
        (Offer::Full, _) => {
            ring.put_off();
            Submission::Retry
        }
        // A queue that is not enabled, or shared (spec 9.3), or of a device that is gone.
        (Offer::Held | Offer::Closed, kind) => {
            if offer == Offer::Closed {
                ring.turn_away(kind);
            }
            match kind {
                WriteKind::Posted => Submission::Ignored,
                _ => Submission::Retry,
            }
        }
    }
}
