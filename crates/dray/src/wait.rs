//! Ways to wait for completions.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::{Completion, Mover, Progress};

/// What a thread does between two polls.
///
/// ```
/// use dray::WaitPolicy;
///
/// let policy = match WaitPolicy::Umwait.is_supported() {
///     true => WaitPolicy::Umwait,
///     false => WaitPolicy::Pause,
/// };
/// assert!(policy.is_supported());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitPolicy {
    /// Looks again at once: least latency.
    Spin,
    /// A PAUSE between polls, which leaves the core's resources to its other thread.
    #[default]
    Pause,
    /// UMWAIT on the oldest record: the core sleeps lightly until it is written. Only where the
    /// processor has WAITPKG: see [`WaitPolicy::is_supported`].
    Umwait,
    /// Lets other threads run between polls.
    Yield,
}

/// Why a wait ended without a completion.
///
/// ```
/// use dray::{Channel, CpuMover, WaitError, WaitPolicy};
///
/// let mut channel = Channel::<_, Vec<u8>>::new(CpuMover::new(1));
/// let waited = channel.wait(WaitPolicy::Pause, None);
/// assert_eq!(waited.err(), Some(WaitError::Nothing));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WaitError {
    /// The time was over. What is in flight stays there.
    #[error("no completion within {after:?}")]
    Deadline {
        /// Time that was waited.
        after: Duration,
    },
    /// Nothing is in flight.
    #[error("nothing is in flight")]
    Nothing,
    /// The processor has no UMWAIT, or the mover no record to wait for.
    #[error("UMWAIT is not possible here: take another way to wait")]
    NoUmwait,
}

impl WaitPolicy {
    /// Whether this processor can wait so.
    pub fn is_supported(self) -> bool {
        self != WaitPolicy::Umwait || umwait::is_supported()
    }

    /// What a thread does between two polls; `submitted` is what
    /// [`Mover::submit`] has said before.
    ///
    /// # Errors
    /// [`WaitError::NoUmwait`]: the processor does not [support](WaitPolicy::is_supported) it, or the mover
    /// has no record to wait for.
    #[inline]
    pub fn relax<M: Mover + ?Sized>(self, mover: &M, submitted: Progress) -> Result<(), WaitError> {
        match self {
            WaitPolicy::Spin => {}
            WaitPolicy::Pause => hint::spin_loop(),
            WaitPolicy::Yield => thread::yield_now(),
            WaitPolicy::Umwait if !umwait::is_supported() => return Err(WaitError::NoUmwait),
            // What is not submitted has no record that will be written.
            WaitPolicy::Umwait if submitted == Progress::Pending => hint::spin_loop(),
            WaitPolicy::Umwait => match mover.oldest_record() {
                Some(record) => umwait::wait_for(record),
                None => return Err(WaitError::NoUmwait),
            },
        }
        Ok(())
    }
}

/// Submits what is enqueued and waits until at least one operation has ended: how many have, at
/// most as many as `into` can hold (at least 1).
///
/// # Errors
/// Nothing is in flight; the deadline has passed; a way to wait that this processor does not have.
///
/// ```
/// use dray::{Completion, CpuMover, Mover, Operation, WaitPolicy, wait};
///
/// let mut mover = CpuMover::new(4);
/// // SAFETY: a NOOP has no operands.
/// unsafe { mover.enqueue(&Operation::noop()) }?;
/// let mut ended = [Completion::default(); 4];
/// assert_eq!(wait(&mut mover, &mut ended, WaitPolicy::Pause, None)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn wait<M: Mover + ?Sized>(
    mover: &mut M,
    into: &mut [Completion],
    policy: WaitPolicy,
    deadline: Option<Duration>,
) -> Result<usize, WaitError> {
    if into.is_empty() {
        mover.submit();
        return Ok(0);
    }
    wait_with(mover, policy, deadline, |mover| mover.poll(into))
}

/// As [`wait`], with the `poll` that takes what has ended.
pub(crate) fn wait_with<M: Mover + ?Sized>(
    mover: &mut M,
    policy: WaitPolicy,
    deadline: Option<Duration>,
    mut poll: impl FnMut(&mut M) -> usize,
) -> Result<usize, WaitError> {
    if !policy.is_supported() {
        return Err(WaitError::NoUmwait);
    }
    if mover.in_flight() == 0 {
        return Err(WaitError::Nothing);
    }
    let start = deadline.map(|_| Instant::now());
    mover.submit();
    loop {
        let count = poll(mover);
        if count > 0 {
            return Ok(count);
        }
        if let (Some(deadline), Some(start)) = (deadline, start)
            && start.elapsed() >= deadline
        {
            return Err(WaitError::Deadline { after: deadline });
        }
        // What goes on after a page fault is enqueued by the poll.
        let progress = mover.submit();
        policy.relax(mover, progress)?;
    }
}

#[cfg(target_arch = "x86_64")]
mod umwait {
    //! UMONITOR and UMWAIT.

    use std::arch::x86_64::{__cpuid, __cpuid_count, _rdtsc};
    use std::ptr::with_exposed_provenance;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU8, Ordering};

    /// Cycles that one UMWAIT waits at most, so that deadlines are seen.
    const CYCLES: u64 = 20_000;

    /// CPUID leaf 7: WAITPKG.
    #[allow(unused_unsafe, reason = "safe functions in later versions of Rust")]
    pub(super) fn is_supported() -> bool {
        static SUPPORTED: OnceLock<bool> = OnceLock::new();
        *SUPPORTED.get_or_init(|| {
            // SAFETY: every x86-64 processor has CPUID.
            let highest = unsafe { __cpuid(0) }.eax;
            // SAFETY: as above.
            highest >= 7 && unsafe { __cpuid_count(7, 0) }.ecx >> 5 & 1 == 1
        })
    }

    /// Waits until the status byte at `record` is written, or something else wakes the core.
    pub(super) fn wait_for(record: u64) {
        let status: *const AtomicU8 = with_exposed_provenance(record as usize);
        // SAFETY: the instruction is there, and monitors the address without accessing it.
        unsafe {
            core::arch::asm!("umonitor {0}", in(reg) status, options(nostack, preserves_flags));
        }
        // SAFETY: a record of the mover, whose status byte is an atomic.
        let written = unsafe { (*status).load(Ordering::Acquire) } != 0;
        if written {
            return;
        }
        // SAFETY: the processor has a time stamp counter.
        let until = unsafe { _rdtsc() } + CYCLES;
        // SAFETY: the instruction is there. State 1 is C0.1.
        unsafe {
            core::arch::asm!(
                "umwait {0:e}",
                in(reg) 1_u32,
                in("eax") until as u32,
                in("edx") (until >> 32) as u32,
                options(nostack),
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod umwait {
    pub(super) fn is_supported() -> bool {
        false
    }

    pub(super) fn wait_for(_: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuMover, Operation};

    #[test]
    fn a_wait_for_nothing_ends() {
        let mut mover = CpuMover::new(2);
        let mut ended = [Completion::default()];
        let mut wait = |mover: &mut CpuMover| wait(mover, &mut ended, WaitPolicy::Pause, None);
        assert_eq!(wait(&mut mover), Err(WaitError::Nothing));
        for _ in 0..2 {
            // SAFETY: a NOOP has no operands.
            unsafe { mover.enqueue(&Operation::noop()) }.expect("a slot");
        }
        assert_eq!([wait(&mut mover), wait(&mut mover)], [Ok(1); 2]);
        assert_eq!(wait(&mut mover), Err(WaitError::Nothing));
    }

    /// Without the check UMONITOR is an undefined instruction: a signal.
    #[test]
    #[cfg(feature = "virtual")]
    fn umwait_on_a_record_is_an_error_where_the_processor_has_none() {
        use crate::virt::{Options, VirtualDevice};
        use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

        let queue = WorkQueueConfig::new(0, WorkQueueMode::Dedicated, 4);
        let config = DeviceConfig::sapphire_rapids(1, vec![queue]);
        let device = VirtualDevice::start(config, Options::default()).expect("a device");
        let mut mover = device.open(0, 4).expect("a queue");
        // SAFETY: a NOOP has no operands.
        unsafe { mover.enqueue(&Operation::noop()) }.expect("a slot");
        let submitted = mover.submit();
        assert!(mover.oldest_record().is_some());
        let relaxed = WaitPolicy::Umwait.relax(&mover, submitted);
        assert_eq!(relaxed.is_ok(), WaitPolicy::Umwait.is_supported());
    }
}
