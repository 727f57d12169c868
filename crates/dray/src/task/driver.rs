//! Who polls the mover.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use super::handle::Handle;
use super::shared::{Shared, withdrawn};
use super::stack::Fifo;
use super::work::{Progress, Work};
use crate::idle::Idle;
use crate::{Mover, Outcome};

/// Outcomes that one call of the mover gives at most.
const POLLED_AT_ONCE: usize = 32;
/// How long a driver that is dropped waits without a completion by default.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);
/// Looks without a completion before the thread lets others run.
const SPINS: u32 = 64;
/// After so long without a completion the thread sleeps between two looks.
const NAPS_AFTER: Duration = Duration::from_millis(1);
const NAP: Duration = Duration::from_micros(100);

/// An operation that has begun.
#[derive(Debug)]
struct Active {
    handle: *mut Handle,
    work: Work,
    progress: Progress,
}

/// A part of an operation, which has a slot of the mover.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Number of its operation.
    active: u32,
    offset: u64,
}

/// Polls a mover, and ends what was started. As a future it ends when all submitters and clients are gone, or they
/// are closed; dropped before, it takes back what no queue has accepted, waits for what is in flight, and executes
/// nothing of the rest. After ten seconds without a completion ([`with_drop_timeout`](Driver::with_drop_timeout))
/// what a device still holds ends as [lost](super::Look::Lost): nobody waits for ever.
///
/// While operations are in flight the future wakes itself: devices of this interface do not interrupt.
///
/// ```
/// use std::time::Duration;
///
/// use dray::{CpuMover, task};
///
/// let (client, driver) = task::channel::<_, Vec<u8>>(CpuMover::new(8));
/// let driver = driver.with_drop_timeout(Duration::from_secs(1));
/// drop(client);
/// // Without clients it ends at once.
/// driver.run();
/// ```
pub struct Driver<M: Mover> {
    mover: M,
    shared: Arc<Shared>,
    /// By slot; the slot is the user data that the mover is given.
    parts: Vec<Option<Part>>,
    free: Vec<u32>,
    /// What is not begun, the oldest first.
    backlog: Fifo<Handle>,
    /// What has begun and not ended, by numbers.
    active: Vec<Option<Active>>,
    free_active: Vec<u32>,
    /// Numbers of those that wait for a slot.
    waiting: VecDeque<u32>,
    outcomes: Box<[Outcome]>,
    drop_timeout: Duration,
}

// SAFETY: handles are valid on any thread until they have ended, and it has those of its parts alone.
unsafe impl<M: Mover + Send> Send for Driver<M> {}

impl<M: Mover> Driver<M> {
    pub(super) fn new(mover: M, shared: Arc<Shared>) -> Driver<M> {
        let count = mover.slots();
        if count == 0 {
            shared.close();
        }
        Driver {
            mover,
            shared,
            parts: vec![None; count],
            free: (0..count as u32).rev().collect(),
            backlog: Fifo::new(),
            active: Vec::with_capacity(count),
            free_active: Vec::with_capacity(count),
            waiting: VecDeque::new(),
            outcomes: vec![Outcome::default(); POLLED_AT_ONCE].into_boxed_slice(),
            drop_timeout: DROP_TIMEOUT,
        }
    }

    /// The same, but dropping it waits no longer than this without a completion. The mover has a timeout
    /// of its own.
    #[must_use]
    pub fn with_drop_timeout(mut self, drop_timeout: Duration) -> Driver<M> {
        self.drop_timeout = drop_timeout;
        self
    }

    /// Polls on the calling thread until all submitters and clients are gone, or one has closed the driver. It sleeps while
    /// nothing is in flight; while something is, it looks again and again, lets other threads run between two
    /// looks, and after a millisecond without a completion sleeps for 100 us each time.
    pub fn run(mut self) {
        let (mut looks, mut since) = (0, None);
        loop {
            if self.step() {
                (looks, since) = (0, None);
            } else if self.is_busy() {
                looks += 1;
                match looks {
                    ..SPINS => std::hint::spin_loop(),
                    _ if since.get_or_insert_with(Instant::now).elapsed() < NAPS_AFTER => {
                        thread::yield_now();
                    }
                    _ => self.shared.sleep(Some(NAP), || !self.has_news()),
                }
            } else {
                match self.rest() {
                    Rest::Over => return,
                    Rest::Work => {}
                    Rest::Sleep => {
                        let rests = || matches!(self.rest(), Rest::Sleep);
                        self.shared.sleep(None, rests);
                    }
                }
            }
            if self.shared.is_closed() {
                return;
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.parts.len() - self.free.len()
    }

    fn is_busy(&self) -> bool {
        self.in_flight() > 0 || !self.backlog.is_empty() || !self.waiting.is_empty()
    }

    /// Begins what was started, hands it over, and ends what has ended: whether there was any.
    fn step(&mut self) -> bool {
        let started = self.shared.take_started();
        let mut did = !started.is_empty();
        self.backlog.append(started);
        if self.shared.take_cancelled() {
            self.drop_cancelled();
        }
        while let Some(number) = self.waiting.pop_front() {
            if !self.go_on(number) {
                self.waiting.push_front(number);
                break;
            }
            did = true;
        }
        while self.waiting.is_empty()
            && !self.free.is_empty()
            && let Some(handle) = self.backlog.pop()
        {
            self.begin(handle);
            did = true;
        }
        self.mover.submit();
        self.poll() > 0 || did
    }

    /// Ends the cancelled ones of the backlog.
    fn drop_cancelled(&mut self) {
        let mut all = std::mem::replace(&mut self.backlog, Fifo::new());
        let mut kept = Fifo::new();
        while let Some(handle) = all.pop() {
            // SAFETY: what is in the backlog has not ended.
            if unsafe { &*handle }.is_cancelled() {
                // SAFETY: nothing of it was begun.
                unsafe { Handle::end(handle, Some(withdrawn(handle))) };
            } else {
                let mut one = Fifo::new();
                // SAFETY: it has not ended, and was popped.
                unsafe { one.push_front(handle) };
                kept.append(one);
            }
        }
        self.backlog = kept;
    }

    /// Begins an operation that was in the backlog.
    fn begin(&mut self, handle: *mut Handle) {
        // SAFETY: what was in the backlog has not ended.
        let this = unsafe { &*handle };
        if !this.begin() {
            // SAFETY: it was cancelled before.
            unsafe { Handle::end(handle, Some(withdrawn(handle))) };
            return;
        }
        let active = Active {
            handle,
            // SAFETY: it is the driver's.
            work: unsafe { this.work() },
            progress: Progress::new(),
        };
        let number = self.free_active.pop().unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() as u32 - 1
        });
        self.active[number as usize] = Some(active);
        if !self.go_on(number) {
            self.waiting.push_back(number);
        }
    }

    /// Enqueues parts of an operation, one or as many as can be, or ends it: false if it waits for a slot.
    fn go_on(&mut self, number: u32) -> bool {
        let place = &mut self.active[number as usize];
        let Some(Active { work, progress, .. }) = place else {
            debug_assert!(false, "a number is that of an operation");
            return true;
        };
        progress.waits = false;
        while progress.is_left(work) && (progress.in_flight == 0 || work.is_parallel()) {
            let before = *progress;
            // SAFETY: something is left, and its list is valid until it has ended.
            let (part, offset) = unsafe { progress.next(work) };
            let slot = self.free.last().copied().filter(|slot| {
                let part = part.with_user_data((*slot).into());
                // SAFETY: its buffers are the driver's until it has ended, by the promise of who started it.
                unsafe { self.mover.enqueue(&part) }.is_ok()
            });
            let Some(slot) = slot else {
                *progress = before;
                progress.waits = true;
                return false;
            };
            progress.in_flight += 1;
            self.free.pop();
            self.parts[slot as usize] = Some(Part {
                active: number,
                offset,
            });
        }
        if !progress.is_left(work)
            && progress.in_flight == 0
            && let Some(ended) = place.take()
        {
            self.free_active.push(number);
            let outcome = ended.progress.outcome(&ended.work);
            // SAFETY: no part of it is in flight.
            unsafe { Handle::end(ended.handle, Some(outcome)) };
        }
        true
    }

    /// Takes what the mover has completed: how many parts.
    fn poll(&mut self) -> usize {
        let found = self.mover.poll_outcomes(&mut self.outcomes);
        for n in 0..found {
            let outcome = self.outcomes[n];
            let slot = outcome.completion.user_data as usize;
            let Some(part) = self.parts.get_mut(slot).and_then(Option::take) else {
                debug_assert!(false, "a completion without a part");
                continue;
            };
            self.free.push(slot as u32);
            self.ended(part, &outcome);
        }
        debug_assert!(self.invariant());
        found
    }

    fn ended(&mut self, part: Part, outcome: &Outcome) {
        let Some(Active { work, progress, .. }) = &mut self.active[part.active as usize] else {
            debug_assert!(false, "an operation does not end before its parts");
            return;
        };
        progress.ended(work, part.offset, outcome);
        if !progress.waits && !self.go_on(part.active) {
            self.waiting.push_back(part.active);
        }
    }

    fn invariant(&self) -> bool {
        let active = self.active.iter().flatten();
        let of_operations: u32 = active.clone().map(|one| one.progress.in_flight).sum();
        let waits = active.filter(|one| one.progress.waits).count();
        of_operations as usize == self.in_flight()
            && self.parts.iter().flatten().count() == self.in_flight()
            && waits == self.waiting.len()
    }

    /// Whether somebody has started, cancelled or closed since the last step.
    fn has_news(&self) -> bool {
        let shared = &self.shared;
        shared.is_closed() || shared.has_started() || shared.has_cancelled()
    }

    /// Whether there is nothing to do.
    fn rest(&self) -> Rest {
        let submitters = self.shared.submitters.load(Ordering::Acquire);
        match () {
            () if self.shared.is_closed() => Rest::Over,
            () if self.shared.has_started() || self.shared.has_cancelled() => Rest::Work,
            () if submitters == 0 => Rest::Over,
            () => Rest::Sleep,
        }
    }
}

enum Rest {
    Sleep,
    Work,
    Over,
}

// It holds no pointer into itself.
impl<M: Mover> Unpin for Driver<M> {}

impl<M: Mover> Future for Driver<M> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.shared.is_closed() {
            return Poll::Ready(());
        }
        self.step();
        if self.is_busy() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // What came before the waker was there is found below.
        self.shared.register(context.waker());
        match self.rest() {
            Rest::Over => return Poll::Ready(()),
            Rest::Work => context.waker().wake_by_ref(),
            Rest::Sleep => {}
        }
        Poll::Pending
    }
}

impl<M: Mover> Drop for Driver<M> {
    fn drop(&mut self) {
        if self.shared.home.is_inherited() {
            // Its handles are the parent's.
            return;
        }
        self.shared.close();
        self.shared.withdraw_all();
        while let Some(handle) = self.backlog.pop() {
            // SAFETY: nothing of it was begun.
            unsafe { Handle::end(handle, Some(withdrawn(handle))) };
        }
        self.waiting.clear();
        for number in 0..self.active.len() {
            if let Some(Active { work, progress, .. }) = &mut self.active[number] {
                progress.waits = false;
                if progress.is_left(work) {
                    progress.withdraw();
                }
                self.go_on(number as u32);
            }
        }
        self.mover.withdraw();
        let mut idle = Idle::new(self.drop_timeout);
        while self.in_flight() > 0 {
            if self.poll() > 0 {
                idle = Idle::new(self.drop_timeout);
            } else if !idle.rest() {
                break;
            }
            self.mover.submit();
        }
        // Their buffers stay with the device, which their owners are told.
        for lost in self.active.drain(..).flatten() {
            // SAFETY: it has not ended.
            unsafe { Handle::end(lost.handle, None) };
        }
    }
}

impl<M: Mover> fmt::Debug for Driver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver ({} in flight)", self.in_flight())
    }
}
