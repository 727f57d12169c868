//! The way of descriptors into a work queue of this machine.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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
    way: Way,
    mode: WorkQueueMode,
    credits: usize,
    path: PathBuf,
    failure: Option<HwError>,
    state: State,
}

/// How descriptors get there.
#[derive(Debug)]
enum Way {
    /// The mapping keeps the queue open: no file descriptor is left, which programs may count on.
    Portal(Portal),
    Write(File),
}

/// Looks that have found nothing between two looks at the clock, and time between two at the state.
const LOOKS: u32 = 1 << 12;
const STATE: Duration = Duration::from_millis(50);

/// Whether the queue is still the one that was opened, looked up while nothing completes: a posted write
/// to a queue that is disabled is lost, and nobody is told.
#[derive(Debug)]
struct State {
    /// Of sysfs: whether the queue is enabled.
    path: PathBuf,
    /// Of sysfs, if it counts this client: how many have the queue open. The driver forgets them when it
    /// disables the queue.
    clients: Option<PathBuf>,
    /// The device file that was opened: a queue that is enabled gets a new one.
    node: Option<(u64, u64)>,
    looks: Cell<u32>,
    /// When the state was last looked up.
    since: Cell<Instant>,
    /// Set once it was found disabled.
    disabled: OnceCell<HwError>,
}

impl State {
    /// Of a queue that was just opened.
    fn new(path: &Path, file: &Path) -> State {
        let clients = path.with_file_name("clients");
        State {
            path: path.to_owned(),
            clients: match says(&clients, |count| count != b"0\n") {
                Some(true) if clients.exists() => Some(clients),
                _ => None,
            },
            node: node(file),
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
            false => self.is_disabled(),
        }
    }

    #[inline]
    fn is_disabled(&self) -> bool {
        self.disabled.get().is_some()
    }

    #[cold]
    fn look_up(&self, file: &Path) -> bool {
        if self.is_disabled() {
            return true;
        }
        if self.since.get().elapsed() < STATE {
            return false;
        }
        self.since.set(Instant::now());
        let is_off = says(&self.path, |state| state.starts_with(b"disabled")) == Some(true);
        let clients = self.clients.as_deref();
        let clients = clients.and_then(|clients| says(clients, |count| count == b"0\n"));
        let node = node(file);
        let disabled = is_off
            // It was disabled, and enabled again since.
            || clients == Some(true)
            || node.is_some() && self.node.is_some() && node != self.node;
        if disabled {
            let path = file.to_owned();
            let _ = self.disabled.set(HwError::Disabled { path });
        }
        disabled
    }
}

/// Which file a path leads to.
fn node(file: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(file).ok()?;
    Some((found.dev(), found.ino()))
}

/// Whether an attribute says so, or has gone with its device. Other errors tell nothing, nor does a
/// directory of devices that is not there: the process has another root by now.
fn says(attribute: &Path, so: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
    let mut text = [0; 16];
    match File::open(attribute).and_then(|mut file| file.read(&mut text)) {
        Ok(count) => Some(so(&text[..count])),
        Err(error) => {
            let devices = attribute.ancestors().nth(2);
            let is_missing = error.kind() == ErrorKind::NotFound;
            let is_gone = error.raw_os_error() == Some(libc::ENODEV)
                || is_missing && devices.is_some_and(Path::is_dir);
            is_gone.then_some(true)
        }
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
        let state = State::new(&queue.state, &queue.path);
        let way = match how {
            Some(Submitting::Write) => Way::Write(file),
            how => match Portal::map(&file, rotates) {
                Ok(portal) => Way::Portal(portal),
                Err(error) if how.is_none() && is_refused(&error) => Way::Write(file),
                Err(source) => {
                    return Err(HwError::Map {
                        path: path(),
                        source,
                    });
                }
            },
        };
        Ok(HwPort {
            way,
            mode: queue.mode,
            credits: queue.entries.into(),
            path: path(),
            failure: None,
            state,
        })
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
        match file.write(descriptor.as_bytes()) {
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
            // Whose queue it is by now nobody knows.
            return Submission::Ignored;
        }
        let Way::Portal(portal) = &mut self.way else {
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
