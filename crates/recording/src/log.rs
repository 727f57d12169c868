//! The file, mapped, and how threads write to it. Nothing here allocates, locks or makes system calls after the file was opened.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::clock::to_ns;
use crate::page::{
    CHUNK, CLOSED, HEAD, MAGIC, PAGE, QUEUES, Queue, REQUEST, REQUESTS, Raw, VERSION,
};
use crate::request::{Flags, Request};

/// The file. It stays mapped for the rest of the process.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    raw: &'static Raw,
}

/// Where a thread writes. All zero: it has written nothing.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Cursor {
    /// Its chunk.
    chunk: *mut u8,
    /// Requests in that.
    used: u32,
    stream: u32,
    sequence: u32,
    pid: u32,
    tid: u32,
}

// SAFETY: a chunk belongs to the cursor that has claimed it.
unsafe impl Send for Cursor {}

/// A request that was written, for what becomes known of it later.
#[derive(Debug, Clone, Copy)]
pub struct Slot(NonNull<u8>);

// SAFETY: the file stays mapped, and what is written there is written by atomic stores.
unsafe impl Send for Slot {}

impl Cursor {
    /// Of a thread of a process that has written nothing.
    pub const fn new(pid: u32, tid: u32) -> Cursor {
        Cursor {
            chunk: std::ptr::null_mut(),
            used: 0,
            stream: 0,
            sequence: 0,
            pid,
            tid,
        }
    }

    /// Whether it is of this thread.
    pub fn is_of(&self, pid: u32, tid: u32) -> bool {
        (self.pid, self.tid) == (pid, tid)
    }

    /// Number of its thread in the file; 0: it has written nothing.
    pub fn stream(&self) -> u32 {
        self.stream
    }
}

impl Log {
    /// A file that a [`Session`](crate::Session) has made, for a process that writes to it.
    ///
    /// # Errors
    /// It cannot be opened or mapped, or is another file.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let other = || io::Error::new(io::ErrorKind::InvalidData, "no recording");
        if file.metadata()?.len() < PAGE as u64 {
            return Err(other());
        }
        let first = Log::map(&file, PAGE)?;
        let known = first.raw.magic.load(Ordering::Acquire) == MAGIC
            && first.raw.version.load(Ordering::Relaxed) == VERSION;
        let chunks = usize::try_from(first.raw.limit.load(Ordering::Relaxed));
        match chunks {
            Ok(chunks) if known && chunks as u64 <= crate::MOST_BYTES / PAGE as u64 => {
                Log::map(&file, (1 + chunks) * PAGE)
            }
            _ => Err(other()),
        }
    }

    /// Maps so many bytes, of which the file need not have more than the first page.
    pub(crate) fn map(file: &File, bytes: usize) -> io::Result<Log> {
        // SAFETY: a new mapping wherever there is room.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it stays mapped, is aligned to a page, and consists of atomics, of which any bytes are a value.
        let raw = unsafe { &*base.cast::<Raw>() };
        Ok(Log { raw })
    }

    pub(crate) fn raw(&self) -> &'static Raw {
        self.raw
    }

    /// Requests of fewer bytes are not to be recorded.
    pub fn min_bytes(&self) -> u64 {
        self.raw.min_bytes.load(Ordering::Relaxed)
    }

    /// A program has begun.
    pub fn begun(&self) {
        self.raw.processes.fetch_add(1, Ordering::Relaxed);
    }

    /// Nanoseconds of so many cycles.
    #[inline]
    pub fn ns(&self, cycles: u64) -> u64 {
        to_ns(cycles, self.raw.scale.load(Ordering::Relaxed))
    }

    /// The recording of one request has taken so many nanoseconds.
    pub fn timed(&self, ns: u64) {
        self.raw.timed.fetch_add(1, Ordering::Relaxed);
        self.raw.timed_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// The place of a work queue in the list of the file. One caller at a time. `None`: there is no room.
    pub fn queue(&self, queue: Queue) -> Option<u8> {
        let count = self.raw.queues.load(Ordering::Relaxed) as usize;
        let known = self.raw.queue.get(..count)?;
        let number = queue.number();
        let same = |place: &AtomicU32| place.load(Ordering::Relaxed) == number;
        if let Some(index) = known.iter().position(same) {
            return Some(index as u8);
        }
        if count == QUEUES {
            return None;
        }
        self.raw.queue[count].store(number, Ordering::Relaxed);
        self.raw.queues.store(count as u32 + 1, Ordering::Release);
        Some(count as u8)
    }

    /// Requests that could not be written.
    pub fn lose(&self, count: u64) {
        self.raw.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// Writes a request of a thread, which began at `began` cycles. `None`: there is no room, and the request is counted as
    /// lost.
    #[inline]
    pub fn append(&self, cursor: &mut Cursor, began: u64, request: &Request) -> Option<Slot> {
        if (cursor.chunk.is_null() || cursor.used as usize == REQUESTS)
            && !self.claim(cursor, began)
        {
            self.lose(1);
            return None;
        }
        let offset = HEAD + cursor.used as usize * REQUEST;
        // SAFETY: the chunk has room for so many requests, and is this cursor's.
        let place = unsafe { cursor.chunk.add(offset) };
        cursor.used += 1;
        let [first, rest @ ..] = request.words();
        for (index, word) in (1..).zip(rest) {
            word_at(place, index).store(word.to_le(), Ordering::Relaxed);
        }
        word_at(place, 0).store(first.to_le(), Ordering::Release);
        NonNull::new(place).map(Slot)
    }

    /// A request that was written has ended after so long.
    pub fn end(&self, slot: Slot, took: u32, failed: bool) {
        let place = slot.0.as_ptr();
        word_at(place, 5).store(took.to_le(), Ordering::Relaxed);
        if failed {
            let flag = u32::from(Flags::FAILED.0);
            word_at(place, 0).fetch_or(flag.to_le(), Ordering::Relaxed);
        }
    }

    /// Gives a thread a chunk; false if there is none left.
    #[cold]
    fn claim(&self, cursor: &mut Cursor, began: u64) -> bool {
        let order = Ordering::AcqRel;
        let mut claimed = self.raw.claimed.load(Ordering::Acquire);
        loop {
            if claimed & CLOSED != 0 || claimed >= self.raw.backed.load(Ordering::Acquire) {
                return false;
            }
            let next =
                self.raw
                    .claimed
                    .compare_exchange(claimed, claimed + 1, order, Ordering::Acquire);
            match next {
                Ok(_) => break,
                Err(other) => claimed = other,
            }
        }
        if cursor.stream == 0 {
            cursor.stream = self.raw.streams.fetch_add(1, Ordering::Relaxed) as u32 + 1;
        } else {
            cursor.sequence += 1;
        }
        let base = std::ptr::from_ref(self.raw).cast_mut().cast::<u8>();
        // SAFETY: the mapping has all chunks below the limit, and the file has room for those that are backed.
        let chunk = unsafe { base.add((1 + claimed as usize) * PAGE) };
        // Counters of two processors may differ.
        let since = began.saturating_sub(self.raw.began.load(Ordering::Relaxed));
        let ns = self.ns(since);
        let head = [
            cursor.pid,
            cursor.tid,
            cursor.stream,
            cursor.sequence,
            0,
            ns as u32,
            (ns >> 32) as u32,
        ];
        for (index, word) in (1..).zip(head) {
            word_at(chunk, index).store(word.to_le(), Ordering::Relaxed);
        }
        word_at(chunk, 0).store(CHUNK.to_le(), Ordering::Release);
        cursor.chunk = chunk;
        cursor.used = 0;
        true
    }
}

/// A word of a chunk that is mapped.
#[inline]
fn word_at(place: *mut u8, index: usize) -> &'static AtomicU32 {
    // SAFETY: callers name words of chunks, which stay mapped and are aligned to a word.
    let place = unsafe { place.cast::<u32>().add(index) };
    // SAFETY: as above; it is accessed by atomic operations alone.
    unsafe { AtomicU32::from_ptr(place) }
}

/// Counts of the header that a process may show while it records.
impl Log {
    /// Requests lost so far.
    pub fn lost(&self) -> u64 {
        self.raw.lost.load(Ordering::Relaxed)
    }

    /// How many recordings were timed, and how long they took together, in nanoseconds.
    pub fn timings(&self) -> (u64, u64) {
        let get = |value: &AtomicU64| value.load(Ordering::Relaxed);
        (get(&self.raw.timed), get(&self.raw.timed_ns))
    }
}
