//! Raw descriptors.

use std::io;

use dray_device::Submission;
use dray_spec::Descriptor;
use zerocopy::transmute;

use super::submit_path::{QueuePath, SubmitPath, Submitting};
use super::{HwError, QueueInfo};

/// A work queue that takes descriptors of the caller's own making: completion addresses, flags and batch lists
/// as they are, nothing added.
///
/// It submits as [`HwMover`](super::HwMover) does: MOVDIR64B or ENQCMD to a line of the portal that rotates, or
/// write(2) where the kernel refuses the mapping. It counts no credits, keeps no slots and sees no completions:
/// that is the caller's. [`Portal`](super::Portal) has the instructions alone.
///
/// ```no_run
/// use std::sync::atomic::{AtomicU8, Ordering};
///
/// use dray::hw::{self, RawPortal};
/// use dray_spec::Descriptor;
///
/// #[repr(align(32))]
/// struct Record([AtomicU8; 32]);
///
/// let queue = hw::discover()?.remove(0);
/// let mut portal = RawPortal::open(&queue, None)?;
/// let record = Record([const { AtomicU8::new(0) }; 32]);
/// let address = record.0.as_ptr().expose_provenance() as u64;
/// let noop = Descriptor::noop().with_completion(address);
/// // SAFETY: the record outlives the descriptor, which is waited for; it is the only one in flight.
/// unsafe { portal.submit(&noop) }?;
/// while record.0[0].load(Ordering::Acquire) == 0 {
///     std::hint::spin_loop();
/// }
/// # Ok::<(), hw::HwError>(())
/// ```
#[derive(Debug)]
pub struct RawPortal {
    path: QueuePath,
}

impl RawPortal {
    /// Opens a work queue. `how`: the only method, or the portal and else write(2).
    ///
    /// # Errors
    /// It cannot be opened, or mapped.
    pub fn open(queue: &QueueInfo, how: Option<Submitting>) -> Result<RawPortal, HwError> {
        let path = QueuePath::open(queue, how, true)?;
        Ok(RawPortal { path })
    }

    /// How descriptors are submitted.
    pub fn submit_path(&self) -> SubmitPath {
        self.path.kind()
    }

    /// Why it submits by write(2), where the kernel has refused to map the portal.
    pub fn map_refusal(&self) -> Option<&io::Error> {
        self.path.refusal()
    }

    /// Submits a descriptor. [`Submission::Retry`]: a shared queue had no room, 16 times in a row. A dedicated
    /// queue never answers: a descriptor that it has no room for is lost, and its record never written.
    ///
    /// # Errors
    /// write(2) refuses it: EINVAL for a completion address that is not aligned to 32 bytes, and for a batch
    /// on some devices.
    ///
    /// # Safety
    /// What the descriptor names must stay valid for what it does until the device has written its completion
    /// record: sources readable and not written, destinations and the record writable and not accessed
    /// otherwise. A descriptor without a record has ended when one that drains the queue behind it has.
    #[inline]
    pub unsafe fn submit(&mut self, descriptor: &Descriptor) -> Result<Submission, HwError> {
        // SAFETY: the caller's promise is the same.
        let submission = unsafe { self.path.submit(descriptor) };
        match self.path.failure.take() {
            None => Ok(submission),
            Some(error) => Err(error),
        }
    }

    /// The same with the 64 bytes of a descriptor (spec 8.1), wherever they lie.
    ///
    /// # Errors
    /// As [`submit`](RawPortal::submit).
    ///
    /// # Safety
    /// As [`submit`](RawPortal::submit).
    #[inline]
    pub unsafe fn submit_bytes(&mut self, descriptor: &[u8; 64]) -> Result<Submission, HwError> {
        // MOVDIR64B and ENQCMD take any address; a copy has the alignment of the type.
        let descriptor: Descriptor = transmute!(*descriptor);
        // SAFETY: the caller's promise is the same.
        unsafe { self.submit(&descriptor) }
    }
}
