//! Clocks that cost little.

use std::time::{Duration, Instant};

/// How long the time stamp counter is compared with the clock.
const COMPARED: Duration = Duration::from_millis(2);

/// The processor's time stamp counter.
#[inline]
pub fn cycles() -> u64 {
    // SAFETY: the processor has a time stamp counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Nanoseconds of a cycle, times 2^32.
pub(crate) fn measure_scale() -> u64 {
    let (since, begin) = (Instant::now(), cycles());
    while since.elapsed() < COMPARED {
        std::hint::spin_loop();
    }
    let (elapsed, passed) = (since.elapsed().as_nanos(), cycles().wrapping_sub(begin));
    u64::try_from((elapsed << 32) / u128::from(passed.max(1))).unwrap_or(u64::MAX)
}

/// Nanoseconds of so many cycles.
#[inline]
pub(crate) fn to_ns(cycles: u64, scale: u64) -> u64 {
    ((u128::from(cycles) * u128::from(scale)) >> 32) as u64
}

/// CPU time of the calling thread, by a system call; 0 where that is refused. The program's errno stays as it is.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: a place for a time; a system call of its own, for a signal handler may be here.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_clock_gettime,
            libc::CLOCK_THREAD_CPUTIME_ID,
            &raw mut time,
        )
    };
    // SAFETY: as above.
    unsafe { *errno = before };
    if answer != 0 {
        return 0;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
