//! Descriptors back to back, without waiting for completions.

use dray::{Application, Completion, Mover, Next, Progress};
use dray_clock::{Duration, Time};

use crate::Operations;
use crate::time::now;

/// Submits a number of descriptors in a row.
#[derive(Debug)]
pub struct Burst {
    operations: Operations,
    count: u64,
    issued: u64,
    started: Option<Time>,
    pending: bool,
    took: Duration,
    completions: [Completion; 64],
}

impl Burst {
    /// So many operations.
    pub fn new(operations: Operations, count: u64) -> Burst {
        Burst {
            operations,
            count,
            issued: 0,
            started: None,
            pending: false,
            took: Duration::ZERO,
            completions: [Completion::default(); 64],
        }
    }

    /// Core time of the whole burst.
    pub fn took(&self) -> Duration {
        self.took
    }
}

impl Application for Burst {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        let started = *self.started.get_or_insert(now(mover));
        loop {
            if self.pending && mover.submit() == Progress::Pending {
                return Next::Again;
            }
            self.pending = false;
            if self.issued == self.count {
                self.took = now(mover).since(started);
                return Next::Done;
            }
            let next = self.operations.at(self.issued);
            // SAFETY: the buffers belong to this burst alone and outlive it; operations in flight
            // that use the same ones write the same bytes.
            if unsafe { mover.enqueue(&next) }.is_err() {
                match mover.poll(&mut self.completions) {
                    0 => return Next::Wait,
                    _ => continue,
                }
            }
            self.issued += 1;
            self.pending = true;
        }
    }
}
