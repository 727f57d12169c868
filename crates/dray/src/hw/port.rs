//! The way of descriptors into a work queue of this machine.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use dray_device::{Submission, WorkQueueMode};
use dray_spec::Descriptor;
use zerocopy::IntoBytes;

use super::portal::{Portal, open_file};
use super::{HwError, QueueInfo};
use crate::Executor;
use crate::queue::Port;

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
    state: State,
}

/// Looks that have found nothing between two looks at the clock, and time between two at the state.
const LOOKS: u32 = 1 << 12;
const STATE: Duration = Duration::from_millis(50);

/// Whether the queue is enabled, looked up while nothing completes: a posted write to a queue that is not
/// is lost, and nobody is told.
#[derive(Debug)]
struct State {
    path: std::path::PathBuf,
    looks: Cell<u32>,
    /// When the state was last looked up.
    since: Cell<Instant>,
    /// Set once it was found disabled.
    disabled: OnceCell<HwError>,
}

impl State {
    fn new(path: &Path) -> State {
        State {
            path: path.to_owned(),
            looks: Cell::new(0),
            since: Cell::new(Instant::now()),
            disabled: OnceCell::new(),
        }
    }

    /// Another look has found nothing. Whether the queue was found disabled.
    #[inline]
    fn look(&self, file: &Path) -> bool {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        match looks.is_multiple_of(LOOKS) {
            true => self.look_up(file),
            false => self.disabled.get().is_some(),
        }
    }

    #[cold]
    fn look_up(&self, file: &Path) -> bool {
        if self.disabled.get().is_some() {
            return true;
        }
        if self.since.get().elapsed() < STATE {
            return false;
        }
        self.since.set(Instant::now());
        let mut text = [0; 16];
        let read = File::open(&self.path).and_then(|mut state| state.read(&mut text));
        let disabled = match read {
            Ok(count) => text[..count].starts_with(b"disabled"),
            // The device has gone; other errors tell nothing.
            Err(error) => {
                let gone = error.raw_os_error() == Some(libc::ENODEV);
                gone || error.kind() == ErrorKind::NotFound
            }
        };
        if disabled {
            let path = file.to_owned();
            let _ = self.disabled.set(HwError::Disabled { path });
        }
        disabled
    }
}

impl HwPort {
    /// Opens a queue. `how`: the only way to submit, or the portal and else write(2). `rotates`: each
    /// descriptor goes to another line of the portal.
    pub(super) fn open(
        queue: &QueueInfo,
        how: Option<Submitting>,
        rotates: bool,
    ) -> Result<HwPort, HwError> {
        let path = || queue.path.clone();
        let file = open_file(queue)?;
        let portal = match how {
            Some(Submitting::Write) => None,
            how => match Portal::map(&file, rotates) {
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
            state: State::new(&queue.state),
        })
    }

    pub(super) fn submitting(&self) -> Submitting {
        match self.portal {
            Some(_) => Submitting::Portal,
            None => Submitting::Write,
        }
    }

    pub(super) fn failure(&self) -> Option<&HwError> {
        self.failure.as_ref().or(self.state.disabled.get())
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
        // SAFETY: what the descriptor names is the promise of whoever enqueued it.
        unsafe { submit(portal, self.mode, descriptor) }
    }

    #[inline]
    fn credits(&self) -> usize {
        self.credits
    }

    /// A queue is disabled when all that it had has ended.
    #[inline]
    fn has_ended(&self) -> bool {
        self.state.look(&self.path)
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.failure.is_some()
    }
}

/// Submits by the instruction of the queue's mode.
///
/// # Safety
/// As [`Portal::movdir64b`].
#[inline]
unsafe fn submit(portal: &mut Portal, mode: WorkQueueMode, descriptor: &Descriptor) -> Submission {
    match mode {
        WorkQueueMode::Dedicated => {
            // SAFETY: the caller's promise is the same.
            unsafe { portal.movdir64b(descriptor) };
            Submission::Accepted
        }
        WorkQueueMode::Shared => {
            for _ in 0..ATTEMPTS {
                // SAFETY: as above.
                if unsafe { portal.enqcmd(descriptor) } {
                    return Submission::Accepted;
                }
            }
            Submission::Retry
        }
    }
}

/// Whether the kernel forbids the mapping, and not the file lacks it.
fn is_refused(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}
