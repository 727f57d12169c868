//! How descriptors get to a work queue.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

use dray_device::{Submission, WorkQueueMode};
use dray_spec::Descriptor;
use zerocopy::IntoBytes;

use super::portal::{Portal, open_file};
use super::{HwError, QueueInfo};

/// Times that an ENQCMD is tried in one call.
const ATTEMPTS: u32 = 16;

/// How descriptors are to be submitted.
///
/// ```
/// use dray::hw::{HwOptions, Submitting};
///
/// let options = HwOptions { submitting: Some(Submitting::Write), ..HwOptions::default() };
/// assert_ne!(options, HwOptions::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitting {
    /// MOVDIR64B or ENQCMD to the mapped portal.
    Portal,
    /// write(2) to the device file: kernels since 6.10 let only processes with CAP_SYS_RAWIO map
    /// portals of some devices.
    Write,
}

/// How descriptors are submitted to a queue that is open.
///
/// ```
/// assert_eq!(dray::hw::SubmitPath::Enqcmd.to_string(), "ENQCMD");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitPath {
    /// MOVDIR64B to the portal of a dedicated queue: a posted write without an answer.
    Movdir64b,
    /// ENQCMD to the portal of a shared queue: the device accepts the descriptor or answers retry.
    Enqcmd,
    /// write(2) to the device file, one descriptor a call.
    Write,
}

impl fmt::Display for SubmitPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SubmitPath::Movdir64b => "MOVDIR64B",
            SubmitPath::Enqcmd => "ENQCMD",
            SubmitPath::Write => "write(2)",
        })
    }
}

/// A queue that is open, and how descriptors are submitted to it.
#[derive(Debug)]
pub(super) struct QueuePath {
    method: SubmitMethod,
    mode: WorkQueueMode,
    file: PathBuf,
    /// Why the portal is not mapped, where the kernel has refused it.
    refusal: Option<Arc<io::Error>>,
    /// ENQCMDs and write(2)s that were answered with retry.
    retries: u64,
    /// Why the kernel refuses descriptors for good.
    pub(super) failure: Option<HwError>,
}

#[derive(Debug)]
enum SubmitMethod {
    /// The mapping keeps the queue open: no file descriptor is left, which programs may count on.
    Portal(Portal),
    Write(Arc<File>),
}

impl QueuePath {
    /// Opens a queue. `how`: the only method, or the portal and else write(2). `rotates`: each
    /// descriptor goes to another line of the portal.
    pub(super) fn open(
        queue: &QueueInfo,
        how: Option<Submitting>,
        rotates: bool,
    ) -> Result<QueuePath, HwError> {
        let file = open_file(queue)?;
        let mut refusal = None;
        let method = match how {
            Some(Submitting::Write) => SubmitMethod::Write(Arc::new(file)),
            how => match Portal::map(&file, rotates) {
                Ok(portal) => SubmitMethod::Portal(portal),
                Err(error) if how.is_none() && is_refused(&error) => {
                    refusal = Some(Arc::new(error));
                    SubmitMethod::Write(Arc::new(file))
                }
                Err(source) => {
                    return Err(HwError::Map {
                        path: queue.path.clone(),
                        source,
                    });
                }
            },
        };
        Ok(QueuePath {
            method,
            mode: queue.mode,
            file: queue.path.clone(),
            refusal,
            retries: 0,
            failure: None,
        })
    }

    /// The same queue for another thread, number `turn`.
    pub(super) fn shared(&self, turn: usize) -> QueuePath {
        let method = match &self.method {
            SubmitMethod::Portal(portal) => SubmitMethod::Portal(portal.shared(turn)),
            SubmitMethod::Write(file) => SubmitMethod::Write(file.clone()),
        };
        QueuePath {
            method,
            mode: self.mode,
            file: self.file.clone(),
            refusal: self.refusal.clone(),
            retries: 0,
            failure: None,
        }
    }

    pub(super) fn kind(&self) -> SubmitPath {
        match (&self.method, self.mode) {
            (SubmitMethod::Write(_), _) => SubmitPath::Write,
            (SubmitMethod::Portal(_), WorkQueueMode::Dedicated) => SubmitPath::Movdir64b,
            (SubmitMethod::Portal(_), WorkQueueMode::Shared) => SubmitPath::Enqcmd,
        }
    }

    pub(super) fn file(&self) -> &std::path::Path {
        &self.file
    }

    pub(super) fn refusal(&self) -> Option<&io::Error> {
        self.refusal.as_deref()
    }

    pub(super) fn retries(&self) -> u64 {
        self.retries
    }

    /// Submits a descriptor; a shared queue that is full is tried several times. Ignored: the kernel refuses
    /// it, and `failure` says why.
    ///
    /// # Safety
    /// As [`Portal::movdir64b`].
    #[inline(always)]
    pub(super) unsafe fn submit(&mut self, descriptor: &Descriptor) -> Submission {
        match (&mut self.method, self.mode) {
            (SubmitMethod::Portal(portal), WorkQueueMode::Dedicated) => {
                // SAFETY: the caller's promise is the same.
                unsafe { portal.movdir64b(descriptor) };
                Submission::Accepted
            }
            // SAFETY: as above.
            (SubmitMethod::Portal(_), WorkQueueMode::Shared) => unsafe { self.enqcmd(descriptor) },
            (SubmitMethod::Write(_), _) => self.write(descriptor),
        }
    }

    /// # Safety
    /// As [`submit`](QueuePath::submit).
    #[inline(never)]
    unsafe fn enqcmd(&mut self, descriptor: &Descriptor) -> Submission {
        let SubmitMethod::Portal(portal) = &mut self.method else {
            return Submission::Ignored;
        };
        for _ in 0..ATTEMPTS {
            // SAFETY: the caller's promise is the same.
            if unsafe { portal.enqcmd(descriptor) } {
                return Submission::Accepted;
            }
            self.retries += 1;
        }
        Submission::Retry
    }

    /// write(2) of one descriptor. The kernel answers a full shared queue with EAGAIN.
    #[cold]
    fn write(&mut self, descriptor: &Descriptor) -> Submission {
        let SubmitMethod::Write(file) = &self.method else {
            return Submission::Ignored;
        };
        let written = file.as_ref().write(descriptor.as_bytes());
        let source = match written {
            Ok(written) if written == size_of::<Descriptor>() => return Submission::Accepted,
            Ok(_) => io::Error::from(ErrorKind::WriteZero),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => {
                    self.retries += 1;
                    return Submission::Retry;
                }
                _ => error,
            },
        };
        let path = self.file.clone();
        self.failure = Some(HwError::Write { path, source });
        Submission::Ignored
    }
}

/// Whether the kernel forbids the mapping, and not the file lacks it.
fn is_refused(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}
