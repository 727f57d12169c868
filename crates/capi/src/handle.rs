//! What a handle of C names, and who may use it.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use dray::channels::Channels;
use dray::hw::HwMover;
use dray::virt::VirtualMover;
use dray::{CpuMover, Operation};

use crate::error::{Refusal, call};

/// A mover of one of the kinds that there are.
#[derive(Debug)]
pub(crate) enum Kind {
    Hardware(HwMover),
    Virtual(VirtualMover),
    Cpu(CpuMover),
    HardwareChannels(Channels<HwMover>),
    VirtualChannels(Channels<VirtualMover>),
    CpuChannels(Channels<CpuMover>),
}

/// Executes memory operations for one thread at a time.
///
/// It is never freed, only emptied: a call with a handle that was closed returns an error.
#[derive(Debug)]
pub struct Mover {
    /// A call is in progress.
    busy: AtomicBool,
    /// `None`: closed.
    open: UnsafeCell<Option<Box<Open>>>,
}

/// A mover that is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) kind: Kind,
    /// Operations of a batch that has begun.
    pub(crate) batch: Vec<Operation>,
    pub(crate) in_batch: bool,
    /// The next operation of the batch has a fence.
    pub(crate) fence: bool,
}

/// Calls `$work` with the mover inside.
macro_rules! with {
    ($kind:expr, $mover:ident => $work:expr) => {
        match $kind {
            Kind::Hardware($mover) => $work,
            Kind::Virtual($mover) => $work,
            Kind::Cpu($mover) => $work,
            Kind::HardwareChannels($mover) => $work,
            Kind::VirtualChannels($mover) => $work,
            Kind::CpuChannels($mover) => $work,
        }
    };
}

/// The handle of a mover, for ever.
pub(crate) fn handle(kind: Kind, slots: usize) -> *mut Mover {
    let open = Open {
        kind,
        batch: Vec::with_capacity(slots),
        in_batch: false,
        fence: false,
    };
    Box::into_raw(Box::new(Mover {
        busy: AtomicBool::new(false),
        open: UnsafeCell::new(Some(Box::new(open))),
    }))
}

/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
pub(crate) unsafe fn using(
    mover: *mut Mover,
    work: impl FnOnce(&mut Open) -> Result<c_int, Refusal>,
) -> c_int {
    let work = |open: &mut Option<Box<Open>>| match open {
        Some(open) => work(open),
        None => Err(Refusal::new(libc::EBADF, "the mover is closed")),
    };
    // SAFETY: the caller's promise is the same.
    unsafe { holding(mover, work) }
}

/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
pub(crate) unsafe fn holding(
    mover: *mut Mover,
    work: impl FnOnce(&mut Option<Box<Open>>) -> Result<c_int, Refusal>,
) -> c_int {
    call(|| {
        if mover.is_null() {
            return Err(Refusal::new(libc::EINVAL, "the mover is NULL"));
        }
        // SAFETY: made by `dray_open`, and never freed.
        let mover = unsafe { &*mover };
        if mover.busy.swap(true, Ordering::Acquire) {
            let message = "another thread is using this mover";
            return Err(Refusal::new(libc::EBUSY, message));
        }
        // Also when the work panics.
        let _free = Free(&mover.busy);
        // SAFETY: the flag keeps other calls away.
        let open = unsafe { &mut *mover.open.get() };
        if open.is_none() {
            return Err(Refusal::new(libc::EBADF, "the mover is closed"));
        }
        work(open)
    })
}

/// Whether a structure of the caller's has a size that this version can read: all of what it knows, and
/// nothing but 0 behind that.
///
/// # Safety
/// `size` bytes at `at` must be readable.
pub(crate) unsafe fn check_size(
    name: &str,
    at: *const u8,
    size: usize,
    known: usize,
) -> Result<(), Refusal> {
    let refuse = || {
        Err(Refusal::new(
            libc::EINVAL,
            format_args!("{name} of {size} bytes: this library knows {known}"),
        ))
    };
    if size < known || size > 4096 {
        return refuse();
    }
    // SAFETY: by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(at, size) };
    match bytes[known..].iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => refuse(),
    }
}

/// A structure of the caller's, of the first version or a later one: what it does not have is 0.
///
/// # Safety
/// `size` bytes at `at` must be readable, and a `T` whatever they are, 0 included.
pub(crate) unsafe fn sized<T: Copy>(
    name: &str,
    at: *const T,
    size: usize,
    first: usize,
) -> Result<T, Refusal> {
    let known = match size >= size_of::<T>() {
        true => size_of::<T>(),
        false => first,
    };
    // SAFETY: by the caller's promise.
    unsafe { check_size(name, at.cast(), size, known) }?;
    let mut read = std::mem::MaybeUninit::<T>::zeroed();
    let place = read.as_mut_ptr().cast::<u8>();
    // SAFETY: so many bytes are readable, as was just checked, and `T` has as many.
    unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>(), place, known) };
    // SAFETY: by the caller's promise.
    Ok(unsafe { read.assume_init() })
}

/// Lets the next call in when it is dropped.
struct Free<'a>(&'a AtomicBool);

impl Drop for Free<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

pub(crate) use with;
