//! Rounds of operations on the calling core, through the same interface as a device.

use std::time::{Duration, Instant};

use dray::{Completion, CpuMover, Mover, Progress};
use dray_spec::Status;

use crate::Operations;

/// A core, and how far it is in the operations.
#[derive(Debug)]
pub struct CoreRounds {
    mover: CpuMover,
    completions: Vec<Completion>,
    index: u64,
    failed: u64,
}

impl CoreRounds {
    /// So many operations are handed over at once.
    pub fn new(slots: usize) -> CoreRounds {
        CoreRounds {
            mover: CpuMover::new(slots),
            completions: vec![Completion::default(); slots],
            index: 0,
            failed: 0,
        }
    }

    /// Operations that did not succeed.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Runs so many rounds, each of as many operations as there are slots; how long they took.
    ///
    /// # Safety
    /// The operations' buffers must belong to the caller, outlive the call, and hold the same bytes
    /// wherever several operations use the same.
    pub unsafe fn rounds(&mut self, operations: &Operations, rounds: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..rounds {
            for _ in 0..self.completions.len() {
                let next = operations.at(self.index);
                // SAFETY: the caller's promise is the same.
                let taken = unsafe { self.mover.enqueue(&next) };
                self.failed += u64::from(taken.is_err());
                self.index += 1;
            }
            while self.mover.submit() == Progress::Pending {}
            let count = self.mover.poll(&mut self.completions);
            let bad = |c: &&Completion| c.status() != Status::SUCCESS;
            self.failed += self.completions[..count].iter().filter(bad).count() as u64;
        }
        start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffers, Op, Ring, Shape};

    #[test]
    fn every_operation_of_a_round_is_carried_out() {
        let source: Vec<u8> = (0..4096).map(|n| n as u8).collect();
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
        let operations = Operations::new(Shape::new(Op::Move, 64), buffers);
        let mut core = CoreRounds::new(16);
        // SAFETY: both buffers live to the end of the test.
        unsafe { core.rounds(&operations, 3) };
        assert_eq!((&target[..48 * 64], core.failed()), (&source[..48 * 64], 0));
        assert!(target[48 * 64..].iter().all(|byte| *byte == 0));
    }
}
