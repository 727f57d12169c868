//! A call above the threshold: parts of it go to the device, and what it does not do to the core.

use std::ffi::c_int;

use dray_placement::Reason;
use dray_recording::cycles;

use crate::calls::Call;
use crate::comparison::equal_bytes;
use crate::errno::Errno;
use crate::lanes::Taken;
use crate::next;
use crate::record;
use crate::runtime::Runtime;
use crate::stats::Executor;

use crate::transfer::share;
use crate::work::{Part, Work};

/// What a device has done of a call.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Bytes.
    pub(crate) device: usize,
    pub(crate) executor: Option<Executor>,
}

/// Of the monotonic clock, in ns.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// For a survey.
fn survey(
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

fn whole(len: usize) -> Part {
    Part {
        at: 0,
        len,
        resumed: false,
    }
}

/// A call that a recording has the beginning of has ended.
fn end_recorded(
    recorder: &record::Record,
    (begun, ended): (Option<record::Begun>, u64),
    call: Call,
    (to, from): (usize, Option<usize>),
    len: usize,
) {
    if let Some(begun) = begun {
        let done = record::Done {
            call,
            to,
            from,
            len,
        };
        recorder.end(&begun, ended, &done);
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
    if let Some(recorder) = runtime.and_then(|runtime| runtime.record.as_ref()) {
        let begun = recorder.begin();
        // SAFETY: the caller's promise.
        unsafe { work.on_core(whole(len)) };
        let (ended, from) = (cycles(), Some(from.addr()));
        return end_recorded(recorder, (begun, ended), call, (to.addr(), from), len);
    }
    survey(runtime, call, to, Some(from), len, site);
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
    if let Some(recorder) = runtime.and_then(|runtime| runtime.record.as_ref()) {
        let begun = recorder.begin();
        // SAFETY: the caller's promise.
        unsafe { Work::Fill { to, byte }.on_core(whole(len)) };
        let ended = (begun, cycles());
        return end_recorded(recorder, ended, Call::Memset, (to.addr(), None), len);
    }
    survey(runtime, Call::Memset, to, None, len, site);
    // SAFETY: the caller's promise.
    unsafe { write(runtime, Call::Memset, Work::Fill { to, byte }, len, false) };
}

/// # Safety
/// As the call.
unsafe fn write(runtime: Option<&Runtime>, call: Call, work: Work, len: usize, overlap: bool) {
    let whole = whole(len);
    let Some(runtime) = runtime else {
        // SAFETY: the caller's promise.
        return unsafe { work.on_core(whole) };
    };
    if runtime.adaptation.threshold().reason(len as u64).is_some() {
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

/// Bytes that a comparison has looked at: those up to the first difference.
///
/// # Safety
/// As memcmp(3).
unsafe fn compared(a: *const u8, b: *const u8, len: usize, result: c_int) -> usize {
    if result == 0 {
        return len;
    }
    let mut at = 0;
    // The piece with the difference, then the byte in it.
    for piece in [4096, 64, 1] {
        while len - at > piece {
            let (a, b) = (a.wrapping_add(at), b.wrapping_add(at));
            // SAFETY: within the operands.
            if unsafe { next::memcmp(a, b, piece) } != 0 {
                break;
            }
            at += piece;
        }
    }
    at + 1
}

/// A comparison that is recorded, which has its result then; or one that is surveyed.
///
/// # Safety
/// As memcmp(3).
unsafe fn watched(
    runtime: &Runtime,
    a: *const u8,
    b: *const u8,
    len: usize,
    site: usize,
) -> Option<c_int> {
    if runtime.record.is_none() && runtime.recorder.is_none() {
        return None;
    }
    let begun = runtime.record.as_ref().and_then(record::Record::begin);
    // SAFETY: the caller's promise.
    let result = unsafe { next::memcmp(a, b, len) };
    let ended = cycles();
    // SAFETY: the caller's promise.
    let bytes = unsafe { compared(a, b, len, result) };
    let Some(record) = &runtime.record else {
        survey(Some(runtime), Call::Memcmp, b, Some(a), bytes, site);
        return None;
    };
    let operands = (b.addr(), Some(a.addr()));
    end_recorded(record, (begun, ended), Call::Memcmp, operands, bytes);
    Some(result)
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
    let Some(runtime) = runtime else {
        // SAFETY: the caller's promise.
        return unsafe { next::memcmp(a, b, len) };
    };
    // SAFETY: the caller's promise.
    if let Some(result) = unsafe { watched(runtime, a, b, len, site) } {
        return result;
    }
    if runtime.adaptation.threshold().reason(len as u64).is_some() {
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
        Ok(taken) => unsafe { equal_bytes(runtime, taken, a, b, len, &mut done) },
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
    // Bytes behind the first difference count for no executor.
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
