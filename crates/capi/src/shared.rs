//! Movers that threads share, and operations with handles.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dray::task::{self, Handle, Look, StartError, Submitter};
use dray_spec::Opcode;

use crate::channel_types::Outcome;
use crate::completion::{FromOutcome, count};
use crate::error::{Refusal, call};
use crate::handle::{Kind, Mover, Open, closed, inherited, not_shared, of_process, share};
use crate::mover::place;
use crate::request::{Request, read};
use crate::types::{Completion, CoreReason, Flag, Tags};

/// What a mover is once threads share it.
#[derive(Debug)]
pub(crate) struct Shared {
    submitter: Submitter,
    /// Polls the mover; `None`: somebody closes it, or has.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The thread has ended.
    closed: AtomicBool,
    /// Why the core executes all that a mover of one queue is given.
    core_reason: CoreReason,
    /// Its queue does not block on page faults, and a device executes.
    refuses_block_on_fault: bool,
}

/// An operation of one mover that threads share, in the caller's storage, aligned as a uint64_t. Bytes that are all 0
/// are a handle that nothing was started with; there is no limit to how many there are.
///
/// From dray_start on, until dray_op_poll, dray_op_wait or dray_ended has given its end, handle and buffers are the
/// mover's: they stay where they are, and are not freed. To free a handle whose operation may be under way, call
/// dray_op_release first; without that the mover writes to memory that is not its own any more. Any number of threads
/// poll one handle, and wait for it, at the same time: each gets its end, which stays until it is started again, which
/// nobody does meanwhile. A structure of yours that begins with a handle is found by it.
#[repr(C)]
#[derive(Debug)]
pub struct Op {
    /// The library's.
    pub opaque: [u64; 32],
}

/// What lies in an `Op`.
#[repr(C)]
struct Inside {
    /// Its tag is why the core executes all, by number, and the opcode of its operation.
    handle: Handle,
}

const _: () = assert!(size_of::<Inside>() <= size_of::<Op>());
const _: () = assert!(align_of::<Inside>() <= align_of::<Op>());

impl Shared {
    fn new(open: Open) -> Result<Shared, Refusal> {
        let core_reason = open.opened.core_reason;
        let on_core = matches!(open.kind, Kind::Cpu(_) | Kind::CpuChannels(_));
        let (submitter, thread) = match open.kind {
            Kind::Hardware(mover) | Kind::HardwareChannels(mover) => driven(mover),
            Kind::Virtual(mover) => driven(mover),
            Kind::Cpu(mover) => driven(mover),
            Kind::VirtualChannels(mover) => driven(mover),
            Kind::CpuChannels(mover) => driven(mover),
        };
        let thread = thread.map_err(|error| Refusal::of(libc::EIO, &error))?;
        let refuses_block_on_fault = !on_core && !submitter.capabilities().block_on_fault;
        Ok(Shared {
            submitter,
            thread: Mutex::new(Some(thread)),
            closed: AtomicBool::new(false),
            core_reason,
            refuses_block_on_fault,
        })
    }

    pub(crate) fn close(&self) -> Result<c_int, Refusal> {
        let thread = {
            let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            thread.take().ok_or_else(closed)?
        };
        self.submitter.close();
        // One that has panicked has ended its operations, too.
        let _ = thread.join();
        self.closed.store(true, Ordering::Release);
        self.submitter.close_event();
        Ok(0)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// A mover, polled by a thread that takes no signals.
fn driven<M: dray::Mover + Send + 'static>(
    mover: M,
) -> (Submitter, std::io::Result<JoinHandle<()>>) {
    let (submitter, driver) = task::share(mover);
    let mut all = std::mem::MaybeUninit::uninit();
    let mut before = std::mem::MaybeUninit::uninit();
    // SAFETY: a place for a set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: a set, and a place for one.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) };
    let thread = thread::Builder::new().name("dray".to_owned());
    let thread = thread.spawn(move || driver.run());
    // SAFETY: the set that was written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    (submitter, thread)
}

/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
unsafe fn shared<'a>(mover: *mut Mover) -> Result<&'a Shared, Refusal> {
    // SAFETY: the caller's promise is the same.
    let found = unsafe { of_process(mover) }?.shared.get();
    // SAFETY: as above.
    found.ok_or_else(|| unsafe { not_shared(mover) })
}

/// # Safety
/// `op` must be NULL or a handle.
unsafe fn inside<'a>(op: *const Op) -> Result<&'a Inside, Refusal> {
    if op.is_null() || !op.is_aligned() {
        let message = "the handle is NULL or not aligned";
        return Err(Refusal::new(libc::EINVAL, message));
    }
    // SAFETY: a handle by the caller's promise: zeros, which are one that nothing was started with, or what this
    // library has made of them.
    Ok(unsafe { &*op.cast::<Inside>() })
}

/// From now on any number of threads start operations on a mover at the same time, by dray_start: 0. A thread of the
/// library polls the mover; where a device does not interrupt, and none does for programs, that thread looks again and
/// again while operations are in flight (PAUSE, then sched_yield, and after a millisecond without a completion a sleep
/// of 100 us each time), and sleeps while there are none. On a mover of the core that thread executes. It takes no
/// signals.
///
/// All other calls on the mover but dray_start, dray_event_fd, dray_ended and dray_close are -EBUSY from then on. In
/// a child of fork there is no such thread: calls on the mover, and on handles that were under way, are -EBADF there at
/// once; the end of a handle that had ended can be read.
///
/// # Errors
/// -EBUSY: something is in flight, or a batch has begun, or it is shared already. -EIO: there can be no thread; the
/// mover is closed.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open) or
/// [`dray_open_channels`](crate::dray_open_channels).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_share(mover: *mut Mover) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { share(mover, Shared::new) }
}

/// Starts an operation on a mover that threads share: 0. There is no limit to how many are under way: the mover
/// begins them in order, as it has slots. It takes no lock and allocates nothing; a signal handler may call it.
///
/// # Errors
/// -EINVAL: a null pointer, a field that is not valid, sizes or alignment that the operation does not have. -EALREADY:
/// the handle's operation has not ended, or dray_ended has not given it yet. -ENOTSUP: the mover is not shared, or does not
/// have the operation.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open) or
/// [`dray_open_channels`](crate::dray_open_channels); `op` a handle; `request` must point to `request->size` readable
/// bytes. Handle, buffers and lists stay until the operation has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_start(
    mover: *mut Mover,
    op: *mut Op,
    request: *const Request,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        let shared = unsafe { shared(mover) }?;
        // SAFETY: as above.
        let inside = unsafe { inside(op) }?;
        // SAFETY: as above.
        let (work, listed) = unsafe { read(request) }?;
        let operation = work.operation();
        let capabilities = shared.submitter.capabilities();
        if !capabilities.supports(operation) {
            let (opcode, len) = (operation.opcode(), operation.len());
            let message = format_args!("{} of {len} bytes is not supported", opcode.name());
            return Err(Refusal::new(libc::ENOTSUP, message));
        }
        let blocks = operation.descriptor().flags().bits() & Flag::BlockOnFault as u32 != 0;
        if blocks && shared.refuses_block_on_fault {
            let message = "the work queue does not block on page faults (block_on_fault in sysfs)";
            return Err(Refusal::new(libc::ENOTSUP, message));
        }
        let opcode = operation.descriptor().opcode_byte();
        let tag = u16::from_le_bytes([shared.core_reason as u8, opcode]);
        let work = work.with_tag(tag);
        // SAFETY: the caller's promise is the same; a mover's submitter is never dropped.
        let started = unsafe {
            shared
                .submitter
                .start(&raw const inside.handle, work, listed)
        };
        started.map(|()| 0).map_err(refused)
    })
}

fn refused(error: StartError) -> Refusal {
    match error {
        StartError::Busy => Refusal::of(libc::EALREADY, &error),
        StartError::Closed => closed(),
        StartError::Inherited => inherited(),
    }
}

/// What a look at a handle means: 1 if it has ended, with its outcome in `into`, if that is not NULL; 0: it has not.
///
/// # Safety
/// `into` must be NULL or a place for an outcome.
unsafe fn seen(inside: &Inside, look: Look, into: *mut Outcome) -> Result<c_int, Refusal> {
    match look {
        Look::Idle => Err(Refusal::new(
            libc::ENOENT,
            "nothing was started with the handle",
        )),
        Look::Pending => Ok(0),
        Look::Ended(outcome) => {
            if !into.is_null() {
                let [reason, opcode] = inside.handle.tag().to_le_bytes();
                let reason = CoreReason::of(reason);
                let mut outcome = Outcome::of(&outcome, reason);
                clear(&mut outcome.completion, opcode);
                // SAFETY: a place of the caller's.
                unsafe { into.write_unaligned(outcome) };
            }
            Ok(1)
        }
        Look::Lost => {
            let message = "the mover was closed before the operation had ended: a device may still access its buffers";
            Err(Refusal::new(libc::EIO, message))
        }
        Look::Inherited => Err(inherited()),
    }
}

/// Sets to 0 what an operation does not give: the record has its results in the same bytes.
fn clear(completion: &mut Completion, opcode: u8) {
    use Opcode::{
        CopyCrc, CrcGenerate, CreateDelta, DifCheck, DifInsert, DifStrip, DifUpdate, DixGenerate,
    };
    let is = |any: &[Opcode]| any.iter().any(|one| *one as u8 == opcode);
    if !is(&[CrcGenerate, CopyCrc]) {
        completion.crc = 0;
    }
    if !is(&[CreateDelta]) {
        completion.delta_bytes = 0;
    }
    if !is(&[DifCheck, DifStrip, DifUpdate]) {
        completion.source = Tags::default();
    }
    if !is(&[DifInsert, DifUpdate, DixGenerate]) {
        completion.destination = Tags::default();
    }
}

/// 1 if the operation of a handle has ended, with how in `into`, which may be NULL; 0 if it has not. Any thread may
/// call it, and a signal handler. Fields that the operation does not give are 0.
///
/// # Errors
/// -EINVAL: the handle is NULL or not aligned. -ENOENT: nothing was started with it. -EIO: the mover was closed before a
/// device had ended it: its buffers must stay valid for ever, the handle is the caller's. -EBADF: it was under way when this
/// process was forked.
///
/// # Safety
/// `op` must be NULL or a handle; `into` NULL or a place for an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_op_poll(op: *const Op, into: *mut Outcome) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        let inside = unsafe { inside(op) }?;
        // SAFETY: as above.
        unsafe { seen(inside, inside.handle.look(), into) }
    })
}

/// Waits until the operation of a handle has ended: 1, with how in `into`, which may be NULL. After a short spin the thread
/// sleeps (futex). `timeout_ns` 0: without a deadline. Any thread may call it, several at once, and a signal handler.
///
/// # Errors
/// -ETIMEDOUT: it has not ended. Handle and buffers stay the mover's: see dray_op_cancel and dray_op_release. -EINVAL,
/// -ENOENT, -EIO, -EBADF: as of [`dray_op_poll`].
///
/// # Safety
/// As [`dray_op_poll`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_op_wait(op: *const Op, into: *mut Outcome, timeout_ns: u64) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        let inside = unsafe { inside(op) }?;
        let after = Duration::from_nanos(timeout_ns);
        let look = inside.handle.wait((timeout_ns > 0).then_some(after));
        // SAFETY: as above.
        match unsafe { seen(inside, look, into) }? {
            0 => Err(Refusal::of(
                libc::ETIMEDOUT,
                &dray::WaitError::Deadline { after },
            )),
            ended => Ok(ended),
        }
    })
}

/// Takes back the operation of a handle if the mover has not begun it: 0. It ends soon, with status 0 and `withdrawn`;
/// handle and buffers are the mover's until then. Any thread may call it, and a signal handler.
///
/// # Errors
/// -EALREADY: it has ended, or a device may be executing it: it ends by itself, and the buffers are the mover's until
/// then. -EINVAL: the handle is NULL or not aligned.
///
/// # Safety
/// `op` must be NULL or a handle, whose mover was not closed meanwhile if its operation is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_op_cancel(op: *mut Op) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        match unsafe { inside(op) }?.handle.cancel() {
            true => Ok(0),
            false => {
                let message = "the operation has ended, or a device may be executing it";
                Err(Refusal::new(libc::EALREADY, message))
            }
        }
    })
}

/// Makes a handle the caller's again, and so its buffers, whatever became of it: cancels its operation, and waits
/// until it has ended, as dray_op_wait without a deadline: 0, also if nothing was started with it.
///
/// # Errors
/// -EALREADY: it was listed, and dray_ended has not given it yet. -EIO: as of [`dray_op_poll`]. -EBADF: it was under way when
/// this process was forked; in this process handle and buffers are the caller's. -EINVAL: the handle is NULL or not aligned.
///
/// # Safety
/// As [`dray_op_cancel`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_op_release(op: *mut Op) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        let inside = unsafe { inside(op) }?;
        inside.handle.cancel();
        let look = inside.handle.wait(None);
        if look == Look::Idle {
            return Ok(0);
        }
        // SAFETY: there is no place.
        unsafe { seen(inside, look, std::ptr::null_mut()) }?;
        match inside.handle.is_free() {
            true => Ok(0),
            false => Err(refused(StartError::Busy)),
        }
    })
}

/// A file descriptor, for poll and epoll, that is readable while dray_ended has handles to give: one for all threads and
/// handles of a mover that threads share. Nobody reads, writes or closes it: dray_close does.
///
/// # Errors
/// -ENOTSUP: the mover is not shared. -EIO: the kernel gives no descriptor.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open) or
/// [`dray_open_channels`](crate::dray_open_channels).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_event_fd(mover: *mut Mover) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        let shared = unsafe { shared(mover) }?;
        match shared.is_closed() {
            true => Err(closed()),
            false => {
                let event = shared.submitter.event();
                event.map_err(|error| Refusal::of(libc::EIO, &error))
            }
        }
    })
}

/// Takes at most `count` handles that were started as `listed` and have ended, in the order in which they have: how many
/// there were. It does not wait. Any thread may call it, several at once: each handle is given once. It takes a lock: no
/// signal handler does. After dray_close it gives what is left.
///
/// # Errors
/// -EINVAL: no place. -ENOTSUP: the mover is not shared. -EBADF: it is closed, and nothing is left.
///
/// # Safety
/// `mover` as of [`dray_event_fd`]; `into` a place for `count` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_ended(mover: *mut Mover, into: *mut *mut Op, count: usize) -> c_int {
    call(|| {
        // SAFETY: the caller's promise is the same.
        let shared = unsafe { shared(mover) }?;
        place("handles", into, count)?;
        let most = count.min(c_int::MAX as usize);
        // SAFETY: a place of the caller's. A handle is the first field of what lies in an `Op`.
        let into = unsafe { std::slice::from_raw_parts_mut(into.cast::<*mut Handle>(), most) };
        match shared.submitter.take_ended(into) {
            0 if shared.is_closed() => Err(closed()),
            found => Ok(self::count(found)),
        }
    })
}
