//! A mover whose queue and device do what a test says, one descriptor after the other.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use dray::{
    BatchError, Capabilities, Completion, CpuMover, Executor, Full, Mover, Operation, Outcome,
    Progress, QueueLost, Ticket, Timestamp,
};
use dray_spec::CompletionRecord;

/// What the queue and its device do at each submission.
type Script = Box<dyn FnMut(&Manual)>;

struct State {
    slots: usize,
    /// Descriptors that the queue accepts at once.
    room: usize,
    /// Every `enqueue` is answered with `Full`.
    is_full: bool,
    executor: Executor,
    max_transfer_bytes: u64,
    enqueued: usize,
    /// Members of each batch.
    batches: Vec<usize>,
    queued: VecDeque<Operation>,
    in_flight: VecDeque<Operation>,
    ended: VecDeque<Outcome>,
    lost: Option<QueueLost>,
    script: Option<Script>,
}

/// Clones are the same mover: one is used as such, another says what it does.
#[derive(Clone)]
pub(crate) struct Manual(Rc<RefCell<State>>);

impl Manual {
    /// With a queue of `room` entries.
    pub(crate) fn new(slots: usize, room: usize) -> Manual {
        Manual(Rc::new(RefCell::new(State {
            slots,
            room,
            is_full: false,
            executor: Executor::Virtual,
            max_transfer_bytes: 1 << 30,
            enqueued: 0,
            batches: Vec::new(),
            queued: VecDeque::new(),
            in_flight: VecDeque::new(),
            ended: VecDeque::new(),
            lost: None,
            script: None,
        })))
    }

    pub(crate) fn with_max_transfer(self, bytes: u64) -> Manual {
        self.0.borrow_mut().max_transfer_bytes = bytes;
        self
    }

    pub(crate) fn with_executor(self, executor: Executor) -> Manual {
        self.set_executor(executor);
        self
    }

    /// Who executes what ends from now on.
    pub(crate) fn set_executor(&self, executor: Executor) {
        self.0.borrow_mut().executor = executor;
    }

    /// What it does at the end of each submission.
    pub(crate) fn with_script(self, script: impl FnMut(&Manual) + 'static) -> Manual {
        self.0.borrow_mut().script = Some(Box::new(script));
        self
    }

    /// The queue accepts nothing more. What the device has, it still ends.
    pub(crate) fn lose(&self) {
        let state = &mut *self.0.borrow_mut();
        state.lost = Some(QueueLost::Disabled);
        state.room = 0;
    }

    /// Whether `enqueue` is refused though slots are free.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.0.borrow_mut().is_full = is_full;
    }

    /// Operations that were enqueued so far.
    pub(crate) fn enqueued(&self) -> usize {
        self.0.borrow().enqueued
    }

    /// How many operations each batch so far had.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.0.borrow().batches.clone()
    }

    /// What the device has, in the order of its acceptance.
    pub(crate) fn in_flight(&self) -> Vec<Operation> {
        self.0.borrow().in_flight.iter().copied().collect()
    }

    /// The device ends the oldest that it has with this record.
    pub(crate) fn end(&self, record: CompletionRecord) {
        let state = &mut *self.0.borrow_mut();
        let operation = state.in_flight.pop_front().expect("one in flight");
        state.end(&operation, record, false);
    }

    /// The device executes all that it has: how many.
    pub(crate) fn execute_all(&self) -> usize {
        let operations = self.in_flight();
        for operation in &operations {
            self.end(execute(operation));
        }
        operations.len()
    }
}

/// What the core says of an operation.
pub(crate) fn execute(operation: &Operation) -> CompletionRecord {
    let mut core = CpuMover::new(1);
    let mut ended = [Completion::default()];
    // SAFETY: the test's memory outlives the operation.
    unsafe { core.enqueue(operation) }.expect("a slot");
    core.submit();
    assert_eq!(core.poll(&mut ended), 1);
    ended[0].record
}

impl State {
    fn end(&mut self, operation: &Operation, record: CompletionRecord, withdrawn: bool) {
        let mut outcome = Outcome::default();
        outcome.completion = Completion {
            ticket: Ticket(0),
            user_data: operation.user_data(),
            record,
            executor: self.executor,
        };
        outcome.withdrawn = withdrawn;
        self.ended.push_back(outcome);
    }

    fn taken(&self) -> usize {
        self.queued.len() + self.in_flight.len() + self.ended.len()
    }
}

// SAFETY: an operation ends when the test says so, and nothing accesses its memory any more.
unsafe impl Mover for Manual {
    fn slots(&self) -> usize {
        self.0.borrow().slots
    }

    fn in_flight(&self) -> usize {
        self.0.borrow().taken()
    }

    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        let state = &mut *self.0.borrow_mut();
        if state.is_full || state.taken() >= state.slots {
            return Err(Full { slots: state.slots });
        }
        state.queued.push_back(*operation);
        state.enqueued += 1;
        Ok(Ticket(0))
    }

    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        let (slots, taken) = (self.slots(), self.0.borrow().taken());
        if taken + operations.len() > slots {
            return Err(Full { slots }.into());
        }
        for operation in operations {
            // SAFETY: the caller's promise is the same.
            unsafe { self.enqueue(operation) }?;
        }
        self.0.borrow_mut().batches.push(operations.len());
        Ok(Ticket(0))
    }

    fn submit(&mut self) -> Progress {
        let mut state = self.0.borrow_mut();
        while state.in_flight.len() < state.room
            && let Some(operation) = state.queued.pop_front()
        {
            state.in_flight.push_back(operation);
        }
        let progress = match state.queued.is_empty() {
            true => Progress::Done,
            false => Progress::Pending,
        };
        let script = state.script.take();
        drop(state);
        if let Some(mut script) = script {
            script(self);
            self.0.borrow_mut().script = Some(script);
        }
        progress
    }

    fn poll(&mut self, into: &mut [Completion]) -> usize {
        let mut outcomes = vec![Outcome::default(); into.len()];
        let count = self.poll_outcomes(&mut outcomes);
        for (place, outcome) in into.iter_mut().zip(&outcomes[..count]) {
            *place = outcome.completion;
        }
        count
    }

    fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        let ended = &mut self.0.borrow_mut().ended;
        let count = into.len().min(ended.len());
        for (place, outcome) in into.iter_mut().zip(ended.drain(..count)) {
            *place = outcome;
        }
        count
    }

    fn lost(&self) -> Option<QueueLost> {
        self.0.borrow().lost
    }

    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_transfer_bytes: self.0.borrow().max_transfer_bytes,
            // More than it has slots: who uses it counts them.
            max_batch: 64,
            block_on_fault: true,
            ..Capabilities::software()
        }
    }

    fn executor(&self) -> Option<Executor> {
        Some(self.0.borrow().executor)
    }

    fn withdraw(&mut self) -> usize {
        let state = &mut *self.0.borrow_mut();
        let queued = std::mem::take(&mut state.queued);
        for operation in &queued {
            state.end(operation, CompletionRecord::default(), true);
        }
        queued.len()
    }

    unsafe fn touch(&mut self, _: u64, _: bool) {}
}
