//! Submits a few operations at once and notes when the core sees each of them end.

use dray::{Application, Completion, Mover, Next, Operation, Progress, Ticket};
use dray_clock::Time;
use dray_model::CoreTime;
use dray_spec::Status;

/// The application. It never looks before it has submitted all.
pub(crate) struct Once {
    operations: Vec<Operation>,
    issued: bool,
    /// The core's time after the last submission.
    pub(crate) submitted: Time,
    /// In the order in which they were seen.
    pub(crate) seen: Vec<(Ticket, Status, Time)>,
}

impl Once {
    pub(crate) fn new(operations: Vec<Operation>) -> Once {
        Once {
            operations,
            issued: false,
            submitted: Time::ZERO,
            seen: Vec::new(),
        }
    }

    pub(crate) fn times(&self) -> Vec<Time> {
        self.seen.iter().map(|s| s.2).collect()
    }
}

impl Application for Once {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        if !self.issued {
            self.issued = true;
            for operation in &self.operations {
                // SAFETY: modelled memory checks itself.
                unsafe { mover.enqueue(operation) }.expect("room for all");
            }
        }
        if mover.submit() == Progress::Pending {
            return Next::Again;
        }
        if self.submitted == Time::ZERO {
            self.submitted = mover.core_time();
            return Next::Wait;
        }
        let mut completions = [Completion::default(); 64];
        let count = mover.poll(&mut completions);
        for completion in &completions[..count] {
            let seen = (completion.ticket, completion.status(), mover.core_time());
            self.seen.push(seen);
        }
        match self.seen.len() == self.operations.len() {
            true => Next::Done,
            false => Next::Wait,
        }
    }
}
