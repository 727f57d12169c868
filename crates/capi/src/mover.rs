//! Movers: opened, submitted to, polled, closed.

use std::ffi::{CStr, c_int};
use std::time::Duration;

use dray::hw::{self, HwError, HwOptions};
use dray::virt::{Checked, Options as VirtualOptions, VirtualDevice};
use dray::{BatchError, CpuMover, Mover as _, Operation, Progress, WaitError, WaitPolicy};

use crate::backend::{refused, virtual_device};
use crate::completion::{count, take};
use crate::error::{Refusal, call};
use crate::handle::{Kind, Mover, Open, handle, holding, sized, using, with};
use crate::types::{Backend, Completion, Options, Wait};

/// Slots of a mover that asks for none.
const SLOTS: usize = 128;
/// Bytes of the first version of dray_options, which ended with `queue`.
const FIRST_OPTIONS: usize = 24;

fn core(slots: usize, options: &Options) -> CpuMover {
    match options.checked {
        0 => CpuMover::new(slots),
        _ => CpuMover::checked(slots),
    }
}

/// Opens a mover: 0, and the mover at `mover`.
///
/// # Errors
/// -EINVAL: a null pointer, a `size` or `backend` that this version does not know. -ENODEV: no such
/// work queue. -EBUSY: another process has it. -EIO: it cannot be used.
///
/// # Safety
/// `options` must point to `options->size` readable bytes, `mover` to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_open(options: *const Options, mover: *mut *mut Mover) -> c_int {
    call(|| {
        if options.is_null() || mover.is_null() || !options.is_aligned() {
            return Err(Refusal::new(libc::EINVAL, "options and mover are needed"));
        }
        // SAFETY: aligned, and every version has this field.
        let size = unsafe { (*options).size };
        // SAFETY: so many bytes are readable, by the caller's promise; every bytes are options.
        let options: Options = unsafe { sized("dray_options", options, size, FIRST_OPTIONS) }?;
        let slots = match options.slots {
            0 => SLOTS,
            slots => slots as usize,
        };
        let kind = match options.backend {
            n if n == Backend::Any as u32 => {
                let hw_options = HwOptions {
                    slots,
                    ..HwOptions::default()
                };
                match hw::open(None, hw_options) {
                    Ok(mover) => Kind::Hardware(mover),
                    Err(HwError::Slots { asked, most }) => {
                        return Err(refused(HwError::Slots { asked, most }));
                    }
                    Err(_) => Kind::Cpu(core(slots, &options)),
                }
            }
            n if n == Backend::Hardware as u32 => {
                let name = match options.queue.is_null() {
                    true => None,
                    // SAFETY: a string of C, by the caller's promise.
                    false => Some(unsafe { CStr::from_ptr(options.queue) }.to_string_lossy()),
                };
                let hw_options = HwOptions {
                    slots,
                    ..HwOptions::default()
                };
                Kind::Hardware(hw::open(name.as_deref(), hw_options).map_err(refused)?)
            }
            n if n == Backend::Virtual as u32 => {
                let (config, how) = (virtual_device(1), VirtualOptions::default());
                let device = match options.checked {
                    0 => VirtualDevice::start(config, how),
                    _ => VirtualDevice::start_in(config, how, Checked, |_| {}),
                };
                let device = device.map_err(|error| Refusal::of(libc::EIO, &error))?;
                let opened = device.open(0, slots);
                Kind::Virtual(opened.map_err(|error| Refusal::of(libc::EINVAL, &error))?)
            }
            n if n == Backend::Cpu as u32 => Kind::Cpu(core(slots, &options)),
            other => {
                return Err(Refusal::new(
                    libc::EINVAL,
                    format_args!("{other} is no dray_backend"),
                ));
            }
        };
        // SAFETY: not null, and a place for a pointer by the caller's promise.
        unsafe { mover.write(handle(kind, slots)) };
        Ok(0)
    })
}

/// Takes back what no queue has accepted, waits for the rest, and closes a mover: 0. NULL is allowed.
/// Without a completion it waits two seconds on hardware, ten on a virtual device, and no longer: memory
/// of operations that a device then still holds must stay valid for ever.
///
/// # Errors
/// -EBADF: it is closed already. -EBUSY: another thread is using it, and goes on doing so.
///
/// # Safety
/// `mover` must come from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_close(mover: *mut Mover) -> c_int {
    if mover.is_null() {
        return 0;
    }
    let work = |open: &mut Option<Box<Open>>| {
        drop(open.take());
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { holding(mover, work) }
}

/// Operations that can be enqueued or in flight at once.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_slots(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| Ok(count(with!(&mut open.kind, m => m.slots())));
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Whether operations with this opcode are executed: 1 or 0.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_supports(mover: *mut Mover, opcode: u8) -> c_int {
    let work = |open: &mut Open| {
        let capabilities = with!(&mut open.kind, m => m.capabilities());
        Ok(capabilities.operations.supports(opcode).into())
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Hands over what was enqueued: 0, or 1 if something is left to submit later.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_submit(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        let progress = with!(&mut open.kind, m => m.submit());
        Ok((progress == Progress::Pending).into())
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Takes at most `count` completions: how many there were.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`]; `into` a place for `count` completions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_poll(
    mover: *mut Mover,
    into: *mut Completion,
    count: usize,
) -> c_int {
    let work = |open: &mut Open| {
        let poll = |look: &mut [dray::Completion]| Ok(with!(&mut open.kind, m => m.poll(look)));
        // SAFETY: the caller's promise is the same.
        unsafe { take(into, count, poll) }
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Submits, and waits until at least one operation has ended: how many have, at most `count`.
/// `timeout_ns` 0: without a deadline.
///
/// # Errors
/// -ETIMEDOUT; -ENOTSUP: no UMWAIT here.
///
/// # Safety
/// As [`dray_poll`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_wait(
    mover: *mut Mover,
    into: *mut Completion,
    count: usize,
    policy: u32,
    timeout_ns: u64,
) -> c_int {
    let deadline = (timeout_ns > 0).then_some(Duration::from_nanos(timeout_ns));
    let work = |open: &mut Open| {
        let policy = match policy {
            n if n == Wait::Spin as u32 => WaitPolicy::Spin,
            n if n == Wait::Pause as u32 => WaitPolicy::Pause,
            n if n == Wait::Umwait as u32 => WaitPolicy::Umwait,
            n if n == Wait::Yield as u32 => WaitPolicy::Yield,
            other => {
                return Err(Refusal::new(
                    libc::EINVAL,
                    format_args!("{other} is no dray_wait_policy"),
                ));
            }
        };
        let wait = |look: &mut [dray::Completion]| {
            let waited = with!(&mut open.kind, m => dray::wait(m, look, policy, deadline));
            waited.map_err(|error| match error {
                WaitError::Deadline { .. } => Refusal::of(libc::ETIMEDOUT, &error),
                WaitError::Nothing => Refusal::of(libc::ENOENT, &error),
                WaitError::NoUmwait => Refusal::of(libc::ENOTSUP, &error),
            })
        };
        // SAFETY: the caller's promise is the same.
        unsafe { take(into, count, wait) }
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Enqueues an operation, or adds it to the batch that has begun.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`]; the operation's addresses valid until it has ended.
pub(crate) unsafe fn enqueue(mover: *mut Mover, operation: Operation) -> c_int {
    let work = |open: &mut Open| {
        let capabilities = with!(&mut open.kind, m => m.capabilities());
        if !capabilities.supports(&operation) {
            let (opcode, len) = (operation.opcode(), operation.len());
            return Err(Refusal::new(
                libc::ENOTSUP,
                format_args!("{} of {len} bytes is not supported", opcode.name()),
            ));
        }
        if open.in_batch {
            let max = capabilities.max_batch as usize;
            if open.batch.len() >= max {
                return Err(Refusal::new(
                    libc::E2BIG,
                    format_args!("a batch of this mover has {max} operations at most"),
                ));
            }
            open.batch.push(match std::mem::take(&mut open.fence) {
                true => operation.with_fence(),
                false => operation,
            });
            return Ok(0);
        }
        let enqueued = with!(&mut open.kind, m => {
            // SAFETY: the caller's promise is the same.
            unsafe { m.enqueue(&operation) }
        });
        match enqueued {
            Ok(_) => Ok(0),
            Err(full) => Err(Refusal::of(libc::EAGAIN, &full)),
        }
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Begins a batch: the operations that follow are handed over together, by [`dray_batch_end`].
///
/// # Errors
/// -EALREADY: one has begun.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_batch_begin(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        if open.in_batch {
            return Err(Refusal::new(libc::EALREADY, "a batch has begun"));
        }
        (open.in_batch, open.fence) = (true, false);
        open.batch.clear();
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// The next operation of the batch starts when all before it have ended; not at all if one of them has
/// not succeeded.
///
/// # Errors
/// -ENOENT: no batch has begun.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_batch_fence(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        if !open.in_batch {
            return Err(Refusal::new(libc::ENOENT, "no batch has begun"));
        }
        open.fence = true;
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Enqueues the batch: how many operations it has. Each completes on its own.
///
/// # Errors
/// -ENOENT: no batch has begun, or it has no operations. -EAGAIN: there are not enough slots; the batch
/// stays, for another try.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`]; the addresses of all its operations valid until they have
/// ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_batch_end(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        if !open.in_batch || open.batch.is_empty() {
            open.in_batch = false;
            let message = "no batch has begun, or it is empty";
            return Err(Refusal::new(libc::ENOENT, message));
        }
        let batch = &open.batch;
        let enqueued = with!(&mut open.kind, m => {
            // SAFETY: the caller's promise is the same.
            unsafe { m.enqueue_batch(batch) }
        });
        match enqueued {
            Ok(_) => {
                open.in_batch = false;
                Ok(count(open.batch.len()))
            }
            Err(full @ BatchError::Full(_)) => Err(Refusal::of(libc::EAGAIN, &full)),
            Err(error) => Err(Refusal::of(libc::E2BIG, &error)),
        }
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Forgets the batch that has begun, if one has: 0.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_batch_cancel(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        open.in_batch = false;
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Takes back what no queue has accepted: how many operations. They complete with status 0.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_withdraw(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| Ok(count(with!(&mut open.kind, m => m.withdraw())));
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}
