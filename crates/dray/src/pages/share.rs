//! One channel's part of a page list, as resumable steps.

use dray_placement::PAGE;
use dray_spec::Status;

use super::plan::SPLIT_FROM;
use super::report::Executed;
use crate::populate::populate;
use crate::stalled_faults::StalledFaults;
use crate::{Application, Completion, Executor, Mover, Next, Operation, Progress};

/// Times that a page is made present without a byte copied between them before the core finishes the copy.
const MOST_FAULTS: u32 = 64;

/// A copy of one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) source: u64,
    pub(super) destination: u64,
    pub(super) bytes: u32,
}

/// Copies and bytes, by who has copied them.
///
/// ```
/// use dray::pages::PageCounts;
///
/// let one = PageCounts { descriptors: 1, device_bytes: 4096, ..PageCounts::default() };
/// assert_eq!(one.and(one).device_bytes, 8192);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageCounts {
    /// Descriptors that the mover has completed with success.
    pub descriptors: u64,
    /// Those of them that travelled in batches.
    pub in_batches: u64,
    /// Bytes that they copied.
    pub device_bytes: u64,
    /// Page faults that were resolved by touching the page; the rest of the copy was submitted again.
    pub page_faults: u64,
    /// Bytes that the core copied: the list was below the threshold.
    pub below_threshold_bytes: u64,
    /// Bytes that the core copied: a descriptor failed.
    pub after_failure_bytes: u64,
}

impl PageCounts {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: PageCounts) -> PageCounts {
        PageCounts {
            descriptors: self.descriptors + other.descriptors,
            in_batches: self.in_batches + other.in_batches,
            device_bytes: self.device_bytes + other.device_bytes,
            page_faults: self.page_faults + other.page_faults,
            below_threshold_bytes: self.below_threshold_bytes + other.below_threshold_bytes,
            after_failure_bytes: self.after_failure_bytes + other.after_failure_bytes,
        }
    }
}

/// A piece that the device has not copied, and why.
///
/// ```
/// use dray::pages::{PageCopy, PageList};
/// use dray::{CpuMover, Mover, drive};
///
/// let (source, mut target) = (vec![7_u8; 8192], vec![0_u8; 8192]);
/// let list = PageList::new(&[PageCopy {
///     source: source.as_ptr().expose_provenance() as u64,
///     destination: target.as_mut_ptr().expose_provenance() as u64,
///     bytes: 8192,
/// }])?;
/// let mut mover = CpuMover::new(16);
/// // SAFETY: both buffers are this function's own.
/// let mut shares = unsafe { list.plan(1, &mover.capabilities()) };
/// drive(&mut shares[0], &mut mover);
/// // Nothing is left for the core.
/// assert_eq!(shares[0].fallbacks(), []);
/// # Ok::<(), dray::pages::PageListError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// First address that is not copied.
    pub source: u64,
    /// Where it goes.
    pub destination: u64,
    /// Bytes that are left.
    pub bytes: u32,
    /// How the descriptor ended.
    pub status: Status,
    /// The address that the core cannot access either, for a page fault of this process's memory.
    pub fault: Option<u64>,
}

/// What is left of a piece.
#[derive(Debug, Clone, Copy)]
struct Rest {
    piece: Piece,
    faults: StalledFaults,
    batched: bool,
}

/// One channel's part of a page list. A step submits what fits, and looks at what has ended; page
/// faults are resolved by touching the page, but for those of this process's memory that the core cannot
/// access either: the rest of such a page is left out. What the device does not copy is in
/// [`fallbacks`](PageShare::fallbacks), for the caller to copy or to refuse.
///
/// ```
/// use dray::pages::{PageCopy, PageList};
/// use dray::{CpuMover, Mover, drive};
///
/// let (source, mut target) = (vec![7_u8; 8192], vec![0_u8; 8192]);
/// let list = PageList::new(&[PageCopy {
///     source: source.as_ptr().expose_provenance() as u64,
///     destination: target.as_mut_ptr().expose_provenance() as u64,
///     bytes: 8192,
/// }])?;
/// let mut mover = CpuMover::new(16);
/// // SAFETY: both buffers are this function's own.
/// let mut shares = unsafe { list.plan(1, &mover.capabilities()) };
/// drive(&mut shares[0], &mut mover);
/// assert_eq!(shares[0].counts().device_bytes, 8192);
/// assert_eq!(source, target);
/// # Ok::<(), dray::pages::PageListError>(())
/// ```
#[derive(Debug)]
pub struct PageShare {
    rest: Vec<Rest>,
    max_batch: usize,
    /// The next piece that was never submitted.
    next: usize,
    /// Pieces to submit again.
    again: Vec<usize>,
    in_flight: usize,
    /// Nothing more is submitted.
    stopped: bool,
    /// What was copied, if it is to be kept.
    executed: Option<Vec<Executed>>,
    counts: PageCounts,
    fallbacks: Vec<Fallback>,
    batch: Vec<Operation>,
    seen: Vec<Completion>,
}

impl PageShare {
    pub(super) fn new(pieces: Vec<Piece>, max_batch: u32) -> PageShare {
        let rest = |piece| Rest {
            piece,
            faults: StalledFaults::default(),
            batched: false,
        };
        PageShare {
            rest: pieces.into_iter().map(rest).collect(),
            max_batch: max_batch.max(1) as usize,
            next: 0,
            again: Vec::new(),
            in_flight: 0,
            stopped: false,
            executed: None,
            counts: PageCounts::default(),
            fallbacks: Vec::new(),
            batch: Vec::new(),
            seen: vec![Completion::default(); 64],
        }
    }

    /// Descriptors that it takes without faults.
    pub fn pieces(&self) -> usize {
        self.rest.len()
    }

    /// Bytes that are to be copied.
    pub fn bytes(&self) -> u64 {
        self.rest.iter().map(|r| u64::from(r.piece.bytes)).sum()
    }

    /// What was done so far.
    pub fn counts(&self) -> PageCounts {
        self.counts
    }

    /// What the device has not copied.
    pub fn fallbacks(&self) -> &[Fallback] {
        &self.fallbacks
    }

    fn operation(&self, index: usize) -> Operation {
        let piece = &self.rest[index].piece;
        Operation::memmove(piece.source, piece.destination, piece.bytes)
            .with_user_data(index as u64)
    }

    /// Looks at what has ended. Whether there was anything.
    fn reap<M: Mover>(&mut self, mover: &mut M) -> bool {
        let count = mover.poll(&mut self.seen);
        for n in 0..count {
            let completion = self.seen[n];
            self.in_flight -= 1;
            self.end(completion, mover);
        }
        count > 0
    }

    fn end<M: Mover>(&mut self, completion: Completion, mover: &mut M) {
        let index = completion.user_data as usize;
        let Some(rest) = self.rest.get_mut(index) else {
            debug_assert!(false, "a completion of another application");
            return;
        };
        let status = completion.status();
        let piece = &mut rest.piece;
        let destination = piece.destination;
        if status == Status::SUCCESS {
            self.counts.descriptors += 1;
            self.counts.in_batches += u64::from(rest.batched);
            let bytes = piece.bytes;
            self.copied(destination, bytes, completion.executor);
            return;
        }
        let faulted = status.code() == Status::PAGE_FAULT.code();
        if faulted {
            // Source and destination do not overlap, so the copy went forward (spec 8.3.4).
            let done = completion.record.bytes_completed.min(piece.bytes);
            piece.source += u64::from(done);
            piece.destination += u64::from(done);
            piece.bytes -= done;
            self.copied(destination, done, completion.executor);
            let fault = completion.record.fault_address;
            let here = completion.executor.is_of_this_process();
            let goes_on = self.rest[index].piece.bytes > 0 && !self.stopped;
            if goes_on && here && self.leave_out(index, fault, status) {
                return;
            }
            let rest = &mut self.rest[index];
            let piece = &mut rest.piece;
            let page = match status.is_write_fault() {
                true => piece.destination,
                false => piece.source,
            };
            let write = status.is_write_fault();
            // Of source and destination.
            let pages = 2 * (piece.bytes / PAGE as u32 + 2);
            if goes_on
                && rest.faults.goes_on(page, done > 0, MOST_FAULTS, pages)
                && (!here || populate(page, 1, write).is_ok())
            {
                rest.batched = false;
                self.counts.page_faults += 1;
                // SAFETY: the core could access the page just now, or the caller of `PageList::plan` has
                // promised that all of the list is mapped.
                unsafe { mover.touch(page, write) };
                self.again.push(index);
                return;
            }
        }
        let piece = self.rest[index].piece;
        self.fallbacks.push(Fallback {
            source: piece.source,
            destination: piece.destination,
            bytes: piece.bytes,
            status,
            fault: None,
        });
    }

    /// Leaves a page of a piece out that the core cannot access at `fault` either; what is before and behind
    /// it goes on. False if that is not so. The memory is this process's.
    fn leave_out(&mut self, index: usize, fault: u64, status: Status) -> bool {
        let write = status.is_write_fault();
        if populate(fault, 1, write).is_ok() {
            return false;
        }
        let piece = self.rest[index].piece;
        let start = match write {
            true => piece.destination,
            false => piece.source,
        };
        let page = fault & !(PAGE - 1);
        let before = page.saturating_sub(start);
        if before >= piece.bytes.into() || page + PAGE <= start {
            return false;
        }
        let behind = (page + PAGE - start).min(piece.bytes.into());
        let part = |from: u64, to: u64| Piece {
            source: piece.source + from,
            destination: piece.destination + from,
            // Within a piece.
            bytes: (to - from) as u32,
        };
        let bad = part(before, behind);
        self.fallbacks.push(Fallback {
            source: bad.source,
            destination: bad.destination,
            bytes: bad.bytes,
            status,
            fault: Some(fault.max(start)),
        });
        self.rest[index].piece = part(behind, piece.bytes.into());
        self.rest[index].batched = false;
        self.rest[index].faults = StalledFaults::default();
        if self.rest[index].piece.bytes > 0 {
            self.again.push(index);
        }
        if before > 0 {
            // As one that was never submitted.
            self.rest.push(Rest {
                piece: part(0, before),
                faults: StalledFaults::default(),
                batched: false,
            });
        }
        true
    }

    /// Submits nothing more. What is in flight ends with the next steps; what was not begun is left over,
    /// with the status 0.
    pub(super) fn stop<M: Mover>(&mut self, mover: &mut M) {
        self.stopped = true;
        let again = std::mem::take(&mut self.again);
        let left = again.into_iter().chain(self.next..self.rest.len());
        for index in left {
            let piece = &self.rest[index].piece;
            self.fallbacks.push(Fallback {
                source: piece.source,
                destination: piece.destination,
                bytes: piece.bytes,
                status: Status::NONE,
                fault: None,
            });
        }
        self.next = self.rest.len();
        mover.withdraw();
    }

    /// Counts bytes that the mover has copied.
    fn copied(&mut self, destination: u64, bytes: u32, executor: Executor) {
        let bytes = u64::from(bytes);
        self.counts.device_bytes += bytes;
        let Some(executed) = self.executed.as_mut().filter(|_| bytes > 0) else {
            return;
        };
        let by = (executor, None);
        match executed.last_mut() {
            Some(last) if last.by == by && last.destination + last.bytes == destination => {
                last.bytes += bytes;
            }
            _ => executed.push(Executed {
                destination,
                bytes,
                by,
            }),
        }
    }

    /// Keeps who has copied what from now on.
    pub(super) fn keep_executed(&mut self) {
        self.executed = Some(Vec::with_capacity(self.rest.len()));
    }

    /// Who has copied what, if it was kept.
    pub(super) fn executed(&self) -> &[Executed] {
        self.executed.as_deref().unwrap_or_default()
    }

    /// Enqueues as much as fits.
    fn refill<M: Mover>(&mut self, mover: &mut M) {
        if mover.slots() == 0 {
            // It never takes anything.
            return self.stop(mover);
        }
        while let Some(index) = self.again.last().copied() {
            // SAFETY: as in `end`; the copies of a list do not overlap.
            if unsafe { mover.enqueue(&self.operation(index)) }.is_err() {
                return;
            }
            self.again.pop();
            self.in_flight += 1;
        }
        while self.next < self.rest.len() {
            // No batch is larger than half the slots, so that two are in flight.
            let most = self.max_batch.min(mover.slots() / 2).max(1);
            let small = |rest: &&Rest| u64::from(rest.piece.bytes) < SPLIT_FROM;
            let run = self.rest[self.next..].iter().take(most);
            // A large piece is worth a descriptor of its own.
            let end = self.next + run.take_while(small).count().max(1);
            self.batch.clear();
            for index in self.next..end {
                let operation = self.operation(index);
                self.batch.push(operation);
            }
            let enqueued = match self.batch.as_slice() {
                // SAFETY: as in `end`.
                [one] => unsafe { mover.enqueue(one) }.is_ok(),
                // SAFETY: as in `end`.
                batch => unsafe { mover.enqueue_batch(batch) }.is_ok(),
            };
            if !enqueued {
                return;
            }
            let batched = self.batch.len() > 1;
            for rest in &mut self.rest[self.next..end] {
                rest.batched = batched;
            }
            self.in_flight += self.batch.len();
            self.next = end;
        }
    }
}

impl Application for PageShare {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        let reaped = self.reap(mover);
        self.refill(mover);
        let progress = mover.submit();
        let waiting = self.next < self.rest.len() || !self.again.is_empty();
        match progress {
            Progress::Done if self.in_flight == 0 && !waiting => Next::Done,
            Progress::Done if !reaped => Next::Wait,
            _ => Next::Again,
        }
    }
}
