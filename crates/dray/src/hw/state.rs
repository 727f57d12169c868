//! Whether a queue is still the one that was opened.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::HwError;
use crate::Home;

/// Polls without a completion between two reads of the clock.
const POLLS_BETWEEN_CLOCK_READS: u32 = 1 << 12;
/// Time between two reads of the state.
const STATE_READ_INTERVAL: Duration = Duration::from_millis(50);

/// Whether the queue is still the one that was opened, read while nothing completes: a posted write
/// to a queue that is disabled is lost without an answer.
#[derive(Debug)]
pub(super) struct State {
    opened: Arc<Opened>,
    /// Polls without a completion.
    polls: Cell<u32>,
    /// When the state was last read.
    read_at: Cell<Instant>,
    /// Set once it was found disabled.
    pub(super) disabled: OnceCell<HwError>,
}

/// The queue when it was opened.
#[derive(Debug)]
pub(super) struct Opened {
    /// Of sysfs: whether the queue is enabled.
    path: PathBuf,
    /// Of sysfs, if it counts this client: how many have the queue open. The driver forgets them when it
    /// disables the queue.
    clients: Option<PathBuf>,
    /// The device file that was opened: a queue that is enabled gets a new one.
    node: Option<(u64, u64)>,
    home: Home,
}

impl Opened {
    /// Of a queue that was just opened.
    pub(super) fn new(path: &Path, file: &Path) -> Arc<Opened> {
        let clients = path.with_file_name("clients");
        Arc::new(Opened {
            path: path.to_owned(),
            clients: match says(&clients, |count| count != b"0\n") {
                Some(true) if clients.exists() => Some(clients),
                _ => None,
            },
            node: node(file),
            home: Home::here(),
        })
    }

    /// Whether the queue was disabled since.
    fn is_disabled(&self, file: &Path) -> bool {
        let is_off = says(&self.path, |state| state.starts_with(b"disabled")) == Some(true);
        let clients = self.clients.as_deref();
        let clients = clients.and_then(|clients| says(clients, |count| count == b"0\n"));
        let node = node(file);
        is_off
            // It was disabled, and enabled again since.
            || clients == Some(true)
            || node.is_some() && self.node.is_some() && node != self.node
    }
}

impl State {
    /// Of a queue that was opened so.
    pub(super) fn new(opened: Arc<Opened>) -> State {
        State {
            opened,
            polls: Cell::new(0),
            read_at: Cell::new(Instant::now()),
            disabled: OnceCell::new(),
        }
    }

    /// The process that has opened the queue.
    pub(super) fn home(&self) -> Home {
        self.opened.home
    }

    /// A poll has found no completion. Whether the queue was found disabled.
    #[inline]
    pub(super) fn after_empty_poll(&self, file: &Path) -> bool {
        let polls = self.polls.get().wrapping_add(1);
        self.polls.set(polls);
        match polls.is_multiple_of(POLLS_BETWEEN_CLOCK_READS) {
            true => self.read_state(file),
            false => self.is_disabled(),
        }
    }

    #[inline]
    pub(super) fn is_disabled(&self) -> bool {
        self.disabled.get().is_some()
    }

    #[cold]
    fn read_state(&self, file: &Path) -> bool {
        if self.is_disabled() {
            return true;
        }
        if self.read_at.get().elapsed() < STATE_READ_INTERVAL {
            return false;
        }
        self.read_at.set(Instant::now());
        let disabled = self.opened.is_disabled(file);
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

/// Whether an attribute says so, or has gone with its device. Other errors say nothing, nor does a
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
