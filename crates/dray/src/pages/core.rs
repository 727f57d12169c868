//! Pages that threads of this process copy.

use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::slice;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use dray_placement::{Cut, PAGE, Piece, Rest};

use super::probe::{PROBE_BYTES, Probe};
use super::report::Failed;
use super::{PageCopy, PageList};
use crate::populate::populate;

/// What the threads have in common.
pub(super) struct CoreCopy {
    /// Addresses are looked at first.
    pub(super) checked: bool,
    pub(super) deadline: Option<Instant>,
    /// Which stores are used.
    pub(super) stores: Stores,
    /// What was not copied.
    pub(super) failed: Mutex<Vec<Failed>>,
}

/// Lists of as many bytes do not fit into the second-level cache of a core of the DSA's generation.
const NON_TEMPORAL_BYTES: u64 = 2 << 20;

/// Stores of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stores {
    /// The destination is in the caches afterwards.
    Cached,
    /// They go to memory.
    NonTemporal,
}

impl Stores {
    /// Those with which a list of so many bytes is copied fastest.
    pub(super) fn of_list(bytes: u64) -> Stores {
        match bytes < NON_TEMPORAL_BYTES {
            true => Stores::Cached,
            false => Stores::NonTemporal,
        }
    }
}

impl CoreCopy {
    /// Copies a list with up to `threads` threads, the calling one among them.
    pub(super) fn list(&self, list: &PageList, threads: usize) {
        let threads = threads.clamp(1, list.base_pages().clamp(1, 64) as usize);
        let cut = Cut::equal(list.bytes(), threads as u64, 1);
        let mut parts = Rest::new(list.bytes()).pieces(cut);
        let own = parts.next();
        thread::scope(|scope| {
            // Whether a thread copies the part. No thread can be made at a limit of threads or of memory.
            let has_thread = |part: Piece| {
                let copy = move || self.part(list, part);
                thread::Builder::new().spawn_scoped(scope, copy).is_ok()
            };
            let refused = parts.find(|part| !has_thread(*part));
            for part in own.into_iter().chain(refused).chain(parts) {
                self.part(list, part);
            }
        });
    }

    /// Copies a part of a list, counted through its runs.
    fn part(&self, list: &PageList, part: Piece) {
        let end = part.offset + part.bytes;
        let mut position = 0;
        let runs = list.runs().iter().filter_map(|run| {
            let (start, stop) = (position.max(part.offset), (position + run.bytes).min(end));
            let skipped = start - position;
            position += run.bytes;
            (start < stop).then(|| PageCopy {
                bytes: stop - start,
                ..behind(*run, skipped)
            })
        });
        self.runs(runs);
    }

    /// Copies a part of an entry, for which the caller of `copy_page_lists` has made its promise.
    pub(super) fn run(&self, run: PageCopy) {
        self.runs([run].into_iter());
    }

    /// Copies runs by groups of as many bytes as are looked at together.
    fn runs(&self, runs: impl Iterator<Item = PageCopy>) {
        let probe = self.checked && self.stores == Stores::NonTemporal;
        let mut probe = probe.then(Probe::new).flatten();
        let (mut group, mut room) = (Vec::new(), PROBE_BYTES);
        for mut run in runs {
            while run.bytes > 0 {
                let bytes = run.bytes.min(room);
                group.push(PageCopy { bytes, ..run });
                run = behind(run, bytes);
                room -= bytes;
                if room == 0 {
                    self.group(&group, probe.as_mut());
                    group.clear();
                    room = PROBE_BYTES;
                }
            }
        }
        self.group(&group, probe.as_mut());
    }

    fn group(&self, pieces: &[PageCopy], probe: Option<&mut Probe>) {
        if self.deadline.is_some_and(|end| Instant::now() >= end) {
            return pieces
                .iter()
                .for_each(|piece| self.fail(piece, piece.bytes, None));
        }
        // SAFETY: the caller of `copy_page_lists` has promised this of the whole list.
        let accessible = probe.is_some_and(|probe| unsafe { probe.accessible(pieces) });
        for piece in pieces {
            match accessible || !self.checked {
                // SAFETY: as above.
                true => unsafe { copy(piece.source, piece.destination, piece.bytes, self.stores) },
                false => self.checked_piece(*piece),
            }
        }
    }

    /// Copies a piece, but for the pages of it that cannot be accessed.
    fn checked_piece(&self, mut piece: PageCopy) {
        while piece.bytes > 0 {
            let fault = fault(&piece);
            // Up to the page that cannot be accessed, and on behind it.
            let (good, bad) = match fault {
                None => (piece.bytes, 0),
                Some((offset, address, _)) => {
                    let page = PAGE - address % PAGE;
                    (offset, page.min(piece.bytes - offset))
                }
            };
            // SAFETY: the caller has promised this of the whole entry.
            unsafe { copy(piece.source, piece.destination, good, self.stores) };
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
/// The source must be readable and not written, the destination writable and not accessed otherwise, and the
/// two must not overlap.
unsafe fn copy(source: u64, destination: u64, bytes: u64, stores: Stores) {
    let (from, len) = (
        with_exposed_provenance::<u8>(source as usize),
        bytes as usize,
    );
    let to = with_exposed_provenance_mut::<u8>(destination as usize);
    if stores == Stores::Cached || bytes == 0 {
        // SAFETY: the caller's promise is the same.
        unsafe { from.copy_to_nonoverlapping(to, len) };
        return;
    }
    // SAFETY: the caller promises that it is readable, and not written meanwhile.
    let from = unsafe { slice::from_raw_parts(from, len) };
    // SAFETY: the caller promises that it is writable, and that nothing else accesses it meanwhile.
    let to = unsafe { slice::from_raw_parts_mut(to, len) };
    let copied = dray_ops::copy_non_temporal(from, to);
    debug_assert_eq!(copied, Ok(()), "the lengths are equal");
}
