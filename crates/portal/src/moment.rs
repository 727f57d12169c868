//! When threads submit, for tools that watch programs.

use std::arch::x86_64::_rdtsc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_ring::Origin;

use crate::syscall::syscall;

/// Threads whose last submission is known; others that have the same place make it unknown.
const THREADS: usize = 256;
const CYCLES: u64 = u64::MAX >> 16;

/// By thread: when its last submission had returned, and above that 16 bits of its number.
static RETURNED: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];

pub(crate) fn cycles() -> u64 {
    // SAFETY: it reads a counter.
    unsafe { _rdtsc() }
}

/// CPU time of this thread; 0 if the kernel does not say it.
pub(crate) fn cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let clock = libc::CLOCK_THREAD_CPUTIME_ID as usize;
    let arguments = [clock, (&raw mut time).addr(), 0, 0, 0, 0];
    // SAFETY: there is room for what it writes.
    match unsafe { syscall(libc::SYS_clock_gettime, arguments) } {
        Ok(_) => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        Err(_) => 0,
    }
}

/// When the last submission of a thread had returned; 0 if that is not known.
pub(crate) fn returned(thread: u32) -> u64 {
    let word = RETURNED[thread as usize % THREADS].load(Ordering::Relaxed);
    match word >> 48 == u64::from(thread & 0xffff) {
        true => before(cycles(), word & CYCLES),
        false => 0,
    }
}

/// The last count up to `now` that ends in these 48 bits, which come round in a day or two.
fn before(now: u64, low: u64) -> u64 {
    now.wrapping_sub(now.wrapping_sub(low) & CYCLES)
}

/// A submission returns.
pub(crate) fn returns(origin: Option<Origin>) {
    if let Some(origin) = origin {
        let word = u64::from(origin.thread & 0xffff) << 48 | cycles() & CYCLES;
        RETURNED[origin.thread as usize % THREADS].store(word, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_found_again_when_its_bits_came_round() {
        for now in [5, CYCLES - 1, CYCLES + 1, (7 << 48) + 3, u64::MAX - 4] {
            for ago in [0, 1, 5, 1 << 40] {
                let then = now.saturating_sub(ago);
                assert_eq!(before(now, then & CYCLES), then, "{now}, {ago} ago");
            }
        }
    }
}
