//! Operations on pages that are not present: software touches the page and resubmits the rest.

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_clock::Duration;
use dray_model::CoreTime;
use dray_platform::PAGE_BYTES;
use dray_spec::Status;

use dray_workload::{Buffers, Op};

use crate::workload::Workload;

/// Goes once over all buffers.
#[derive(Debug)]
pub(crate) struct Faulting {
    workload: Workload,
    buffers: Buffers,
    issued: u64,
    ended: u64,
    /// Per slot: buffer and bytes done so far.
    progress: Vec<(u64, u32)>,
    resubmit: Vec<(u64, u32)>,
    completions: Vec<Completion>,
    /// Time of the whole run.
    pub(crate) took: Duration,
    /// Operations that ended in another way than by success or page fault.
    pub(crate) failed: u64,
}

impl Faulting {
    /// One operation on each of the source ring's buffers.
    pub(crate) fn new(workload: Workload, buffers: Buffers, slots: usize) -> Faulting {
        Faulting {
            workload,
            buffers,
            issued: 0,
            ended: 0,
            progress: vec![(0, 0); slots],
            resubmit: Vec::with_capacity(slots),
            completions: vec![Completion::default(); slots],
            took: Duration::ZERO,
            failed: 0,
        }
    }

    /// The pages that the run touches: those of the destination of a write, or of the source.
    pub(crate) fn pages(&self) -> u64 {
        self.buffers.src.count * self.workload.bytes().div_ceil(PAGE_BYTES)
    }

    /// What is left of an operation after `done` bytes.
    fn rest(&self, buffer: u64, done: u32) -> Operation {
        let mut rest = self.workload;
        rest.size -= done;
        let mut buffers = self.buffers;
        let offset = u64::from(done);
        for ring in [&mut buffers.src, &mut buffers.dst, &mut buffers.dst2] {
            ring.base += offset;
        }
        rest.operations(buffers).at(buffer)
    }

    fn collect<M: Mover>(&mut self, mover: &mut M) {
        let count = mover.poll(&mut self.completions);
        for index in 0..count {
            let completion = self.completions[index];
            let slot = completion.ticket.0 as usize % self.progress.len();
            let (buffer, done) = self.progress[slot];
            let status = completion.status();
            if status.code() != Status::PAGE_FAULT.code() {
                self.failed += u64::from(!status.is_success());
                self.ended += 1;
                continue;
            }
            let write = matches!(self.workload.op, Op::Move | Op::Fill | Op::NtFill)
                && status.is_write_fault();
            // SAFETY: modelled memory; the address is one that the device has just reported.
            unsafe { mover.touch(completion.record.fault_address, write) };
            self.resubmit
                .push((buffer, done + completion.record.bytes_completed));
        }
    }
}

impl Application for Faulting {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.collect(mover);
        self.took = mover.core_time().since(dray_clock::Time::ZERO);
        if self.ended == self.buffers.src.count {
            return Next::Done;
        }
        loop {
            let (buffer, done) = match self.resubmit.last() {
                Some(rest) => *rest,
                None if self.issued < self.buffers.src.count => (self.issued, 0),
                None => break,
            };
            let next = self.rest(buffer, done);
            // SAFETY: modelled memory checks itself.
            let Ok(ticket) = (unsafe { mover.enqueue(&next) }) else {
                break;
            };
            if self.resubmit.pop().is_none() {
                self.issued += 1;
            }
            let slot = ticket.0 as usize % self.progress.len();
            self.progress[slot] = (buffer, done);
        }
        match mover.submit() {
            Progress::Pending => Next::Again,
            Progress::Done => Next::Wait,
        }
    }
}
