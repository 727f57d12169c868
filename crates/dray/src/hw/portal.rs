//! The mapped portal of a work queue: the instructions alone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use dray_spec::Descriptor;

use super::instructions;
use super::{HwError, QueueInfo};
use crate::Home;

/// Bytes of a portal (spec 9.3).
const PORTAL_BYTES: usize = 4096;

/// A mapped portal, and where in it the next descriptor goes.
///
/// It counts no credits, keeps no slots and sees no completions: for measurements of the instructions
/// themselves. Applications take [`HwMover`](super::HwMover).
///
/// ```no_run
/// use dray::hw::{self, Portal};
/// use dray_spec::Descriptor;
///
/// let queues = hw::discover()?;
/// let mut portal = Portal::open(&queues[0], true)?;
/// // SAFETY: a NOOP without a record names no memory.
/// unsafe { portal.movdir64b(&Descriptor::noop()) };
/// # Ok::<(), hw::HwError>(())
/// ```
#[derive(Debug)]
pub struct Portal {
    mapping: Arc<Mapping>,
    offset: usize,
    /// Bytes from one descriptor's line to the next: 0 or 64.
    step: usize,
}

/// The page, for as long as a portal uses it. It keeps the queue open.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    home: Home,
}

// SAFETY: the mapping belongs to this value.
unsafe impl Send for Mapping {}
// SAFETY: threads only store to it, each descriptor by one instruction.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.home.is_inherited() {
            // The kernel gives a child no portal: another mapping may be there.
            return;
        }
        // SAFETY: mapped with this length, and no portal has the address any more.
        let unmapped = unsafe { libc::munmap(self.base.as_ptr().cast(), PORTAL_BYTES) };
        debug_assert_eq!(unmapped, 0, "a mapping of its own");
    }
}

impl Portal {
    /// Maps the portal of a work queue. `rotates`: each descriptor goes to another line of the page;
    /// writes to one line wait for each other.
    ///
    /// # Errors
    /// The queue cannot be opened or mapped.
    pub fn open(queue: &QueueInfo, rotates: bool) -> Result<Portal, HwError> {
        // The mapping keeps the queue open.
        let file = open_file(queue)?;
        Portal::map(&file, rotates).map_err(|source| HwError::Map {
            path: queue.path.clone(),
            source,
        })
    }

    /// The same page for another thread, which begins at another line of it.
    pub(super) fn shared(&self, turn: usize) -> Portal {
        Portal {
            mapping: self.mapping.clone(),
            offset: turn * 8 * self.step % PORTAL_BYTES,
            step: self.step,
        }
    }

    /// The line that the next descriptor goes to.
    #[inline]
    fn line(&mut self) -> *mut u8 {
        // SAFETY: the offset is below the size of the mapping.
        let line = unsafe { self.mapping.base.as_ptr().add(self.offset) };
        self.offset = (self.offset + self.step) % PORTAL_BYTES;
        line
    }
}

#[cfg(target_arch = "x86_64")]
impl Portal {
    /// SFENCE and MOVDIR64B, for a dedicated queue: there is no answer whether the queue had room.
    ///
    /// # Safety
    /// What the descriptor names, its completion record with it, must stay valid until the device has
    /// done with it. Not in a child of fork, where the kernel maps no portal.
    #[inline]
    pub unsafe fn movdir64b(&mut self, descriptor: &Descriptor) {
        let line = self.line();
        instructions::store_fence();
        // SAFETY: the kernel has mapped the portal, which it does where the device's instructions
        // are; the line is aligned to 64 bytes.
        unsafe { instructions::movdir64b(line, descriptor) };
    }

    /// SFENCE and ENQCMD, for a shared queue. True if the device has accepted the descriptor.
    ///
    /// # Safety
    /// As [`movdir64b`](Portal::movdir64b); the descriptor's first word must be 0, or the instruction faults.
    #[inline]
    pub unsafe fn enqcmd(&mut self, descriptor: &Descriptor) -> bool {
        let line = self.line();
        instructions::store_fence();
        // SAFETY: as in `movdir64b`.
        unsafe { instructions::enqcmd(line, descriptor) }
    }

    pub(super) fn map(file: &File, rotates: bool) -> io::Result<Portal> {
        // By the C library, not by a system call of our own: it is there that `dray run` listens.
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PORTAL_BYTES,
                libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast());
        let base = base.ok_or_else(|| io::Error::from(io::ErrorKind::Other))?;
        let step = if rotates { size_of::<Descriptor>() } else { 0 };
        Ok(Portal {
            mapping: Arc::new(Mapping {
                base,
                home: Home::here(),
            }),
            offset: 0,
            step,
        })
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Portal {
    pub unsafe fn movdir64b(&mut self, _: &Descriptor) {
        // `map` gives no portal here.
    }

    pub unsafe fn enqcmd(&mut self, _: &Descriptor) -> bool {
        false
    }

    pub(super) fn map(_: &File, _: bool) -> io::Result<Portal> {
        Err(io::Error::from(io::ErrorKind::PermissionDenied))
    }
}

/// Opens the device file of a queue.
pub(super) fn open_file(queue: &QueueInfo) -> Result<File, HwError> {
    let file = OpenOptions::new().read(true).write(true).open(&queue.path);
    file.map_err(|source| HwError::Open {
        path: queue.path.clone(),
        source,
    })
}
