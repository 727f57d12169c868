//! Loops on threads that load the devices at the same time.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dray::Mover;
use dray::hw::HwMover;

use crate::in_turn::InTurn;
use crate::{DeviceLoop, Rounds, pin};

/// Rounds before the first that counts.
const WARM_UP: u64 = 8;
/// Least and most samples of a thread, and the time after which it needs no more.
const SAMPLES: [u64; 2] = [27, 4000];
const RUN: Duration = Duration::from_millis(40);
/// Looks at the other threads before the core is left to them.
const SPINS: u32 = 1000;

/// A thread, what it submits with and what it submits.
#[derive(Debug)]
pub struct LoopOnDevice<'a> {
    /// CPU that the thread is kept on.
    pub cpu: u16,
    /// Queues; with several, each operation goes to the next.
    pub movers: &'a mut [HwMover],
    /// What is run.
    pub work: DeviceLoop,
}

/// What a thread has measured.
#[derive(Debug)]
pub struct MeasuredLoop {
    /// All rounds.
    pub rounds: Rounds,
    /// Samples of the time in which all threads were at work, in nanoseconds.
    pub samples: Vec<u64>,
    /// The thread was kept on its CPU.
    pub pinned: bool,
}

/// Runs all at the same time, until each has enough samples. `in_step`: each begins a round when all have
/// ended the one before.
///
/// # Safety
/// As [`DeviceLoop::run`], for all loops together.
pub unsafe fn run_on_devices(work: Vec<LoopOnDevice<'_>>, in_step: bool) -> Vec<MeasuredLoop> {
    let together = Together {
        threads: work.len(),
        ..Together::default()
    };
    let run = |mut work: LoopOnDevice<'_>| {
        let guard = EndsOthers(&together);
        let pinned = pin(work.cpu);
        let found = match work.movers {
            // SAFETY: the caller's promise is the same.
            [mover] => unsafe { measure(&work.work, mover, &together, in_step) },
            // SAFETY: as above.
            ref mut many => unsafe {
                measure(&work.work, &mut InTurn::over(many), &together, in_step)
            },
        };
        let (rounds, samples) = found;
        if rounds.failed + rounds.stalled == 0 {
            std::mem::forget(guard);
        }
        MeasuredLoop {
            rounds,
            samples,
            pinned,
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = work
            .into_iter()
            .map(|work| scope.spawn(|| run(work)))
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(measured) => measured,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

/// One loop: what it measured, and its samples of the time in which all were at work.
///
/// # Safety
/// As [`DeviceLoop::run`].
unsafe fn measure<M: Mover>(
    work: &DeviceLoop,
    mover: &mut M,
    together: &Together,
    in_step: bool,
) -> (Rounds, Vec<u64>) {
    // SAFETY: the caller's promise is the same.
    let warm = unsafe { work.run_on(mover, WARM_UP, &mut || {}, &mut |_| false) };
    if warm.failed + warm.stalled > 0 {
        return (warm, Vec::new());
    }
    together.meet(|| false);
    let (mut taken, mut has_enough) = (0, false);
    // Length of the time in which all were at work, once this thread has seen its end.
    let mut end = None;
    let mut until = |elapsed: Duration| {
        taken += 1;
        let enough = taken >= SAMPLES[0] && (elapsed >= RUN || taken >= SAMPLES[1]);
        let over = match in_step {
            true => together.meet(|| enough),
            false => {
                if enough && !has_enough {
                    has_enough = true;
                    together.enough.fetch_add(1, Ordering::Relaxed);
                }
                together.is_over()
            }
        };
        if over && end.is_none() {
            end = Some(elapsed);
        }
        over
    };
    // SAFETY: as above.
    let rounds = unsafe { work.run_on(mover, u64::MAX, &mut || {}, &mut until) };
    let mut sum = Duration::ZERO;
    let samples = rounds.samples.iter().take_while(|sample| {
        sum += **sample;
        end.is_none_or(|end| sum <= end)
    });
    let samples = samples.map(|sample| sample.as_nanos() as u64).collect();
    (rounds, samples)
}

/// What the threads know of each other.
#[derive(Debug, Default)]
struct Together {
    threads: usize,
    /// Threads that have enough samples.
    enough: AtomicUsize,
    /// Threads that wait for the others, and how often all have met.
    arrived: AtomicUsize,
    meetings: AtomicUsize,
    /// What the last to arrive has decided.
    decided: AtomicBool,
    /// One of them cannot go on.
    ended: AtomicBool,
}

impl Together {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.enough.load(Ordering::Relaxed) >= self.threads
    }

    /// Waits until all threads are here. The last one decides for all whether this is the end.
    fn meet(&self, decide: impl FnOnce() -> bool) -> bool {
        let meeting = self.meetings.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.decided.store(decide(), Ordering::Relaxed);
            self.arrived.store(0, Ordering::Relaxed);
            self.meetings.store(meeting + 1, Ordering::Release);
        }
        let mut spins = 0;
        while self.meetings.load(Ordering::Acquire) == meeting {
            if self.ended.load(Ordering::Relaxed) {
                return true;
            }
            spins += 1;
            match spins > SPINS {
                true => thread::yield_now(),
                false => hint::spin_loop(),
            }
        }
        self.decided.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }
}

/// Dropped where a thread cannot go on: no other waits for it.
struct EndsOthers<'a>(&'a Together);

impl Drop for EndsOthers<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_barrier_end_after_the_same_round() {
        let together = Together {
            threads: 3,
            ..Together::default()
        };
        let rounds = |limit: u32| {
            let mut rounds = 1;
            while !together.meet(|| rounds >= limit) {
                rounds += 1;
            }
            rounds
        };
        let found = thread::scope(|scope| {
            let threads = [7, 7, 7].map(|limit| scope.spawn(move || rounds(limit)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(found, [7; 3]);
    }

    #[test]
    fn a_failed_thread_ends_the_wait_of_the_others() {
        let together = Together {
            threads: 2,
            ..Together::default()
        };
        thread::scope(|scope| {
            let waiting = scope.spawn(|| together.meet(|| false));
            drop(EndsOthers(&together));
            assert!(waiting.join().unwrap());
        });
        assert!(together.is_over());
    }
}
