//! Disruptions of a mover with operations in flight, and an application that continues after them.

use std::time::{Duration, Instant};

use dray::{Application, Completion, Executor, Mover, Next, Operation, Progress};
use dray_spec::Status;

/// Something that happens to the queue of a mover while operations are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disruption {
    /// The queue is disabled: what it has is carried out, and it is full for ever.
    Disabled,
    /// The queue is reset.
    QueueReset,
    /// The device is reset: the queue disappears with it.
    DeviceReset,
}

impl Disruption {
    /// All of them.
    pub const ALL: [Disruption; 3] = [
        Disruption::Disabled,
        Disruption::QueueReset,
        Disruption::DeviceReset,
    ];

    /// What happens, for people.
    pub fn name(self) -> &'static str {
        match self {
            Disruption::Disabled => "disabled with work in flight",
            Disruption::QueueReset => "reset with work in flight",
            Disruption::DeviceReset => "its device reset with work in flight",
        }
    }
}

/// Causes disruptions. False: this one cannot be.
pub type Disrupter = Box<dyn FnMut(Disruption) -> bool>;

/// Without a completion for so long, what is not handed over is taken back.
const WITHDRAW_AFTER: Duration = Duration::from_millis(20);
/// When nothing completes for so long, the mover has lost something. A wait of a test, no promise.
const LOST: Duration = Duration::from_secs(60);

/// Submits operations, disrupts the queue, submits as many again, and waits for all to end.
pub(crate) struct Disrupted<'a> {
    operations: Vec<Operation>,
    disrupter: &'a mut Disrupter,
    disruption: Disruption,
    next: usize,
    disrupted: bool,
    /// The door cannot do this.
    pub(crate) impossible: bool,
    /// By operation.
    pub(crate) ended: Vec<Option<Status>>,
    pub(crate) executors: Vec<Executor>,
    left: usize,
    last: Instant,
    /// Something that must not be.
    pub(crate) wrong: Option<String>,
}

impl<'a> Disrupted<'a> {
    pub(crate) fn new(
        operations: Vec<Operation>,
        disruption: Disruption,
        disrupter: &'a mut Disrupter,
    ) -> Disrupted<'a> {
        Disrupted {
            ended: vec![None; operations.len()],
            operations,
            disrupter,
            disruption,
            next: 0,
            disrupted: false,
            impossible: false,
            executors: Vec::new(),
            left: 0,
            last: Instant::now(),
            wrong: None,
        }
    }

    fn reap<M: Mover>(&mut self, mover: &mut M) {
        let mut seen = [Completion::default(); 7];
        let count = mover.poll(&mut seen);
        for completion in &seen[..count] {
            let n = completion.user_data as usize;
            match self.ended.get_mut(n) {
                Some(place @ None) => *place = Some(completion.status()),
                _ => self.wrong = Some(format!("operation {n} has ended twice, or never began")),
            }
            if completion.status() == Status::SUCCESS {
                self.executors.push(completion.executor);
            }
            self.left = self.left.saturating_sub(1);
            self.last = Instant::now();
        }
    }

    fn enqueue_to<M: Mover>(&mut self, mover: &mut M, end: usize) {
        while self.next < end {
            let operation = self.operations[self.next].with_user_data(self.next as u64);
            // SAFETY: the memory outlives the run, and each operation has its own.
            if unsafe { mover.enqueue(&operation) }.is_err() {
                break;
            }
            self.next += 1;
            self.left += 1;
        }
    }
}

impl Application for Disrupted<'_> {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.reap(mover);
        if self.wrong.is_some() {
            return Next::Done;
        }
        let half = self.operations.len() / 2;
        let end = match self.disrupted && !self.impossible {
            false => half,
            true => self.operations.len(),
        };
        self.enqueue_to(mover, end);
        let progress = mover.submit();
        if !self.disrupted && (self.next == half || self.left == mover.slots()) {
            self.disrupted = true;
            self.impossible = !(self.disrupter)(self.disruption);
            self.last = Instant::now();
            return Next::Again;
        }
        if self.disrupted && progress == Progress::Pending && self.last.elapsed() > WITHDRAW_AFTER {
            mover.withdraw();
        }
        if self.last.elapsed() > LOST {
            let left = self.left;
            self.wrong = Some(format!("{left} operations never end"));
        }
        match self.disrupted && self.next == end && self.left == 0 {
            true => Next::Done,
            false => Next::Again,
        }
    }
}
