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

/// In place of an address: a thread is about to write the fields. No record has it, for they are aligned.
const CLAIMED: u64 = 1;

/// By the last 16 bits of a line's number: how many records there are, 255 for as many or more.
pub(super) static FILTER: [AtomicU8; LINES] = [const { AtomicU8::new(0) }; LINES];

static TABLE: [Record; RECORDS] = [const { Record::new() }; RECORDS];

/// What is known to have completed with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing else: it is that of a member of a batch.
    Member,
    /// The submission.
    Submission,
    /// The submission, a batch, and with it its members.
    Batch,
    /// All that was submitted to the queue before.
    Drain,
}

/// What a record belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    /// Number of the submission, see [`fibers`](super::fibers).
    pub(super) submission: u64,
    /// Of the queue.
    pub(super) queue: u64,
    pub(super) reach: Reach,
}

/// A record.
#[derive(Debug)]
pub(super) struct Record {
    /// Its address; 0: none.
    address: AtomicU64,
    /// Of its [`Owner`].
    submission: AtomicU64,
    queue: AtomicU64,
    reach: AtomicU8,
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
            queue: AtomicU64::new(0),
            reach: AtomicU8::new(0),
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

    /// Whether a thread may have found it written that was told otherwise.
    fn is_polled(&self) -> bool {
        self.polls.load(Ordering::Relaxed) != 0 && !self.is_acquired()
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
        // SAFETY: an address of our own.
        unsafe { (runtime.acquire)((&raw const self.token).cast_mut().cast()) };
        match self.acquired.fetch_add(1, Ordering::Relaxed) {
            0 => self.complete(),
            ACQUIRED.. => self.forget(self.address.load(Ordering::Acquire)),
            _ => (),
        }
    }

    /// It is the first time: what has completed with it is not in flight, and its records may be forgotten.
    fn complete(&self) {
        let submission = self.submission();
        let queue = self.queue.load(Ordering::Relaxed);
        let reach = self.reach.load(Ordering::Relaxed);
        let in_reach = |other: &Record| {
            other.submission() == submission
                || reach == Reach::Drain as u8
                    && other.submission() < submission
                    && other.queue.load(Ordering::Relaxed) == queue
        };
        if reach == Reach::Batch as u8 || reach == Reach::Drain as u8 {
            for (_, record) in all().filter(|(_, record)| in_reach(record)) {
                if record.acquired.fetch_max(1, Ordering::Relaxed) == 0 {
                    fibers::complete(record.submission());
                }
            }
        }
        if reach != Reach::Member as u8 {
            fibers::complete(submission);
        }
    }

    /// If it is still that of this address.
    fn forget(&self, address: u64) {
        let order = Ordering::AcqRel;
        let known = address > CLAIMED
            && self
                .address
                .compare_exchange(address, 0, order, Ordering::Relaxed)
                .is_ok();
        if known {
            filter_less(address);
        }
    }

    /// Whether this thread may write the fields, which were those of `old`; 0: of none.
    fn claim(&self, old: u64) -> bool {
        let order = Ordering::AcqRel;
        self.address
            .compare_exchange(old, CLAIMED, order, Ordering::Relaxed)
            .is_ok()
    }
}

/// As many records less of the address's line.
fn filter_less(address: u64) {
    let count = &FILTER[line(address)];
    let less = |count| (1..u8::MAX).contains(&count).then(|| count - 1);
    let _ = count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
}

fn line(address: u64) -> usize {
    (address / RECORD) as usize % LINES
}

fn chain(address: u64) -> impl Iterator<Item = &'static Record> {
    const BITS: u32 = RECORDS.trailing_zeros();
    let first = ((address / RECORD).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize;
    (0..CHAIN).map(move |step| &TABLE[(first + step) % RECORDS])
}

/// The record at this address, which is a multiple of [`RECORD`]; none is at 0.
pub(super) fn find(address: u64) -> Option<&'static Record> {
    let mut at = chain(address).filter(|_| address != 0);
    at.find(|record| record.address.load(Ordering::Acquire) == address)
}

/// Records and their addresses.
fn all() -> impl Iterator<Item = (u64, &'static Record)> {
    let all = TABLE
        .iter()
        .map(|record| (record.address.load(Ordering::Acquire), record));
    all.filter(|(address, _)| *address > CLAIMED)
}

/// Records of one submission.
pub(super) fn of(submission: u64) -> impl Iterator<Item = (u64, &'static Record)> {
    all().filter(move |(_, record)| record.submission() == submission)
}

/// Memory that the program gives back has no records.
pub(super) fn forget_within(start: u64, bytes: u64) {
    for (address, record) in all().filter(|(address, _)| address.wrapping_sub(start) < bytes) {
        record.forget(address);
    }
}

/// In a child: a thread that entered a record is not there.
pub(super) fn forked() {
    for record in &TABLE {
        let order = Ordering::AcqRel;
        let _ = record
            .address
            .compare_exchange(CLAIMED, 0, order, Ordering::Relaxed);
    }
}

/// Enters a record. One that was there and may have been seen comes before what this thread does next. Where there is no room
/// it is in place of one that a thread has found written, or else of the oldest. `None` where another thread is entering it, too.
pub(super) fn enter(address: u64, owner: Owner) -> Option<&'static Record> {
    let record = match find(address) {
        Some(known) => {
            if known.is_polled() {
                known.seen();
            }
            known.claim(address).then_some(known)?
        }
        None => {
            let record = room(address)?;
            let more = |count: u8| Some(count.saturating_add(1));
            let _ = FILTER[line(address)].fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
            record
        }
    };
    record.submission.store(owner.submission, Ordering::Relaxed);
    record.queue.store(owner.queue, Ordering::Relaxed);
    record.reach.store(owner.reach as u8, Ordering::Relaxed);
    record.acquired.store(0, Ordering::Relaxed);
    record.polls.store(0, Ordering::Relaxed);
    record.address.store(address, Ordering::Release);
    Some(record)
}

/// A place for the address, claimed.
fn room(address: u64) -> Option<&'static Record> {
    if let Some(free) = chain(address).find(|record| record.claim(0)) {
        return Some(free);
    }
    let old = chain(address).min_by_key(|record| (!record.is_acquired(), record.submission()))?;
    let before = old.address.load(Ordering::Acquire);
    let claimed = before > CLAIMED && old.claim(before);
    claimed.then(|| {
        filter_less(before);
        old
    })
}

/// Whether a thread may have read a record of this submission as written after it was asked for here, when it was empty.
pub(super) fn may_have_been_seen(submission: u64) -> bool {
    of(submission).any(|(_, record)| record.is_polled())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One test has the table at a time, and leaves it as empty as it was.
    static TABLE_USED: std::sync::Mutex<()> = std::sync::Mutex::new(());

    /// Runs with these records entered, of one queue.
    pub(in super::super) fn with_records(records: &[(u64, u64, Reach)], run: impl FnOnce()) {
        let _used = TABLE_USED.lock();
        for (at, submission, reach) in records {
            enter(*at, owner(*submission, 1, *reach)).expect("room");
        }
        run();
        for (at, ..) in records {
            forget_within(*at, RECORD);
        }
    }

    fn owner(submission: u64, queue: u64, reach: Reach) -> Owner {
        Owner {
            submission,
            queue,
            reach,
        }
    }

    /// Addresses that nothing else has, and that have the same chain.
    fn of_one_chain() -> impl Iterator<Item = u64> {
        let first = |at| std::ptr::from_ref(chain(at).next().expect("a place"));
        let base = 1 << 45;
        let others = (0..).map(move |n| base + n * RECORD);
        others.filter(move |at| first(*at) == first(base))
    }

    #[test]
    fn a_full_chain_gives_up_what_is_acquired_and_then_the_oldest() {
        let _used = TABLE_USED.lock();
        let addresses: Vec<_> = of_one_chain().take(CHAIN + 2).collect();
        let counts = || {
            addresses
                .iter()
                .map(|at| u32::from(FILTER[line(*at)].load(Ordering::Relaxed)))
        };
        let before: u32 = counts().sum();
        for (at, number) in addresses[..CHAIN].iter().zip(100..) {
            assert!(enter(*at, owner(number, 1, Reach::Submission)).is_some());
        }
        find(addresses[5])
            .expect("known")
            .acquired
            .store(1, Ordering::Relaxed);
        assert!(enter(addresses[CHAIN], owner(200, 1, Reach::Submission)).is_some());
        assert!(find(addresses[5]).is_none() && find(addresses[0]).is_some());
        assert!(enter(addresses[CHAIN + 1], owner(201, 1, Reach::Submission)).is_some());
        assert!(find(addresses[0]).is_none() && find(addresses[1]).is_some());
        forget_within(1 << 45, 1 << 44);
        assert!(addresses.iter().all(|at| find(*at).is_none()));
        assert_eq!(counts().sum::<u32>(), before, "the filter is as it was");
    }

    #[test]
    fn a_record_completes_what_it_stands_for() {
        let _used = TABLE_USED.lock();
        let at = |n: u64| (1 << 46) + n * RECORD;
        let acquired = |n| find(at(n)).expect("known").is_acquired();
        for (n, of) in [
            (0, owner(1000, 7, Reach::Submission)),
            (1, owner(1001, 7, Reach::Member)),
            (2, owner(1001, 7, Reach::Member)),
            (3, owner(1001, 7, Reach::Batch)),
            (4, owner(1002, 8, Reach::Submission)),
            (5, owner(1003, 7, Reach::Drain)),
            (6, owner(1004, 7, Reach::Submission)),
        ] {
            enter(at(n), of).expect("room");
        }
        find(at(1)).expect("known").complete();
        assert!(
            (0..7).all(|n| !acquired(n)),
            "a member stands for nothing else"
        );
        find(at(3)).expect("known").complete();
        assert_eq!([0, 1, 2, 3].map(acquired), [false, true, true, true]);
        find(at(5)).expect("known").complete();
        assert_eq!([0, 4, 6].map(acquired), [true, false, false]);
        forget_within(at(0), 7 * RECORD);
    }

    #[test]
    fn a_record_that_is_unmapped_or_being_entered_is_none() {
        let _used = TABLE_USED.lock();
        crate::trap::install().expect("handlers");
        // No page is at this address.
        let at = 2 * RECORD;
        let record = enter(at, owner(2000, 1, Reach::Submission)).expect("room");
        // SAFETY: it is entered at this address; there are handlers.
        assert!(!unsafe { record.is_written(at) });
        assert!(record.claim(at));
        assert!(find(at).is_none() && of(2000).next().is_none());
        forked();
        assert!(record.claim(0), "the child has the place");
        forked();
        filter_less(at);
    }
}
