//! What a handle of C names, and who may use it.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use dray::channels::{Channels, Outcome, QueueLost};
use dray::hw::HwMover;
use dray::virt::VirtualMover;
use dray::{CpuMover, Home, Mover as _, Operation};
use dray_spec::Flags;

use crate::error::{Refusal, call};
use crate::shared::Shared;
use crate::types::CoreReason;

/// A mover of one of the kinds that there are.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Of one work queue: channels supply pages that are not present.
    Hardware(Channels<HwMover>),
    Virtual(VirtualMover),
    Cpu(CpuMover),
    HardwareChannels(Channels<HwMover>),
    VirtualChannels(Channels<VirtualMover>),
    CpuChannels(Channels<CpuMover>),
}

impl Kind {
    /// Whether it is from `dray_open_channels`.
    pub(crate) fn is_channels(&self) -> bool {
        match self {
            Kind::Hardware(_) | Kind::Virtual(_) | Kind::Cpu(_) => false,
            Kind::HardwareChannels(_) | Kind::VirtualChannels(_) | Kind::CpuChannels(_) => true,
        }
    }

    /// Queues that get nothing more, by their numbers, and why.
    pub(crate) fn excluded(&self) -> Vec<(usize, QueueLost)> {
        fn of_channels<M: dray::Mover>(channels: &Channels<M>) -> Vec<(usize, QueueLost)> {
            let excluded = channels.excluded();
            excluded.map(|one| (one.channel, one.reason)).collect()
        }
        let of_one = |lost: Option<QueueLost>| lost.map(|reason| (0, reason)).into_iter().collect();
        match self {
            Kind::Hardware(mover) => of_one(mover.lost()),
            Kind::Virtual(mover) => of_one(mover.lost()),
            Kind::Cpu(mover) => of_one(mover.lost()),
            Kind::HardwareChannels(channels) => of_channels(channels),
            Kind::VirtualChannels(channels) => of_channels(channels),
            Kind::CpuChannels(channels) => of_channels(channels),
        }
    }
}

/// Executes memory operations for one thread at a time.
///
/// It is never freed, only emptied: a call with a handle that was closed returns an error.
#[derive(Debug)]
pub struct Mover {
    /// A call is in progress.
    busy: AtomicBool,
    /// A call has panicked: nothing is known of what is inside.
    broken: AtomicBool,
    /// `None`: closed.
    open: UnsafeCell<Option<Box<Open>>>,
    /// From [`dray_share`](crate::dray_share) on: then `open` is empty.
    pub(crate) shared: OnceLock<Shared>,
    /// The process that has opened it.
    home: Home,
    /// The handle that was made before.
    next: *mut Mover,
}

/// The handle that was made last. From it all are reached, so that no leak checker takes a closed one for
/// lost memory.
static LAST: AtomicPtr<Mover> = AtomicPtr::new(null_mut());

/// Completions that are taken from a mover at a time.
const POLLED_AT_ONCE: usize = 64;

/// A mover that is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) kind: Kind,
    /// Operations of a batch that has begun.
    pub(crate) batch: Vec<Operation>,
    pub(crate) in_batch: bool,
    /// Flags of the operation that is enqueued next.
    pub(crate) next_flags: Flags,
    /// Where completions are taken to.
    pub(crate) outcomes: Box<[Outcome]>,
    /// What happened when it was opened.
    pub(crate) opened: Opened,
}

// A program opens a mover on one thread, and uses and closes it on others, one at a time.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Open>();
};

/// What happened when a mover was opened.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// Lines of text.
    pub(crate) note: String,
    /// Names of the work queues that are open.
    pub(crate) queues: Vec<String>,
    /// Why the core executes what a mover of one queue is given.
    pub(crate) core_reason: CoreReason,
}

/// Calls `$work` with the mover inside.
macro_rules! with {
    ($kind:expr, $mover:ident => $work:expr) => {
        match $kind {
            $crate::handle::Kind::Hardware($mover) => $work,
            $crate::handle::Kind::Virtual($mover) => $work,
            $crate::handle::Kind::Cpu($mover) => $work,
            $crate::handle::Kind::HardwareChannels($mover) => $work,
            $crate::handle::Kind::VirtualChannels($mover) => $work,
            $crate::handle::Kind::CpuChannels($mover) => $work,
        }
    };
}

/// The handle of a mover, for ever.
pub(crate) fn handle(kind: Kind, slots: usize, opened: Opened) -> *mut Mover {
    let open = Open {
        kind,
        batch: Vec::with_capacity(slots),
        in_batch: false,
        next_flags: Flags::EMPTY,
        outcomes: vec![Outcome::default(); POLLED_AT_ONCE].into_boxed_slice(),
        opened,
    };
    let mover = Box::into_raw(Box::new(Mover {
        busy: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        open: UnsafeCell::new(Some(Box::new(open))),
        shared: OnceLock::new(),
        home: Home::here(),
        next: null_mut(),
    }));
    let link = |last| {
        // SAFETY: made above, and no one else has it yet.
        unsafe { (*mover).next = last };
        Some(mover)
    };
    // The closure always gives a handle.
    let _ = LAST.fetch_update(Ordering::AcqRel, Ordering::Acquire, link);
    mover
}

/// Does some work with a mover that is open, if no other call is in one.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
pub(crate) unsafe fn using(
    mover: *mut Mover,
    work: impl FnOnce(&mut Open) -> Result<c_int, Refusal>,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        let mut turn = unsafe { Turn::of(mover) }?;
        if turn.mover.broken.load(Ordering::Relaxed) {
            let message = "libdray has panicked in an earlier call on this mover: close it";
            return Err(Refusal::new(libc::ENOTRECOVERABLE, message));
        }
        turn.work(|open| match open {
            Some(open) => work(open),
            None => Err(closed()),
        })
    })
}

/// Closes a mover. One in whose call libdray has panicked is left as it is, for its operations may be in
/// flight; so is that of a parent process.
///
/// # Safety
/// `mover` must be from [`dray_open`](crate::dray_open).
pub(crate) unsafe fn close(mover: *mut Mover) -> c_int {
    call(|| {
        // SAFETY: made by `dray_open`, and never freed.
        if unsafe { (*mover).home }.is_inherited() {
            return Ok(0);
        }
        // SAFETY: the caller's promise is the same.
        if let Some(shared) = unsafe { &*mover }.shared.get() {
            return shared.close();
        }
        // SAFETY: as above.
        let mut turn = unsafe { Turn::of(mover) }?;
        let broken = turn.mover.broken.load(Ordering::Relaxed);
        turn.work(|open| {
            let open = open.take().ok_or_else(closed)?;
            match broken {
                true => std::mem::forget(open),
                false => drop(open),
            }
            Ok(0)
        })
    })
}

pub(crate) fn closed() -> Refusal {
    Refusal::new(libc::EBADF, "the mover is closed")
}

/// A mover that a handle of C names.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[inline]
pub(crate) unsafe fn of_process<'a>(mover: *mut Mover) -> Result<&'a Mover, Refusal> {
    if mover.is_null() {
        return Err(Refusal::new(libc::EINVAL, "the mover is NULL"));
    }
    // SAFETY: made by `dray_open`, and never freed.
    let mover = unsafe { &*mover };
    // A thread that is not in this process may have been in a call.
    if mover.home.is_inherited() {
        return Err(inherited());
    }
    Ok(mover)
}

/// Why threads cannot start operations on a mover that is not shared.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
pub(crate) unsafe fn not_shared(mover: *mut Mover) -> Refusal {
    // SAFETY: the caller's promise is the same.
    let turn = unsafe { Turn::of(mover) };
    match turn.is_ok_and(|mut turn| turn.work(|open| open.is_none())) {
        true => closed(),
        false => {
            let message = "threads do not share the mover: call dray_share after it was opened";
            Refusal::new(libc::ENOTSUP, message)
        }
    }
}

#[cold]
pub(crate) fn inherited() -> Refusal {
    let message = "the mover is of the process that has forked this one: open another";
    Refusal::new(libc::EBADF, message)
}

/// Takes what is inside a mover that nothing is enqueued on, and shares it.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
pub(crate) unsafe fn share(
    mover: *mut Mover,
    start: impl FnOnce(Open) -> Result<Shared, Refusal>,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        let mut turn = unsafe { Turn::of(mover) }?;
        let shared = turn.work(|place| {
            let open = place.as_ref().ok_or_else(closed)?;
            if open.in_batch || with!(&open.kind, m => m.in_flight()) > 0 {
                let message =
                    "operations are in flight, or a batch has begun: they belong to one thread";
                return Err(Refusal::new(libc::EBUSY, message));
            }
            place
                .take()
                .map_or_else(|| Err(closed()), |open| start(*open))
        })?;
        // It is this call's turn, which nobody else has from now on.
        let _ = turn.mover.shared.set(shared);
        std::mem::forget(turn);
        Ok(0)
    })
}

impl Mover {
    /// Why it is no other call's turn.
    #[cold]
    fn taken(&self) -> Refusal {
        match self.shared.get() {
            Some(shared) if shared.is_closed() => closed(),
            Some(_) => {
                let message = "threads share this mover: dray_start starts operations on it";
                Refusal::new(libc::EBUSY, message)
            }
            None => Refusal::new(libc::EBUSY, "another thread is using this mover"),
        }
    }
}

/// A call's turn on a mover. The next call has its turn when it is dropped.
struct Turn<'a> {
    mover: &'a Mover,
    /// The work has been left by a panic.
    left: bool,
}

impl<'a> Turn<'a> {
    /// # Safety
    /// `mover` must be NULL or from [`dray_open`](crate::dray_open).
    unsafe fn of(mover: *mut Mover) -> Result<Turn<'a>, Refusal> {
        // SAFETY: the caller's promise is the same.
        let mover = unsafe { of_process(mover) }?;
        if mover.busy.swap(true, Ordering::Acquire) {
            return Err(mover.taken());
        }
        Ok(Turn { mover, left: false })
    }

    fn work<T>(&mut self, work: impl FnOnce(&mut Option<Box<Open>>) -> T) -> T {
        // SAFETY: it is this call's turn, and no other's.
        let open = unsafe { &mut *self.mover.open.get() };
        self.left = true;
        let done = work(open);
        self.left = false;
        done
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.left {
            self.mover.broken.store(true, Ordering::Relaxed);
        }
        self.mover.busy.store(false, Ordering::Release);
    }
}

pub(crate) use with;

#[cfg(test)]
mod tests {
    use super::*;

    fn mover() -> *mut Mover {
        handle(Kind::Cpu(CpuMover::new(4)), 4, Opened::default())
    }

    #[test]
    fn a_panic_returns_enotrecoverable_and_disables_the_mover() {
        let mover = mover();
        // SAFETY: made above.
        let code = unsafe { using(mover, |_| panic!("as a test")) };
        assert_eq!(code, -libc::ENOTRECOVERABLE);
        // The next call has its turn, and does nothing.
        // SAFETY: made above.
        let code = unsafe { using(mover, |_| unreachable!("the mover is broken")) };
        assert_eq!(code, -libc::ENOTRECOVERABLE);
        // SAFETY: made above.
        assert_eq!(unsafe { close(mover) }, 0);
        // SAFETY: handles are never freed.
        assert_eq!(unsafe { close(mover) }, -libc::EBADF);
    }

    #[test]
    fn a_call_within_a_call_returns_ebusy() {
        let mover = mover();
        let within = |_: &mut Open| {
            // SAFETY: made above.
            Ok(unsafe { using(mover, |_| Ok(0)) })
        };
        // SAFETY: made above.
        assert_eq!(unsafe { using(mover, within) }, -libc::EBUSY);
        // SAFETY: made above.
        assert_eq!(unsafe { using(mover, |_| Ok(7)) }, 7);
        // SAFETY: made above.
        assert_eq!(unsafe { close(mover) }, 0);
        // SAFETY: handles are never freed.
        assert_eq!(unsafe { using(mover, |_| Ok(7)) }, -libc::EBADF);
    }
}
