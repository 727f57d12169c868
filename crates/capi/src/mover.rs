//! Movers: opened, submitted to, polled, closed.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dray::channels::Channels;
use dray::hw::{self, HwError, HwMover, HwOptions};
use dray::virt::{Options as VirtualOptions, VirtualDevice, VirtualMover};
use dray::{BatchError, CpuMover, Mover as _, Operation, Progress, WaitError, WaitPolicy};
use dray_device::{Capabilities, DeviceConfig, GroupConfig, WorkQueueConfig, WorkQueueMode};

use crate::error::{Refusal, call};
use crate::types::{Backend, Completion, Executor, Options, Tags, Wait};
use dray_spec::{DifTags, Status};

/// Slots of a mover that asks for none.
const SLOTS: usize = 128;

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
/// It is never freed, only emptied: a handle that is used after it was closed is told so.
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
    batch: Vec<Operation>,
    in_batch: bool,
    /// The next operation of the batch has a fence.
    fence: bool,
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
        // SAFETY: so many bytes are readable, by the caller's promise.
        unsafe { check_size("dray_options", options.cast(), size, size_of::<Options>()) }?;
        // SAFETY: the caller's promise, for this size.
        let options = unsafe { *options };
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
                    Err(_) => Kind::Cpu(CpuMover::new(slots)),
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
                let device = VirtualDevice::start(virtual_device(1), VirtualOptions::default());
                let device = device.map_err(|error| Refusal::of(libc::EIO, &error))?;
                let opened = device.open(0, slots);
                Kind::Virtual(opened.map_err(|error| Refusal::of(libc::EINVAL, &error))?)
            }
            n if n == Backend::Cpu as u32 => Kind::Cpu(CpuMover::new(slots)),
            other => {
                let message = format!("{other} is no dray_backend");
                return Err(Refusal::new(libc::EINVAL, message));
            }
        };
        // SAFETY: not null, and a place for a pointer by the caller's promise.
        unsafe { mover.write(handle(kind, slots)) };
        Ok(0)
    })
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

/// Waits for what is in flight, and closes a mover: 0. NULL is allowed.
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
                let message = format!("{other} is no dray_wait_policy");
                return Err(Refusal::new(libc::EINVAL, message));
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
            let message = format!("{} of {len} bytes is not supported", opcode.name());
            return Err(Refusal::new(libc::ENOTSUP, message));
        }
        if open.in_batch {
            let max = capabilities.max_batch as usize;
            if open.batch.len() >= max {
                let message = format!("a batch of this mover has {max} operations at most");
                return Err(Refusal::new(libc::E2BIG, message));
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

/// # Safety
/// `mover` must be NULL or from [`dray_open`].
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
/// `mover` must be NULL or from [`dray_open`].
unsafe fn holding(
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
        let message = format!("{name} of {size} bytes: this library knows {known}");
        Err(Refusal::new(libc::EINVAL, message))
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

/// Lets the next call in when it is dropped.
struct Free<'a>(&'a AtomicBool);

impl Drop for Free<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Completions through a small buffer.
///
/// # Safety
/// `into` must be a place for `count` completions.
unsafe fn take(
    into: *mut Completion,
    count: usize,
    fill: impl FnOnce(&mut [dray::Completion]) -> Result<usize, Refusal>,
) -> Result<c_int, Refusal> {
    if into.is_null() || count == 0 {
        return Err(Refusal::new(libc::EINVAL, "no place for completions"));
    }
    let mut look = [dray::Completion::default(); 64];
    let most = count.min(look.len());
    let found = fill(&mut look[..most])?;
    for (n, completion) in look[..found].iter().enumerate() {
        // SAFETY: `n` is below the caller's count.
        let place = unsafe { into.add(n) };
        // SAFETY: a place of the caller's.
        unsafe { place.write(seen(completion)) };
    }
    Ok(self::count(found))
}

/// A completion as C sees it.
pub(crate) fn seen(completion: &dray::Completion) -> Completion {
    let record = &completion.record;
    Completion {
        user_data: completion.user_data,
        fault_address: record.fault_address,
        bytes_completed: record.bytes_completed,
        crc: match record.status() {
            Status::SUCCESS => record.crc64(),
            _ => 0,
        },
        delta_bytes: record.delta_record_size(),
        source: tags(record.source_tags()),
        destination: tags(record.destination_tags()),
        executor: match completion.executor {
            dray::Executor::Hardware => Executor::Hardware as u32,
            dray::Executor::Cpu => Executor::Cpu as u32,
            _ => Executor::Virtual as u32,
        },
        status: record.status().code(),
        result: record.result,
        write_fault: record.status().is_write_fault().into(),
        reserved: [0; 9],
    }
}

fn tags(tags: DifTags) -> Tags {
    Tags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

fn count(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

pub(crate) fn refused(error: HwError) -> Refusal {
    let code = match &error {
        HwError::NoQueues { .. } | HwError::NoSuchQueue { .. } => libc::ENODEV,
        HwError::Open { source, .. } if source.raw_os_error() == Some(libc::EBUSY) => libc::EBUSY,
        HwError::Slots { .. } => libc::EINVAL,
        _ => libc::EIO,
    };
    Refusal::of(code, &error)
}

/// A device as of Sapphire Rapids, with one engine and so many dedicated queues, up to 8.
pub(crate) fn virtual_device(queues: u16) -> DeviceConfig {
    let queue = |id| WorkQueueConfig {
        id,
        mode: WorkQueueMode::Dedicated,
        size: 128 / queues,
        priority: 10,
        block_on_fault: true,
        max_batch_size: 1024,
        max_transfer_size: 1 << 31,
        pasid: Some(0),
        ..WorkQueueConfig::default()
    };
    DeviceConfig {
        capabilities: Capabilities::sapphire_rapids(),
        work_queues: (0..queues).map(queue).collect(),
        groups: vec![GroupConfig {
            engines: vec![0],
            ..GroupConfig::default()
        }],
        ..DeviceConfig::default()
    }
}
