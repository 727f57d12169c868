//! The time that a thread had a CPU, and what reading the clock costs.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What reading the clock twice takes: the least of many, so that nothing is taken off that
/// belongs to an operation.
pub fn clock_cost() -> Duration {
    let pair = || {
        let start = Instant::now();
        start.elapsed()
    };
    (0..256).map(|_| pair()).min().unwrap_or_default()
}
