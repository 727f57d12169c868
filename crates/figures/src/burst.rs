//! Descriptors back to back, nobody waiting for them.

use dray::{Application, Mover, Next};
use dray_clock::{Duration, Time};
use dray_model::CoreTime;

use crate::stream::{Buffers, operation};
use crate::workload::Workload;

/// Submits a number of descriptors in a row.
#[derive(Debug)]
pub(crate) struct Burst {
    workload: Workload,
    buffers: Buffers,
    /// Core time of the whole burst.
    pub(crate) took: Duration,
}

impl Burst {
    /// `workload.count` descriptors.
    pub(crate) fn new(workload: Workload, buffers: Buffers) -> Burst {
        Burst {
            workload,
            buffers,
            took: Duration::ZERO,
        }
    }
}

impl Application for Burst {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        let start: Time = mover.core_time();
        for index in 0..u64::from(self.workload.count) {
            let next = operation(&self.workload, &self.buffers, index);
            // SAFETY: modelled memory checks itself, and nothing else runs on it.
            if unsafe { mover.enqueue(&next) }.is_err() {
                break;
            }
            mover.submit();
        }
        self.took = mover.core_time().since(start);
        Next::Done
    }
}
