//! Runs a list of operations and keeps how each ended.

use std::collections::HashMap;

use dray::{Application, Completion, Executor, Full, Mover, Next, Operation, Progress, Ticket};
use dray_spec::{CompletionRecord, Status};

/// Enqueues operations in order, as slots allow; polls so many completions at a time, once a step.
#[derive(Debug)]
pub struct Script {
    operations: Vec<Operation>,
    next: usize,
    under_way: HashMap<Ticket, usize>,
    /// By operation.
    pub records: Vec<Option<CompletionRecord>>,
    /// In the order of the completions.
    pub executors: Vec<Executor>,
    /// How often the mover was full.
    pub full: usize,
    look: usize,
}

impl Script {
    /// These operations.
    pub fn new(operations: Vec<Operation>) -> Script {
        Script {
            records: vec![None; operations.len()],
            executors: Vec::new(),
            operations,
            next: 0,
            under_way: HashMap::new(),
            full: 0,
            look: 64,
        }
    }

    /// So many completions are polled at a time.
    #[must_use]
    pub fn looking_at(self, look: usize) -> Script {
        Script { look, ..self }
    }

    /// How an operation ended, if it has.
    pub fn status(&self, operation: usize) -> Option<Status> {
        self.records[operation].map(|r| r.status())
    }

    fn collect<M: Mover>(&mut self, mover: &mut M) {
        let mut seen = vec![Completion::default(); self.look];
        let count = mover.poll(&mut seen);
        assert!(count <= seen.len());
        for completion in &seen[..count] {
            let n = self.under_way.remove(&completion.ticket);
            let n = n.expect("the ticket of an operation under way");
            assert_eq!(completion.user_data, n as u64 + 1, "another's user data");
            assert_eq!(self.records[n], None, "completed twice");
            self.records[n] = Some(completion.record);
            self.executors.push(completion.executor);
        }
    }
}

impl Application for Script {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.collect(mover);
        while self.next < self.operations.len() {
            let operation = self.operations[self.next].with_user_data(self.next as u64 + 1);
            // SAFETY: the ground outlives the run, and operations have areas of their own.
            match unsafe { mover.enqueue(&operation) } {
                Ok(ticket) => {
                    let before = self.under_way.insert(ticket, self.next);
                    assert_eq!(before, None, "a ticket given twice");
                    self.next += 1;
                }
                Err(Full { slots }) => {
                    assert_eq!(slots, mover.slots());
                    assert!(!self.under_way.is_empty(), "full of nothing");
                    self.full += 1;
                    break;
                }
            }
        }
        assert_eq!(mover.in_flight(), self.under_way.len());
        match mover.submit() {
            Progress::Pending => Next::Again,
            Progress::Done if self.next == self.operations.len() && self.under_way.is_empty() => {
                Next::Done
            }
            Progress::Done => Next::Wait,
        }
    }
}
