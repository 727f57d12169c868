//! Rounds of operations on a mover in real time, each timed: the samples are kept.

use std::time::{Duration, Instant};

use dray::hw::HwMover;
use dray::{Completion, Mover, Operation, Progress, WaitPolicy};
use dray_spec::Status;

use crate::{Exec, Operations};

/// Without a completion for so long, a queue is given up.
const STALLED: Duration = Duration::from_secs(10);

/// What is run.
#[derive(Debug, Clone)]
pub struct DeviceLoop {
    /// The operations, by number.
    pub operations: Operations,
    /// Whether a round waits for the one before it.
    pub exec: Exec,
    /// Operations of a round, batch members counted one by one: a multiple of `batch`.
    pub round: u64,
    /// Descriptors in flight at most, batches counted once.
    pub queue: u32,
    /// Operations in a batch; 1: none.
    pub batch: u32,
    /// What the core does between two looks at its completions.
    pub wait: WaitPolicy,
}

/// What rounds took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rounds {
    /// From the end of the round before it, or its own start, to the end of each.
    pub samples: Vec<Duration>,
    /// Time that the core spent preparing and submitting, clock reading included.
    pub busy: Duration,
    /// The part of it in which descriptors were prepared.
    pub preparing: Duration,
    /// Operations that did not succeed.
    pub failed: u64,
    /// Status of the first of them.
    pub first_failure: Status,
    /// Operations that were in flight when nothing had completed for ten seconds: the device may still
    /// access their buffers and records.
    pub stalled: u64,
}

impl Rounds {
    /// All samples together.
    pub fn elapsed(&self) -> Duration {
        self.samples.iter().sum()
    }
}

impl DeviceLoop {
    /// Runs so many rounds, or fewer if `until` says so after one; `before` is called before each round of
    /// [`Exec::Sync`], unmeasured. Ends early where nothing completes any more: [`Rounds::stalled`].
    ///
    /// # Safety
    /// The operations' buffers must belong to the caller, outlive the call, and hold the same bytes
    /// wherever several operations in flight use the same.
    pub unsafe fn run(
        &self,
        mover: &mut HwMover,
        rounds: u64,
        before: &mut dyn FnMut(),
        until: &mut dyn FnMut(Duration) -> bool,
    ) -> Rounds {
        // SAFETY: the caller's promise is the same.
        unsafe { self.run_on(mover, rounds, before, until) }
    }

    /// The same on any mover. Not public: what is compiled in this crate is optimised, callers are not.
    ///
    /// # Safety
    /// As [`DeviceLoop::run`].
    pub(crate) unsafe fn run_on<M: Mover>(
        &self,
        mover: &mut M,
        rounds: u64,
        before: &mut dyn FnMut(),
        until: &mut dyn FnMut(Duration) -> bool,
    ) -> Rounds {
        let batch = u64::from(self.batch.max(1));
        let in_flight = u64::from(self.queue.max(1)) * batch;
        let mut members: Vec<Operation> = Vec::with_capacity(batch as usize);
        let mut seen = [Completion::default(); 64];
        let mut found = Rounds::default();
        let total = rounds.saturating_mul(self.round);
        let (mut issued, mut ended) = (0_u64, 0_u64);
        let mut last = self.round;
        let mut stopping = false;
        before();
        let mut begin = Instant::now();
        let mut elapsed = Duration::ZERO;
        // When the core first saw that nothing had completed since.
        let mut waiting: Option<Instant> = None;
        while ended < issued || !stopping && issued < total {
            let preparing = Instant::now();
            let mut some = false;
            let limit = match self.exec {
                Exec::Sync => (ended / self.round + 1) * self.round,
                Exec::Async => total,
            };
            while !stopping && issued < limit && issued - ended + batch <= in_flight {
                let enqueued = match batch {
                    1 => {
                        let next = self.operations.at(issued);
                        // SAFETY: the caller's promise is the same.
                        unsafe { mover.enqueue(&next) }.is_ok()
                    }
                    _ => {
                        members.clear();
                        members.extend((issued..issued + batch).map(|n| self.operations.at(n)));
                        // SAFETY: the caller's promise is the same.
                        unsafe { mover.enqueue_batch(&members) }.is_ok()
                    }
                };
                if !enqueued {
                    break;
                }
                issued += batch;
                some = true;
            }
            if some {
                found.preparing += preparing.elapsed();
            }
            let submitted = mover.submit();
            let count = mover.poll(&mut seen);
            // A look that finds a record fetches its line; one that finds nothing is part of the wait.
            if some || submitted == Progress::Pending || count > 0 {
                found.busy += preparing.elapsed();
            }
            for completion in &seen[..count] {
                if completion.status() != Status::SUCCESS {
                    if found.failed == 0 {
                        found.first_failure = completion.status();
                    }
                    found.failed += 1;
                }
            }
            ended += count as u64;
            if ended >= last {
                let now = Instant::now();
                // Several rounds may have ended at once.
                let ended_rounds = (ended - last) / self.round + 1;
                let each = (now - begin) / ended_rounds as u32;
                for _ in 0..ended_rounds {
                    found.samples.push(each);
                }
                elapsed += now - begin;
                last += ended_rounds * self.round;
                stopping |= until(elapsed) || found.failed > 0;
                begin = now;
                if self.exec == Exec::Sync && !stopping && ended < total {
                    before();
                    begin = Instant::now();
                }
            }
            if count > 0 {
                waiting = None;
                continue;
            }
            if waiting.get_or_insert(preparing).elapsed() >= STALLED {
                found.stalled = issued - ended;
                return found;
            }
            if self.wait.relax(mover, submitted).is_err() {
                // No record to wait for: nothing is in flight yet.
                std::hint::spin_loop();
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use dray::CpuMover;

    use super::*;
    use crate::{Buffers, Op, Ring, Shape};

    #[test]
    fn rounds_are_timed_one_by_one() {
        let source = vec![7_u8; 4096];
        let mut target = vec![0_u8; 4096];
        let ring = |base: u64| Ring {
            base,
            stride: 64,
            count: 64,
        };
        let buffers = Buffers {
            src: ring(source.as_ptr().expose_provenance() as u64),
            dst: ring(target.as_mut_ptr().expose_provenance() as u64),
            dst2: ring(0),
        };
        for exec in [Exec::Sync, Exec::Async] {
            for batch in [1, 4] {
                let work = DeviceLoop {
                    operations: Operations::new(Shape::new(Op::Move, 64), buffers),
                    exec,
                    round: 64,
                    queue: 8,
                    batch,
                    wait: WaitPolicy::Pause,
                };
                let mut mover = CpuMover::new(64);
                let mut placed = 0;
                // SAFETY: both buffers live to the end of the test.
                let found =
                    unsafe { work.run_on(&mut mover, 5, &mut || placed += 1, &mut |_| false) };
                assert_eq!(
                    (found.samples.len(), found.failed),
                    (5, 0),
                    "{exec:?} {batch}"
                );
                assert_eq!(placed, if exec == Exec::Sync { 5 } else { 1 });
                // SAFETY: as above.
                let found = unsafe { work.run_on(&mut mover, u64::MAX, &mut || {}, &mut |_| true) };
                assert_eq!(found.samples.len(), 1);
            }
        }
        assert_eq!(source, target);
    }
}
