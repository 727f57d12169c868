//! Operations of channels that have ended, and who did what of each.

use std::ffi::c_int;

use dray::channels::Outcome as Library;

use crate::channel_types::Outcome;
use crate::completion::{count, reason, seen_outcome};
use crate::error::Refusal;
use crate::handle::{Kind, Mover, Open, using};
use crate::mover::{place, wait};

/// Takes at most `count` operations that have ended, with who did what of each: how many there were, at
/// most 64.
///
/// # Errors
/// -ENOTSUP: the mover is not from dray_open_channels.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open_channels`](crate::dray_open_channels); `into` a place for
/// `count` outcomes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_poll_outcomes(
    mover: *mut Mover,
    into: *mut Outcome,
    count: usize,
) -> c_int {
    let work = |open: &mut Open| {
        place(into, count)?;
        // SAFETY: the caller's promise is the same.
        Ok(self::count(unsafe { poll(open, into, count) }?))
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// As dray_wait, with who did what of each operation.
///
/// # Errors
/// -ETIMEDOUT: none has ended; all stay in flight. -ENOENT: nothing is enqueued or in flight. -ENOTSUP:
/// no UMWAIT here, or the mover is not from dray_open_channels.
///
/// # Safety
/// As [`dray_poll_outcomes`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_wait_outcomes(
    mover: *mut Mover,
    into: *mut Outcome,
    count: usize,
    policy: u32,
    timeout_ns: u64,
) -> c_int {
    let work = |open: &mut Open| {
        place(into, count)?;
        wait(open, policy, timeout_ns, |open| {
            // SAFETY: the caller's promise is the same.
            unsafe { poll(open, into, count) }
        })
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// # Safety
/// `into` must be a place for `count` outcomes.
unsafe fn poll(open: &mut Open, into: *mut Outcome, count: usize) -> Result<usize, Refusal> {
    let most = count.min(open.outcomes.len());
    let look = &mut open.outcomes[..most];
    let found = match &mut open.kind {
        Kind::HardwareChannels(channels) => channels.poll_outcomes(look),
        Kind::VirtualChannels(channels) => channels.poll_outcomes(look),
        Kind::CpuChannels(channels) => channels.poll_outcomes(look),
        Kind::Hardware(_) | Kind::Virtual(_) | Kind::Cpu(_) => {
            let message = "the mover has one queue: dray_poll takes its completions";
            return Err(Refusal::new(libc::ENOTSUP, message));
        }
    };
    for (n, outcome) in open.outcomes[..found].iter().enumerate() {
        // SAFETY: `n` is below the caller's count.
        let place = unsafe { into.add(n) };
        // SAFETY: a place of the caller's.
        unsafe { place.write(reported(outcome)) };
    }
    open.in_flight = open.in_flight.saturating_sub(found);
    Ok(found)
}

fn reported(outcome: &Library) -> Outcome {
    Outcome {
        completion: seen_outcome(outcome),
        device_bytes: outcome.device_bytes,
        core_bytes: outcome.core_bytes,
        stripes: outcome.stripes,
        resumed_faults: outcome.resumed_faults,
        core_reason: reason(outcome) as u32,
        gathered: outcome.gathered.into(),
        queue_was_full: outcome.queue_was_full.into(),
        reserved: [0; 2],
    }
}
