//! Movers: asked, submitted to, polled, waited for.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use dray::{Mover as _, Progress, WaitError, WaitPolicy};

use crate::completion::{FromOutcome, count};
use crate::error::Refusal;
use crate::handle::{Mover, Open, using, with};
use crate::structure::word;
use crate::types::Completion;

/// Operations that can be enqueued or in flight at once.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_slots(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| Ok(count(with!(&mut open.kind, m => m.slots())));
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Whether operations with this opcode are executed: 1 or 0.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
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
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_submit(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        let progress = with!(&mut open.kind, m => m.submit());
        Ok((progress == Progress::Pending).into())
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Takes at most `count` completions: how many there were, at most 64. Of movers from dray_open_channels
/// each says why the core has executed any of it; [`dray_poll_outcomes`](crate::dray_poll_outcomes) says
/// more.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open); `into` a place for `count` completions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_poll(
    mover: *mut Mover,
    into: *mut Completion,
    count: usize,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { poll_into(mover, into, count) }
}

/// A place for `count` results.
pub(crate) fn place<T>(what: &str, into: *mut T, count: usize) -> Result<(), Refusal> {
    match into.is_null() || !into.is_aligned() || count == 0 {
        true => Err(Refusal::new(
            libc::EINVAL,
            format_args!("there is no place for {what}: NULL, not aligned, or a count of 0"),
        )),
        false => Ok(()),
    }
}

/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open); `into` a place for `count` results.
pub(crate) unsafe fn poll_into<T: FromOutcome>(
    mover: *mut Mover,
    into: *mut T,
    count: usize,
) -> c_int {
    let work = |open: &mut Open| {
        place("completions", into, count)?;
        T::check(&open.kind)?;
        // SAFETY: the caller's promise is the same.
        Ok(self::count(unsafe { poll(open, into, count) }))
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// # Safety
/// `into` must be a place for `count` results.
unsafe fn poll<T: FromOutcome>(open: &mut Open, into: *mut T, count: usize) -> usize {
    let reason = open.opened.core_reason;
    let most = count.min(open.outcomes.len());
    let look = &mut open.outcomes[..most];
    let found = with!(&mut open.kind, m => m.poll_outcomes(look));
    for (n, outcome) in open.outcomes[..found].iter().enumerate() {
        // SAFETY: `n` is below the caller's count.
        let place = unsafe { into.add(n) };
        // SAFETY: a place of the caller's.
        unsafe { place.write(T::of(outcome, reason)) };
    }
    found
}

/// Submits, and waits until at least one operation has ended: how many have, at most `count` and at most
/// 64. `timeout_ns` 0: without a deadline.
///
/// # Errors
/// -ETIMEDOUT: none has; all stay in flight, and their buffers the mover's, until each has completed: by the
/// device, or with status 0 if [`dray_withdraw`] takes it back. -ENOENT: nothing is enqueued or in flight. -ENOTSUP: no
/// UMWAIT here.
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
    // SAFETY: the caller's promise is the same.
    unsafe { wait_into(mover, into, count, policy, timeout_ns) }
}

/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open); `into` a place for `count` results.
pub(crate) unsafe fn wait_into<T: FromOutcome>(
    mover: *mut Mover,
    into: *mut T,
    count: usize,
    policy: u32,
    timeout_ns: u64,
) -> c_int {
    let work = |open: &mut Open| {
        place("completions", into, count)?;
        T::check(&open.kind)?;
        // SAFETY: the caller's promise is the same.
        wait(open, policy, timeout_ns, |open| unsafe {
            poll(open, into, count)
        })
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Submits and polls until there is something, or it is too late.
fn wait(
    open: &mut Open,
    policy: u32,
    timeout_ns: u64,
    mut poll: impl FnMut(&mut Open) -> usize,
) -> Result<c_int, Refusal> {
    let policy = policy_of(policy)?;
    let after = Duration::from_nanos(timeout_ns);
    let start = (timeout_ns > 0).then(Instant::now);
    loop {
        if with!(&open.kind, m => m.in_flight()) == 0 {
            return Err(failed(&WaitError::Nothing));
        }
        with!(&mut open.kind, m => m.submit());
        let found = poll(open);
        if found > 0 {
            return Ok(count(found));
        }
        if start.is_some_and(|start| start.elapsed() >= after) {
            return Err(failed(&WaitError::Deadline { after }));
        }
        // What goes on after a page fault is enqueued by the poll.
        let progress = with!(&mut open.kind, m => m.submit());
        with!(&mut open.kind, m => policy.relax(m, progress)).map_err(|error| failed(&error))?;
    }
}

/// How to wait; it must be possible here.
fn policy_of(policy: u32) -> Result<WaitPolicy, Refusal> {
    let words = [
        WaitPolicy::Spin,
        WaitPolicy::Pause,
        WaitPolicy::Umwait,
        WaitPolicy::Yield,
    ];
    let policy = word("the dray_wait_policy", policy, &words)?;
    match policy.is_supported() {
        true => Ok(policy),
        false => Err(failed(&WaitError::NoUmwait)),
    }
}

fn failed(error: &WaitError) -> Refusal {
    let code = match error {
        WaitError::Deadline { .. } => libc::ETIMEDOUT,
        WaitError::Nothing => libc::ENOENT,
        WaitError::NoUmwait => libc::ENOTSUP,
    };
    Refusal::of(code, error)
}

/// Takes back what no queue has accepted: how many operations. Each completes with status 0 and `withdrawn`,
/// and its buffers are the mover's until then; what a queue has accepted goes on.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_withdraw(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| Ok(count(with!(&mut open.kind, m => m.withdraw())));
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}
