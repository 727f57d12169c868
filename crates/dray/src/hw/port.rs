//! The way of descriptors into a work queue of this machine.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

use dray_device::{Submission, WorkQueueMode};
use dray_spec::Descriptor;
use zerocopy::IntoBytes;

use super::credits::{Credits, Pool};
use super::portal::{Portal, open_file};
use super::state::{Opened, State};
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
    way: Way,
    mode: WorkQueueMode,
    credits: Credits,
    path: PathBuf,
    failure: Option<HwError>,
    state: State,
}

/// How descriptors get there.
#[derive(Debug)]
enum Way {
    /// The mapping keeps the queue open: no file descriptor is left, which programs may count on.
    Portal(Portal),
    Write(Arc<File>),
}

impl Way {
    /// Opens a queue. `how`: the only way to submit, or the portal and else write(2). `rotates`: each
    /// descriptor goes to another line of the portal.
    fn open(
        queue: &QueueInfo,
        how: Option<Submitting>,
        rotates: bool,
    ) -> Result<(Way, Arc<Opened>), HwError> {
        let file = open_file(queue)?;
        let opened = Opened::new(&queue.state, &queue.path);
        let way = match how {
            Some(Submitting::Write) => Way::Write(Arc::new(file)),
            how => match Portal::map(&file, rotates) {
                Ok(portal) => Way::Portal(portal),
                Err(error) if how.is_none() && is_refused(&error) => Way::Write(Arc::new(file)),
                Err(source) => {
                    return Err(HwError::Map {
                        path: queue.path.clone(),
                        source,
                    });
                }
            },
        };
        Ok((way, opened))
    }
}

/// What several movers of a queue have in common.
#[derive(Debug)]
pub(super) struct SharedPort {
    way: Way,
    /// As it was when the queue was opened.
    opened: Arc<Opened>,
    pool: Arc<Pool>,
}

impl SharedPort {
    /// As [`HwPort::open`].
    pub(super) fn open(
        queue: &QueueInfo,
        how: Option<Submitting>,
        rotates: bool,
    ) -> Result<SharedPort, HwError> {
        let (way, opened) = Way::open(queue, how, rotates)?;
        Ok(SharedPort {
            way,
            opened,
            pool: Arc::new(Pool::new(queue.entries.into())),
        })
    }

    /// A way into the queue, number `turn`.
    pub(super) fn port(&self, queue: &QueueInfo, turn: usize) -> HwPort {
        let way = match &self.way {
            Way::Portal(portal) => Way::Portal(portal.shared(turn)),
            Way::Write(file) => Way::Write(file.clone()),
        };
        let credits = match queue.mode {
            WorkQueueMode::Dedicated => Credits::of(self.pool.clone()),
            // The device itself answers what it has no room for.
            WorkQueueMode::Shared => Credits::Own(queue.entries.into()),
        };
        let state = State::new(self.opened.clone());
        HwPort::new(queue, way, state, credits)
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
        let (way, opened) = Way::open(queue, how, rotates)?;
        let state = State::new(opened);
        let credits = Credits::Own(queue.entries.into());
        Ok(HwPort::new(queue, way, state, credits))
    }

    fn new(queue: &QueueInfo, way: Way, state: State, credits: Credits) -> HwPort {
        HwPort {
            way,
            mode: queue.mode,
            credits,
            path: queue.path.clone(),
            failure: None,
            state,
        }
    }

    pub(super) fn submitting(&self) -> Submitting {
        match self.way {
            Way::Portal(_) => Submitting::Portal,
            Way::Write(_) => Submitting::Write,
        }
    }

    pub(super) fn failure(&self) -> Option<&HwError> {
        self.failure.as_ref().or(self.state.disabled.get())
    }

    /// write(2) of one descriptor. The kernel answers a full shared queue with EAGAIN.
    #[cold]
    fn write(&mut self, descriptor: &Descriptor) -> Submission {
        let Way::Write(file) = &mut self.way else {
            return Submission::Ignored;
        };
        match file.as_ref().write(descriptor.as_bytes()) {
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
        if self.state.is_disabled() {
            // The queue may belong to another program by now.
            return Submission::Ignored;
        }
        if !self.credits.take() {
            return Submission::Retry;
        }
        let submission = match &mut self.way {
            // SAFETY: what the descriptor names is the promise of the caller that enqueued it.
            Way::Portal(portal) => unsafe { submit(portal, self.mode, descriptor) },
            Way::Write(_) => self.write(descriptor),
        };
        if submission != Submission::Accepted {
            self.credits.give_back();
        }
        submission
    }

    #[inline]
    fn credits(&self) -> usize {
        self.credits.most()
    }

    #[inline]
    fn ended(&mut self) {
        self.credits.give_back();
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
