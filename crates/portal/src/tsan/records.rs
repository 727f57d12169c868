//! Completion records whose descriptors were submitted, by their addresses.
//!
//! Of fixed size and without a lock: reads of the program ask for each address in a line of 32 bytes that has the same
//! [place in the filter](FILTER).

use super::fibers;
use super::runtime::Runtime;
use crate::guarded::read;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bytes of a completion record, and its alignment (spec 3.5).
pub(super) const RECORD: u64 = 32;
/// Records that are known at once.
const RECORDS: usize = 4096;
/// Places that an address may have, from its own on.
const CHAIN: usize = 16;
/// Times that threads acquire what comes before a record. Memory that is no record any more is then forgotten.
const ACQUIRED: u32 = 1 << 16;
/// Lines with the same filter place are 2 MiB apart.
pub(super) const LINES: usize = 1 << 16;

/// By the last 16 bits of a line's number: how many records there are, 255 for as many or more.
pub(super) static FILTER: [AtomicU8; LINES] = [const { AtomicU8::new(0) }; LINES];

static TABLE: [Record; RECORDS] = [const { Record::new() }; RECORDS];

/// A record.
#[derive(Debug)]
pub(super) struct Record {
    /// Its address; 0: none.
    address: AtomicU64,
    /// Number of the submission, see [`fibers`](super::fibers).
    submission: AtomicU64,
    /// How often threads have acquired what comes before it.
    acquired: AtomicU32,
    /// Threads for which it was [empty](super::pending), and which may have read it later.
    polls: AtomicU32,
    /// Address that what comes before the record is released at.
    token: AtomicU64,
}

impl Record {
    const fn new() -> Record {
        Record {
            address: AtomicU64::new(0),
            submission: AtomicU64::new(0),
            acquired: AtomicU32::new(0),
            polls: AtomicU32::new(0),
            token: AtomicU64::new(0),
        }
    }

    /// Where what comes before the record is released: an address of our own.
    pub(super) fn token(&self) -> u64 {
        (&raw const self.token).addr() as u64
    }

    pub(super) fn submission(&self) -> u64 {
        self.submission.load(Ordering::Relaxed)
    }

    /// Whether the device has written to it: its status (spec 5.4) is not 0, or a thread has found that before. One that cannot
    /// be read is not written.
    ///
    /// # Safety
    /// It is at this address, and [`trap::install`](crate::trap::install) was called.
    pub(super) unsafe fn is_written(&self, at: u64) -> bool {
        let mut status = [0];
        // SAFETY: the caller vouches for it; another thread may have unmapped it.
        let known = unsafe { read(at, &mut status) };
        known.is_ok() && (status[0] != 0 || self.is_acquired())
    }

    /// Whether a thread has found it written.
    pub(super) fn is_acquired(&self) -> bool {
        self.acquired.load(Ordering::Relaxed) != 0
    }

    /// It is empty, and a thread is about to read it.
    pub(super) fn begin_poll(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// That thread has read it. A submission in between has forgotten it.
    pub(super) fn end_poll(&self) {
        let less = |polls: u32| polls.checked_sub(1);
        let _ = self
            .polls
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// A thread has found it written: what comes before it comes before what the thread does next. Forgets the record after
    /// many times.
    pub(super) fn seen(&self) {
        let Some(runtime) = Runtime::get() else {
            return;
        };
        let submission = self.submission();
        // SAFETY: an address of our own.
        unsafe { (runtime.acquire)((&raw const self.token).cast_mut().cast()) };
        if self.acquired.fetch_add(1, Ordering::Relaxed) >= ACQUIRED {
            self.forget();
        }
        fibers::complete(submission);
    }

    fn forget(&self) {
        let address = self.address.swap(0, Ordering::AcqRel);
        if address != 0 {
            let count = &FILTER[line(address)];
            let less = |count| (1..u8::MAX).contains(&count).then(|| count - 1);
            let _ = count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
        }
    }
}

fn line(address: u64) -> usize {
    (address / RECORD) as usize % LINES
}

fn chain(address: u64) -> impl Iterator<Item = &'static Record> {
    const BITS: u32 = RECORDS.trailing_zeros();
    let first = ((address / RECORD).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize;
    (0..CHAIN).map(move |step| &TABLE[(first + step) % RECORDS])
}

/// The record at this address, which is a multiple of [`RECORD`].
pub(super) fn find(address: u64) -> Option<&'static Record> {
    chain(address).find(|record| record.address.load(Ordering::Acquire) == address)
}

/// Records of one submission.
pub(super) fn of(submission: u64) -> impl Iterator<Item = (u64, &'static Record)> {
    let known = TABLE
        .iter()
        .map(|record| (record.address.load(Ordering::Acquire), record));
    known.filter(move |(address, record)| *address != 0 && record.submission() == submission)
}

/// Enters the record of a submission, in place of one that a thread has found written if there is no room; `None` where all
/// are in flight.
pub(super) fn enter(address: u64, submission: u64) -> Option<&'static Record> {
    let claim = |record: &Record| {
        let free = record
            .address
            .compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed);
        free.is_ok()
    };
    let known = find(address);
    let record = known
        .or_else(|| chain(address).find(|record| claim(record)))
        .or_else(|| {
            let old = chain(address).find(|record| record.is_acquired())?;
            old.forget();
            claim(old).then_some(old)
        })?;
    record.submission.store(submission, Ordering::Relaxed);
    record.acquired.store(0, Ordering::Relaxed);
    record.polls.store(0, Ordering::Relaxed);
    if known.is_none() {
        let more = |count: u8| Some(count.saturating_add(1));
        let _ = FILTER[line(address)].fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
    }
    Some(record)
}

/// Whether a thread may have read a record of this submission as written after it was asked for here, when it was empty.
pub(super) fn may_have_been_seen(submission: u64) -> bool {
    of(submission).any(|(address, record)| {
        record.polls.load(Ordering::Relaxed) != 0
            && !record.is_acquired()
            // SAFETY: a thread of the program has polled it, and the device has written to it or will.
            && unsafe { record.is_written(address) }
    })
}
