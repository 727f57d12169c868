//! Pages that threads of this process copy.

use std::ptr::{self, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use super::plan::BASE_PAGE;
use super::report::Failed;
use super::{PageCopy, PageList};
use crate::populate::populate;

/// What the threads have in common.
pub(super) struct CoreCopy {
    /// Addresses are looked at first.
    pub(super) checked: bool,
    pub(super) deadline: Option<Instant>,
    /// What was not copied.
    pub(super) failed: Mutex<Vec<Failed>>,
}

/// Bytes that are copied between two looks at the clock.
const BETWEEN_LOOKS: u64 = 2 << 20;

impl CoreCopy {
    /// Copies a list with up to `threads` threads, the calling one among them.
    pub(super) fn list(&self, list: &PageList, threads: usize) {
        let threads = threads.clamp(1, list.base_pages().clamp(1, 64) as usize);
        // Equal parts of the bytes, each of whole pages.
        let part = list.bytes().div_ceil(threads as u64);
        let part = part.next_multiple_of(BASE_PAGE);
        thread::scope(|scope| {
            for n in 1..threads as u64 {
                scope.spawn(move || self.part(list, n * part, part));
            }
            self.part(list, 0, part);
        });
    }

    /// Copies the bytes `from .. from + bytes` of a list, counted through its runs.
    fn part(&self, list: &PageList, from: u64, bytes: u64) {
        let end = from.saturating_add(bytes);
        let mut position = 0;
        for run in list.runs() {
            let (start, stop) = (position.max(from), (position + run.bytes).min(end));
            if start < stop {
                self.run(PageCopy {
                    source: run.source + (start - position),
                    destination: run.destination + (start - position),
                    bytes: stop - start,
                });
            }
            position += run.bytes;
        }
    }

    /// Copies a part of an entry, for which the caller of `copy_page_lists` has made its promise.
    pub(super) fn run(&self, mut run: PageCopy) {
        while run.bytes > 0 {
            if self.deadline.is_some_and(|end| Instant::now() >= end) {
                return self.fail(&run, run.bytes, None);
            }
            let piece = PageCopy {
                bytes: run.bytes.min(BETWEEN_LOOKS),
                ..run
            };
            self.piece(piece);
            run = behind(run, piece.bytes);
        }
    }

    fn piece(&self, mut piece: PageCopy) {
        while piece.bytes > 0 {
            let fault = match self.checked {
                true => fault(&piece),
                false => None,
            };
            // Up to the page that cannot be accessed, and on behind it.
            let (good, bad) = match fault {
                None => (piece.bytes, 0),
                Some((offset, address, _)) => {
                    let page = BASE_PAGE - address % BASE_PAGE;
                    (offset, page.min(piece.bytes - offset))
                }
            };
            // SAFETY: the caller has promised this of the whole entry.
            unsafe { copy(piece.source, piece.destination, good) };
            piece = behind(piece, good);
            if bad > 0 {
                self.fail(
                    &piece,
                    bad,
                    fault.map(|(_, address, write)| (address, write)),
                );
                piece = behind(piece, bad);
            }
        }
    }

    fn fail(&self, from: &PageCopy, bytes: u64, fault: Option<(u64, bool)>) {
        let failed = Failed {
            destination: from.destination,
            bytes,
            fault,
        };
        let mut all = self.failed.lock().unwrap_or_else(|held| held.into_inner());
        all.push(failed);
    }
}

/// What is left of a copy behind so many bytes.
fn behind(copy: PageCopy, bytes: u64) -> PageCopy {
    PageCopy {
        source: copy.source + bytes,
        destination: copy.destination + bytes,
        bytes: copy.bytes - bytes,
    }
}

/// The first byte of a copy that the core cannot read, or write: its offset, its address, and which.
fn fault(copy: &PageCopy) -> Option<(u64, u64, bool)> {
    let of = |start: u64, write| {
        let address = populate(start, copy.bytes, write).err()?;
        Some((address - start, address, write))
    };
    let (read, written) = (of(copy.source, false), of(copy.destination, true));
    read.into_iter().chain(written).min_by_key(|fault| fault.0)
}

/// # Safety
/// The source must be readable, the destination writable, and the two must not overlap.
unsafe fn copy(source: u64, destination: u64, bytes: u64) {
    let from: *const u8 = with_exposed_provenance(source as usize);
    let to: *mut u8 = with_exposed_provenance_mut(destination as usize);
    // SAFETY: the caller's promise is the same.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes as usize) };
}
