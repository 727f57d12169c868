//! The way of descriptors into a work queue of this machine.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::ptr::NonNull;

use dray_device::{Submission, WorkQueueMode};
use dray_spec::Descriptor;
use zerocopy::IntoBytes;

use super::instructions;
use super::{HwError, QueueInfo};
use crate::Executor;
use crate::queue::Port;

/// Bytes of a portal (spec 9.3).
const PORTAL_BYTES: usize = 4096;

/// Times that an ENQCMD is tried in one call of [`Mover::submit`](crate::Mover::submit).
const ATTEMPTS: u32 = 16;

/// How descriptors are submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitting {
    /// MOVDIR64B or ENQCMD to the mapped portal.
    Portal,
    /// write(2) to the device file: kernels since 6.10 let only processes with CAP_SYS_RAWIO map
    /// portals of some devices.
    Write,
}

/// A work queue that is open.
#[derive(Debug)]
pub(super) struct HwPort {
    file: File,
    portal: Option<Portal>,
    mode: WorkQueueMode,
    credits: usize,
    path: std::path::PathBuf,
    failure: Option<HwError>,
}

/// A mapped portal, and where in it the next descriptor goes.
#[derive(Debug)]
struct Portal {
    base: NonNull<u8>,
    offset: usize,
}

// SAFETY: the mapping belongs to this value.
unsafe impl Send for Portal {}

impl Drop for Portal {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nobody else has the address.
        let unmapped = unsafe { libc::munmap(self.base.as_ptr().cast(), PORTAL_BYTES) };
        debug_assert_eq!(unmapped, 0, "a mapping of its own");
    }
}

impl HwPort {
    /// Opens a queue. `how`: the only way to submit, or the portal and else write(2).
    pub(super) fn open(queue: &QueueInfo, how: Option<Submitting>) -> Result<HwPort, HwError> {
        let path = || queue.path.clone();
        let file = OpenOptions::new().read(true).write(true).open(&queue.path);
        let file = file.map_err(|source| HwError::Open {
            path: path(),
            source,
        })?;
        let portal = match how {
            Some(Submitting::Write) => None,
            how => match map(&file) {
                Ok(portal) => Some(portal),
                Err(error) if how.is_none() && is_refused(&error) => None,
                Err(source) => {
                    return Err(HwError::Map {
                        path: path(),
                        source,
                    });
                }
            },
        };
        Ok(HwPort {
            file,
            portal,
            mode: queue.mode,
            credits: queue.entries.into(),
            path: path(),
            failure: None,
        })
    }

    pub(super) fn submitting(&self) -> Submitting {
        match self.portal {
            Some(_) => Submitting::Portal,
            None => Submitting::Write,
        }
    }

    pub(super) fn failure(&self) -> Option<&HwError> {
        self.failure.as_ref()
    }

    /// write(2) of one descriptor. The kernel answers a full shared queue with EAGAIN.
    #[cold]
    fn write(&mut self, descriptor: &Descriptor) -> Submission {
        match self.file.write(descriptor.as_bytes()) {
            Ok(written) if written == size_of::<Descriptor>() => Submission::Accepted,
            Ok(_) => {
                let source = io::Error::from(ErrorKind::WriteZero);
                let path = self.path.clone();
                self.failure = Some(HwError::Write { path, source });
                Submission::Ignored
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Submission::Retry
            }
            Err(source) => {
                let path = self.path.clone();
                self.failure = Some(HwError::Write { path, source });
                Submission::Ignored
            }
        }
    }
}

impl Port for HwPort {
    const EXECUTOR: Executor = Executor::Hardware;

    #[inline]
    fn submit(&mut self, descriptor: &Descriptor) -> Submission {
        let Some(portal) = &mut self.portal else {
            return self.write(descriptor);
        };
        portal.submit(self.mode, descriptor)
    }

    #[inline]
    fn credits(&self) -> usize {
        self.credits
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.failure.is_some()
    }
}

#[cfg(target_arch = "x86_64")]
impl Portal {
    #[inline]
    fn submit(&mut self, mode: WorkQueueMode, descriptor: &Descriptor) -> Submission {
        // SAFETY: the offset is below the size of the mapping.
        let portal = unsafe { self.base.as_ptr().add(self.offset) };
        // The next write goes to another line: writes to one line wait for each other.
        self.offset = (self.offset + size_of::<Descriptor>()) % PORTAL_BYTES;
        instructions::store_fence();
        match mode {
            WorkQueueMode::Dedicated => {
                // SAFETY: the kernel has mapped the portal, which it does where the device's
                // instructions are; the offset is a multiple of 64.
                unsafe { instructions::movdir64b(portal, descriptor) };
                Submission::Accepted
            }
            WorkQueueMode::Shared => {
                for _ in 0..ATTEMPTS {
                    // SAFETY: as above.
                    if unsafe { instructions::enqcmd(portal, descriptor) } {
                        return Submission::Accepted;
                    }
                }
                Submission::Retry
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Portal {
    fn submit(&mut self, _: WorkQueueMode, _: &Descriptor) -> Submission {
        // `map` gives no portal here.
        Submission::Ignored
    }
}

#[cfg(target_arch = "x86_64")]
fn map(file: &File) -> io::Result<Portal> {
    use std::os::fd::AsRawFd;

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
    let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::from(ErrorKind::Other))?;
    Ok(Portal { base, offset: 0 })
}

#[cfg(not(target_arch = "x86_64"))]
fn map(_: &File) -> io::Result<Portal> {
    Err(io::Error::from(ErrorKind::PermissionDenied))
}

/// Whether the kernel forbids the mapping, and not the file lacks it.
fn is_refused(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}
