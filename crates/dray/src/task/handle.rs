//! One operation, in the storage of who asked for it.

use std::cell::UnsafeCell;
use std::fmt;
use std::hint;
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::shared::Shared;
use super::stack::Linked;
use super::work::Work;
use crate::Outcome;

/// Nothing was started.
const IDLE: u32 = 0;
/// A thread is starting it.
const STARTING: u32 = 1;
/// The driver has it, and has not begun.
const QUEUED: u32 = 2;
/// It was cancelled before the driver has begun.
const CANCELLED: u32 = 3;
/// The mover has it.
const RUNNING: u32 = 4;
/// It has ended, and is in the list of those that have.
const LISTED: u32 = 5;
/// It has ended.
const ENDED: u32 = 6;
/// The driver has ended before it: a device may still have its buffers.
const LOST: u32 = 7;
const STATE: u32 = 0xff;
/// Threads sleep until it ends.
const SLEEPERS: u32 = 0x100;

/// Looks at a handle before a thread sleeps.
const SPINS: u32 = 200;

/// Words of a handle, for what is to be done and then for what became of it.
const WORDS: usize = 24;

/// A value in words, whatever its alignment, so that a handle needs that of a word alone.
struct Words(UnsafeCell<[MaybeUninit<u64>; WORDS]>);

impl Words {
    /// # Safety
    /// A `T` was written, and nobody writes meanwhile.
    unsafe fn read<T: Copy>(&self) -> T {
        const { assert!(size_of::<T>() <= WORDS * 8) };
        // SAFETY: large enough, and by the caller's promise.
        unsafe { self.0.get().cast::<T>().read_unaligned() }
    }

    /// # Safety
    /// Nobody else accesses it meanwhile.
    unsafe fn write<T: Copy>(&self, value: T) {
        const { assert!(size_of::<T>() <= WORDS * 8) };
        // SAFETY: large enough, and by the caller's promise.
        unsafe { self.0.get().cast::<T>().write_unaligned(value) };
    }
}

/// What is called when an operation has ended, with whether its buffers are the caller's again. The handle may be gone
/// by then, unless the function itself keeps it.
pub(super) type After = unsafe fn(*mut Handle, is_ended: bool);

/// One operation, from [`Submitter::start`](super::Submitter::start) until its end, and what became of it. It
/// lies in its owner's storage; bytes that are all 0 are a handle that nothing was started with.
///
/// While its operation is under way, it is the driver's: it stays where it is, and is not freed. Any thread may
/// [look](Handle::look) at it and [wait](Handle::wait), several at once. Nobody does while it is started again.
///
/// ```
/// use dray::task::{Handle, Look, Submitter};
/// use dray::{CpuMover, Operation, task};
///
/// let (submitter, driver) = task::share(CpuMover::new(8));
/// let driver = std::thread::spawn(move || driver.run());
/// let mut bytes = [0_u8; 64];
/// let fill = Operation::fill(u64::MAX, bytes.as_mut_ptr().expose_provenance() as u64, 64);
/// let handle = Handle::new();
/// // SAFETY: handle and bytes stay until the wait is over.
/// unsafe { submitter.start(&handle, fill.into(), false) }?;
/// assert!(matches!(handle.wait(None), Look::Ended(_)));
/// assert_eq!(bytes, [255; 64]);
/// drop(submitter);
/// driver.join().unwrap();
/// # Ok::<(), dray::task::StartError>(())
/// ```
#[repr(C)]
pub struct Handle {
    state: AtomicU32,
    /// It goes to the list when it has ended.
    listed: UnsafeCell<bool>,
    /// Of its work.
    tag: UnsafeCell<u16>,
    next: AtomicPtr<Handle>,
    shared: AtomicPtr<Shared>,
    after: UnsafeCell<Option<After>>,
    /// Its [`Work`] until it has ended, and then its [`Outcome`].
    words: Words,
}

// SAFETY: what is not atomic is accessed by the side that the state names.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Linked for Handle {
    fn next(&self) -> &AtomicPtr<Handle> {
        &self.next
    }
}

/// What became of an operation so far.
///
/// ```
/// use dray::task::{Handle, Look};
///
/// assert_eq!(Handle::new().look(), Look::Idle);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Look {
    /// Nothing was started.
    Idle,
    /// It has not ended.
    Pending,
    /// It has ended. What was cancelled, or not begun when the driver ended, is [withdrawn](Outcome::withdrawn).
    Ended(Outcome),
    /// The driver has ended before it: its buffers stay with the device, for ever.
    Lost,
    /// It is of the process that has forked this one.
    Inherited,
}

/// Why an operation was not started.
///
/// ```
/// use dray::task::{self, Handle, StartError};
/// use dray::{CpuMover, Operation};
///
/// let (submitter, driver) = task::share(CpuMover::new(1));
/// drop(driver);
/// let handle = Handle::new();
/// // SAFETY: a NOOP has no operands, and it is refused.
/// let refused = unsafe { submitter.start(&handle, Operation::noop().into(), false) };
/// assert_eq!(refused, Err(StartError::Closed));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StartError {
    /// The operation of the handle has not ended, or waits in the list of those that have.
    #[error(
        "the handle's operation has not ended, or was not taken from the list of those that have"
    )]
    Busy,
    /// The driver has ended.
    #[error("the driver of the mover has ended")]
    Closed,
    /// The driver is in the process that has forked this one.
    #[error("the driver of the mover is in the process that has forked this one")]
    Inherited,
}

impl Default for Handle {
    fn default() -> Handle {
        Handle::new()
    }
}

impl Handle {
    /// A handle that nothing was started with.
    pub const fn new() -> Handle {
        Handle {
            state: AtomicU32::new(IDLE),
            listed: UnsafeCell::new(false),
            tag: UnsafeCell::new(0),
            next: AtomicPtr::new(std::ptr::null_mut()),
            shared: AtomicPtr::new(std::ptr::null_mut()),
            after: UnsafeCell::new(None),
            words: Words(UnsafeCell::new([MaybeUninit::uninit(); WORDS])),
        }
    }

    /// What became of its operation so far.
    pub fn look(&self) -> Look {
        match self.state.load(Ordering::Acquire) & STATE {
            IDLE => Look::Idle,
            // SAFETY: written before the state, and not again before the next start.
            ENDED | LISTED => Look::Ended(unsafe { self.words.read() }),
            LOST => Look::Lost,
            _ if self.is_inherited() => Look::Inherited,
            _ => Look::Pending,
        }
    }

    /// The number that its work had, once a [look](Handle::look) has said that it has ended.
    pub fn tag(&self) -> u16 {
        // SAFETY: written before the state, and not again before the next start.
        unsafe { self.tag.get().read() }
    }

    /// Whether it is its owner's: nothing was started with it, or it has ended and is not in the list.
    pub fn is_free(&self) -> bool {
        matches!(
            self.state.load(Ordering::Acquire) & STATE,
            IDLE | ENDED | LOST
        )
    }

    /// Whether it is of the process that has forked this one.
    fn is_inherited(&self) -> bool {
        let shared = self.shared.load(Ordering::Acquire);
        // SAFETY: by the promise of who has started it a submitter keeps it during this call.
        !shared.is_null() && unsafe { &*shared }.home.is_inherited()
    }

    /// Waits until the operation has ended, for so long at most: a short time in a loop, then the thread sleeps. It
    /// takes no lock and allocates nothing: a signal handler may wait, too.
    pub fn wait(&self, timeout: Option<Duration>) -> Look {
        for _ in 0..SPINS {
            match self.look() {
                Look::Pending => hint::spin_loop(),
                other => return other,
            }
        }
        // A time that has no end is for ever.
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let state = self.state.load(Ordering::Acquire);
            let looked = self.look();
            if looked != Look::Pending {
                return looked;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Look::Pending;
            }
            let asleep = state | SLEEPERS;
            let told =
                self.state
                    .compare_exchange(state, asleep, Ordering::AcqRel, Ordering::Acquire);
            if told.is_ok() {
                sleep(&self.state, asleep, left);
            }
        }
    }

    /// Takes back an operation that the driver has not begun: true, and it ends soon as
    /// [withdrawn](Outcome::withdrawn). False: it has ended, or a device may be executing it, and it ends by itself.
    /// Until it has ended, buffers and handle are the driver's in both cases.
    pub fn cancel(&self) -> bool {
        if self.look() != Look::Pending {
            return false;
        }
        // Before the change: after it the operation may end, and the handle may be gone.
        let shared = self.shared.load(Ordering::Acquire);
        if !self.change(QUEUED, CANCELLED) {
            return false;
        }
        // SAFETY: by the promise of who has started it a submitter keeps it during this call.
        let shared = unsafe { &*shared };
        shared.was_cancelled();
        true
    }

    /// From one state to another, if it is in that one. Who sleeps goes on sleeping.
    fn change(&self, from: u32, to: u32) -> bool {
        let next = |state| (state & STATE == from).then_some(state & !STATE | to);
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .is_ok()
    }

    /// The caller alone has it then.
    pub(super) fn claim(
        &self,
        shared: *const Shared,
        work: Work,
        listed: bool,
        after: Option<After>,
    ) -> Result<(), StartError> {
        let free = [ENDED, IDLE, LOST];
        if !free.into_iter().any(|state| self.change(state, STARTING)) {
            return Err(StartError::Busy);
        }
        self.shared.store(shared.cast_mut(), Ordering::Release);
        // SAFETY: the state says that it is this call's.
        unsafe { self.listed.get().write(listed) };
        // SAFETY: as above.
        unsafe { self.after.get().write(after) };
        // SAFETY: as above.
        unsafe { self.tag.get().write(work.tag()) };
        // SAFETY: as above.
        unsafe { self.words.write(work) };
        // Who has begun to sleep meanwhile is woken by the end.
        let queued = self.change(STARTING, QUEUED);
        debug_assert!(queued, "nobody else changes what is being started");
        Ok(())
    }

    /// The driver begins with it: false if it was cancelled.
    pub(super) fn begin(&self) -> bool {
        self.change(QUEUED, RUNNING)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) & STATE == CANCELLED
    }

    /// # Safety
    /// The driver has it, from its start on.
    pub(super) unsafe fn work(&self) -> Work {
        // SAFETY: written when it was claimed.
        unsafe { self.words.read() }
    }

    /// Ends it with an outcome, or without one: lost. It is its owner's afterwards, unless it is in the list.
    ///
    /// # Safety
    /// The driver has it, and no part of it is in flight, unless it is lost.
    pub(super) unsafe fn end(this: *mut Handle, outcome: Option<Outcome>) {
        // SAFETY: it is valid until its state says that it has ended.
        let handle = unsafe { &*this };
        let shared = handle.shared.load(Ordering::Acquire);
        // SAFETY: the driver's until the state says otherwise.
        let listed = unsafe { handle.listed.get().read() };
        // SAFETY: as above.
        let after = unsafe { handle.after.get().read() };
        let word = std::ptr::from_ref(&handle.state);
        let state = match outcome {
            Some(outcome) => {
                // SAFETY: as above.
                unsafe { handle.words.write(outcome) };
                if listed { LISTED } else { ENDED }
            }
            None => LOST,
        };
        let before = handle.state.swap(state, Ordering::AcqRel);
        debug_assert!(matches!(before & STATE, QUEUED | CANCELLED | RUNNING));
        if before & SLEEPERS != 0 {
            wake(word);
        }
        if state == LISTED {
            // SAFETY: who has started it keeps a submitter until it was taken from the list.
            let shared = unsafe { &*shared };
            // SAFETY: the same holds for the handle.
            unsafe { shared.list(this) };
        }
        if let Some(after) = after {
            // SAFETY: it was given with the handle.
            unsafe { after(this, outcome.is_some()) };
        }
    }

    /// It was taken from the list of those that have ended.
    pub(super) fn unlist(&self) {
        let changed = self.change(LISTED, ENDED);
        debug_assert!(changed, "what is in the list has ended");
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle ({:?})", self.look())
    }
}

/// Sleeps until the word is another one or somebody wakes, for so long at most.
pub(super) fn sleep(word: &AtomicU32, expected: u32, most: Option<Duration>) {
    let time = most.map(|most| libc::timespec {
        tv_sec: most.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: most.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: an aligned word, and a time or none. Whatever ends it, the caller looks again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, time) };
}

/// Wakes all that sleep. The word may be another's by then: who sleeps there looks again.
pub(super) fn wake(word: *const AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel uses the address alone.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, i32::MAX) };
}
