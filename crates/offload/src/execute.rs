//! A call above the threshold: parts of it go to the device, and what it does not do to the core.

use std::ffi::c_int;

use dray::{Completion, Operation, Progress};
use dray_spec::Status;

use crate::calls::Call;
use crate::lanes::{SLOTS, Taken};
use crate::next;
use crate::runtime::Runtime;
use crate::settings::Faults;
use crate::stats::{Executor, Reason};

/// Times that a descriptor is submitted to a queue that is full, while nothing of this call is in
/// flight.
const ATTEMPTS: u32 = 4;

/// What a call writes.
#[derive(Debug, Clone, Copy)]
enum Work {
    Copy { to: *mut u8, from: *const u8 },
    Fill { to: *mut u8, byte: c_int },
}

/// A part of it.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    at: usize,
    len: usize,
    /// It has faulted before.
    resumed: bool,
}

impl Work {
    fn operation(self, part: Part) -> Operation {
        let len = part.len as u32;
        match self {
            Work::Copy { to, from } => {
                let from = from.wrapping_add(part.at).expose_provenance() as u64;
                let to = to.wrapping_add(part.at).expose_provenance() as u64;
                Operation::memmove(from, to, len)
            }
            Work::Fill { to, byte } => {
                let to = to.wrapping_add(part.at).expose_provenance() as u64;
                Operation::fill(u64::from_ne_bytes([byte as u8; 8]), to, len)
            }
        }
    }

    /// # Safety
    /// The part must be in what the caller of the C library's function has promised.
    unsafe fn on_core(self, part: Part) {
        match self {
            Work::Copy { to, from } => {
                let (to, from) = (to.wrapping_add(part.at), from.wrapping_add(part.at));
                // SAFETY: the caller's promise.
                unsafe { next::memmove(to, from, part.len) };
            }
            Work::Fill { to, byte } => {
                let to = to.wrapping_add(part.at);
                // SAFETY: the caller's promise.
                unsafe { next::memset(to, byte, part.len) };
            }
        }
    }

    /// Makes the pages of a part present. Whether all are.
    fn populate(self, part: Part) -> bool {
        let written = |to: *mut u8| {
            let to = to.wrapping_add(part.at);
            populate(to, part.len, libc::MADV_POPULATE_WRITE)
        };
        match self {
            Work::Copy { to, from } => {
                let from = from.wrapping_add(part.at);
                populate(from, part.len, libc::MADV_POPULATE_READ) && written(to)
            }
            Work::Fill { to, .. } => written(to),
        }
    }

    fn destination(self) -> *const u8 {
        match self {
            Work::Copy { to, .. } | Work::Fill { to, .. } => to,
        }
    }
}

/// Makes pages present, where the kernel can (5.14). Whether all are: where one cannot be, the core
/// finds out.
fn populate(start: *const u8, len: usize, advice: c_int) -> bool {
    let first = start.addr() & !4095;
    let end = (start.addr() + len).next_multiple_of(4096);
    // SAFETY: the contents of the pages stay as they are.
    unsafe { libc::syscall(libc::SYS_madvise, first, end - first, advice) == 0 }
}

/// What has been done.
#[derive(Debug, Default)]
struct Done {
    device: usize,
    executor: Option<Executor>,
}

fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// errno, which these functions of the C library leave alone.
struct Errno(c_int);

impl Errno {
    fn keep() -> Errno {
        // SAFETY: it is this thread's.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        Errno(unsafe { place.read() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: it is this thread's.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { place.write(self.0) };
    }
}

/// For a survey.
fn record(
    runtime: Option<&Runtime>,
    call: Call,
    to: *const u8,
    from: Option<*const u8>,
    len: usize,
    site: usize,
) {
    if let Some(recorder) = runtime.and_then(|runtime| runtime.recorder.as_ref()) {
        let _errno = Errno::keep();
        recorder.record(call, to.addr(), from.map(|from| from.addr()), len, site);
    }
}

/// # Safety
/// As memmove(3), or as memcpy(3) if that is the call.
pub(crate) unsafe fn copy(
    runtime: Option<&Runtime>,
    call: Call,
    to: *mut u8,
    from: *const u8,
    len: usize,
    site: usize,
) {
    let work = Work::Copy { to, from };
    record(runtime, call, to, Some(from), len, site);
    let apart = to.addr().abs_diff(from.addr());
    // SAFETY: the caller's promise.
    unsafe { write(runtime, call, work, len, apart < len) };
}

/// # Safety
/// As memset(3).
pub(crate) unsafe fn fill(
    runtime: Option<&Runtime>,
    to: *mut u8,
    byte: c_int,
    len: usize,
    site: usize,
) {
    record(runtime, Call::Memset, to, None, len, site);
    // SAFETY: the caller's promise.
    unsafe { write(runtime, Call::Memset, Work::Fill { to, byte }, len, false) };
}

/// # Safety
/// As the call.
unsafe fn write(runtime: Option<&Runtime>, call: Call, work: Work, len: usize, overlap: bool) {
    let whole = Part {
        at: 0,
        len,
        resumed: false,
    };
    let Some(runtime) = runtime else {
        // SAFETY: the caller's promise.
        return unsafe { work.on_core(whole) };
    };
    if len < runtime.adaptation.min_bytes() {
        if runtime.count_small {
            runtime.stats.small(call, len);
        }
        // SAFETY: the caller's promise.
        return unsafe { work.on_core(whole) };
    }
    let _errno = Errno::keep();
    let begin = now();
    let mut done = Done::default();
    match take(
        runtime,
        work.destination(),
        len,
        overlap && call != Call::Memmove,
        overlap,
    ) {
        Ok(taken) => {
            // SAFETY: the caller's promise.
            unsafe { share(runtime, taken, work, len, overlap, &mut done) };
        }
        Err(reason) => {
            runtime.stats.reason(reason, len);
            // SAFETY: the caller's promise.
            unsafe { work.on_core(whole) };
        }
    }
    let executor = done.executor.unwrap_or(Executor::Core);
    let ns = now().saturating_sub(begin);
    runtime.stats.call(call, len, executor, done.device, ns);
}

/// A lane for a call, or why the core executes it.
fn take(
    runtime: &Runtime,
    operand: *const u8,
    len: usize,
    wrong: bool,
    overlap: bool,
) -> Result<Taken<'_>, Reason> {
    let lanes = runtime.lanes.as_ref().map_err(|reason| *reason)?;
    if wrong || overlap && !runtime.overlap_on_device {
        return Err(Reason::Overlap);
    }
    let taken = lanes.take(runtime.node(operand))?;
    let capabilities = taken.capabilities();
    let fits = len as u64 <= capabilities.max_transfer_bytes;
    match !overlap || capabilities.general.overlapping_copy() && fits {
        true => Ok(taken),
        false => Err(Reason::Overlap),
    }
}

/// Parts that are left to the core when the lane is free again.
#[derive(Debug, Default)]
struct Left {
    parts: [(Part, Option<Reason>); 2 * SLOTS],
    count: usize,
}

impl Left {
    /// # Safety
    /// As [`Work::on_core`].
    unsafe fn push(&mut self, work: Work, part: Part, reason: Reason, runtime: &Runtime) {
        if part.len == 0 {
            return;
        }
        runtime.stats.reason(reason, part.len);
        match self.parts.get_mut(self.count) {
            Some(place) => {
                *place = (part, Some(reason));
                self.count += 1;
            }
            // SAFETY: the caller's promise.
            None => unsafe { work.on_core(part) },
        }
    }
}

/// Splits a call between the core and a lane.
///
/// # Safety
/// As the call.
unsafe fn share(
    runtime: &Runtime,
    mut taken: Taken<'_>,
    work: Work,
    len: usize,
    overlap: bool,
    done: &mut Done,
) {
    let core = match overlap {
        true => 0,
        false => len / 100 * runtime.adaptation.core_percent(),
    };
    let mut left = Left::default();
    let mut transfer = Transfer {
        runtime,
        work,
        parts: [Part::default(); SLOTS],
        used: 0,
        in_flight: 0,
        looks: 0,
        done,
        left: &mut left,
    };
    // SAFETY: the caller's promise.
    unsafe { transfer.run(&mut taken, core, len) };
    drop(taken);
    for (part, _) in &left.parts[..left.count] {
        // SAFETY: the caller's promise; the device has ended.
        unsafe { work.on_core(*part) };
    }
}

/// A call in a lane.
struct Transfer<'a> {
    runtime: &'a Runtime,
    work: Work,
    parts: [Part; SLOTS],
    /// Bits: which parts are in flight.
    used: u8,
    in_flight: usize,
    /// How often nothing had ended, since the last end.
    looks: u64,
    done: &'a mut Done,
    left: &'a mut Left,
}

impl Transfer<'_> {
    /// # Safety
    /// As the call.
    unsafe fn run(&mut self, taken: &mut Taken<'_>, core: usize, len: usize) {
        let most = taken.capabilities().max_transfer_bytes;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let most = most.clamp(1, u32::MAX as usize);
        let least = self.runtime.adaptation.min_bytes();
        let mut share = (core > 0).then_some(Part {
            at: 0,
            len: core,
            resumed: false,
        });
        let mut next = core;
        let mut refused = 0;
        // What a queue has not accepted yet; nothing is enqueued behind it.
        let mut waiting = false;
        loop {
            while next < len && self.in_flight < SLOTS && !waiting {
                let rest = Part {
                    at: next,
                    len: (len - next).min(most),
                    resumed: false,
                };
                next += rest.len;
                // A rest that would not have been offloaded by itself.
                if rest.len < least && rest.at > core {
                    // SAFETY: the caller's promise.
                    unsafe { self.leave(rest, Reason::Rest) };
                    continue;
                }
                // SAFETY: the caller's promise.
                waiting = unsafe { self.start(taken, rest) };
            }
            if let Some(part) = share.take() {
                self.runtime.stats.reason(Reason::Share, part.len);
                // SAFETY: the caller's promise; the device works on other bytes.
                unsafe { self.work.on_core(part) };
            }
            if self.in_flight == 0 {
                return;
            }
            if waiting {
                waiting = taken.submit() == Progress::Pending;
            }
            if let Some(ended) = taken.poll() {
                // SAFETY: the caller's promise.
                waiting |= unsafe { self.end(taken, &ended) };
                refused = 0;
                continue;
            }
            self.looks += 1;
            if waiting && self.in_flight == 1 {
                refused += 1;
                if refused >= ATTEMPTS {
                    taken.cancel_queued();
                    // SAFETY: the caller's promise.
                    unsafe { self.give_up(next, len) };
                    return;
                }
            }
            self.runtime.waiting.once(match waiting {
                true => None,
                false => taken.oldest_record(),
            });
        }
    }

    /// Leaves a part to the core.
    ///
    /// # Safety
    /// As the call.
    unsafe fn leave(&mut self, part: Part, reason: Reason) {
        // SAFETY: the caller's promise.
        unsafe { self.left.push(self.work, part, reason, self.runtime) };
    }

    /// The queue takes nothing: all that is left is the core's.
    ///
    /// # Safety
    /// As the call.
    unsafe fn give_up(&mut self, next: usize, len: usize) {
        for slot in 0..SLOTS {
            if self.used >> slot & 1 == 1 {
                let part = self.parts[slot];
                // SAFETY: the caller's promise.
                unsafe { self.leave(part, Reason::QueueFull) };
            }
        }
        let rest = Part {
            at: next,
            len: len - next,
            resumed: false,
        };
        // SAFETY: the caller's promise.
        unsafe { self.leave(rest, Reason::QueueFull) };
    }

    /// Enqueues a part. Whether the queue has yet to accept it.
    ///
    /// # Safety
    /// As the call.
    unsafe fn start(&mut self, taken: &mut Taken<'_>, part: Part) -> bool {
        // The thread of the virtual device must not take the program's faults.
        if self.runtime.populate_first && !self.work.populate(part) {
            // SAFETY: the caller's promise.
            unsafe { self.leave(part, Reason::PageFault) }
            return false;
        }
        let slot = self.used.trailing_ones() as usize;
        let capabilities = taken.capabilities();
        let mut operation = self.work.operation(part).with_user_data(slot as u64);
        if self.runtime.to_cache(capabilities.general) {
            operation = operation.with_cache_control();
        }
        if capabilities.block_on_fault {
            operation = operation.with_block_on_fault();
        }
        // SAFETY: the caller's promise; this call returns when the operation has ended.
        if slot >= SLOTS || !unsafe { taken.enqueue(&operation) } {
            // SAFETY: the caller's promise.
            unsafe { self.leave(part, Reason::Busy) };
            return false;
        }
        self.parts[slot] = part;
        self.used |= 1 << slot;
        self.in_flight += 1;
        taken.submit() == Progress::Pending
    }

    /// A part has ended. Whether what is left of it was enqueued again and not accepted yet.
    ///
    /// # Safety
    /// As the call.
    unsafe fn end(&mut self, taken: &mut Taken<'_>, completion: &Completion) -> bool {
        let slot = completion.user_data as usize % SLOTS;
        let part = self.parts[slot];
        self.used &= !(1 << slot);
        self.in_flight -= 1;
        self.done.executor = Some(completion.executor.into());
        let record = &completion.record;
        let looks = std::mem::take(&mut self.looks);
        if record.status() == Status::SUCCESS {
            self.done.device += part.len;
            if let Some(bytes) = self.runtime.adaptation.completed(looks) {
                (self.runtime.set_threshold)(self.runtime, bytes);
            }
            return false;
        }
        if record.status().code() != Status::PAGE_FAULT.0 {
            // SAFETY: the caller's promise.
            unsafe { self.leave(part, Reason::Failed) };
            return false;
        }
        let completed = (record.bytes_completed as usize).min(part.len);
        self.done.device += completed;
        // A move of overlapping buffers may have begun at the end (spec 8.3.4).
        let backwards = record.result & 1 == 1;
        let rest = Part {
            at: if backwards {
                part.at
            } else {
                part.at + completed
            },
            len: part.len - completed,
            resumed: true,
        };
        let again = self.runtime.faults == Faults::Resume && !part.resumed && rest.len > 0;
        self.runtime.stats.fault(again);
        if again {
            self.work.populate(rest);
            // SAFETY: the caller's promise.
            return unsafe { self.start(taken, rest) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.leave(rest, Reason::PageFault) };
        false
    }
}

/// # Safety
/// As memcmp(3).
pub(crate) unsafe fn compare(
    runtime: Option<&Runtime>,
    a: *const u8,
    b: *const u8,
    len: usize,
    site: usize,
) -> c_int {
    record(runtime, Call::Memcmp, b, Some(a), len, site);
    let Some(runtime) = runtime else {
        // SAFETY: the caller's promise.
        return unsafe { next::memcmp(a, b, len) };
    };
    if len < runtime.adaptation.min_bytes() {
        if runtime.count_small {
            runtime.stats.small(Call::Memcmp, len);
        }
        // SAFETY: the caller's promise.
        return unsafe { next::memcmp(a, b, len) };
    }
    let _errno = Errno::keep();
    let begin = now();
    let mut done = Done::default();
    let compared = match take(runtime, b, len, false, false) {
        // SAFETY: the caller's promise.
        Ok(mut taken) => unsafe { equal_bytes(runtime, &mut taken, a, b, len, &mut done) },
        Err(reason) => Err((0, reason)),
    };
    let result = match compared {
        Ok(None) => 0,
        Ok(Some(at)) => {
            let (a, b) = (a.wrapping_add(at), b.wrapping_add(at));
            // SAFETY: the byte is within the operand.
            let first = unsafe { a.read() };
            // SAFETY: as above.
            c_int::from(first) - c_int::from(unsafe { b.read() })
        }
        Err((at, reason)) => {
            runtime.stats.reason(reason, len - at);
            let (a, b) = (a.wrapping_add(at), b.wrapping_add(at));
            // SAFETY: the caller's promise.
            unsafe { next::memcmp(a, b, len - at) }
        }
    };
    let executor = done.executor.unwrap_or(Executor::Core);
    // Bytes behind the first difference are nobody's.
    let bytes = match compared {
        Ok(Some(_)) => done.device.max(1),
        _ => len,
    };
    let ns = now().saturating_sub(begin);
    runtime
        .stats
        .call(Call::Memcmp, bytes, executor, done.device, ns);
    result
}

/// Compares in a lane: the offset of the first difference, or how far it came and why not further.
///
/// # Safety
/// As memcmp(3).
unsafe fn equal_bytes(
    runtime: &Runtime,
    taken: &mut Taken<'_>,
    a: *const u8,
    b: *const u8,
    len: usize,
    done: &mut Done,
) -> Result<Option<usize>, (usize, Reason)> {
    let least = runtime.adaptation.min_bytes();
    let mut at = 0;
    let mut resumed_at = usize::MAX;
    while at < len {
        let capabilities = taken.capabilities();
        let most = usize::try_from(capabilities.max_transfer_bytes).unwrap_or(usize::MAX);
        let part = (len - at).min(most.clamp(1, u32::MAX as usize));
        if part < least && at > 0 && resumed_at == usize::MAX {
            return Err((at, Reason::Rest));
        }
        let first = a.wrapping_add(at).expose_provenance() as u64;
        let second = b.wrapping_add(at).expose_provenance() as u64;
        let read = libc::MADV_POPULATE_READ;
        if runtime.populate_first
            && !(populate(a.wrapping_add(at), part, read)
                && populate(b.wrapping_add(at), part, read))
        {
            return Err((at, Reason::PageFault));
        }
        let mut operation = Operation::compare(first, second, part as u32);
        if capabilities.block_on_fault {
            operation = operation.with_block_on_fault();
        }
        // SAFETY: the caller's promise; this call returns when the operation has ended.
        if !unsafe { taken.enqueue(&operation) } {
            return Err((at, Reason::Busy));
        }
        let mut attempts = 0;
        while taken.submit() == Progress::Pending {
            attempts += 1;
            if attempts >= ATTEMPTS {
                taken.cancel_queued();
                return Err((at, Reason::QueueFull));
            }
            runtime.waiting.once(None);
        }
        let mut looks = 0;
        let ended = loop {
            if let Some(ended) = taken.poll() {
                break ended;
            }
            looks += 1;
            runtime.waiting.once(taken.oldest_record());
        };
        done.executor = Some(ended.executor.into());
        let record = &ended.record;
        let completed = (record.bytes_completed as usize).min(part);
        if record.status() == Status::SUCCESS {
            if record.result & 1 == 1 {
                done.device += completed + 1;
                return Ok(Some(at + completed));
            }
            done.device += part;
            at += part;
            resumed_at = usize::MAX;
            if let Some(bytes) = runtime.adaptation.completed(looks) {
                (runtime.set_threshold)(runtime, bytes);
            }
            continue;
        }
        if record.status().code() != Status::PAGE_FAULT.0 {
            return Err((at, Reason::Failed));
        }
        done.device += completed;
        at += completed;
        let again = runtime.faults == Faults::Resume && resumed_at == usize::MAX;
        runtime.stats.fault(again);
        if !again {
            return Err((at, Reason::PageFault));
        }
        resumed_at = at;
        populate(
            a.wrapping_add(at),
            part - completed,
            libc::MADV_POPULATE_READ,
        );
        populate(
            b.wrapping_add(at),
            part - completed,
            libc::MADV_POPULATE_READ,
        );
    }
    Ok(None)
}
