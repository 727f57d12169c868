//! Batches: which members are executed, in which order, and what a fence holds back.

use dray::{Application, Completion, Executor, Mover, Next, Operation, Progress};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use super::door::PAGE;

/// Runs batches, one after the other.
pub(crate) struct Batches {
    batches: Vec<Vec<Operation>>,
    next: usize,
    waiting: usize,
    /// By batch and number in it.
    pub(crate) records: Vec<Vec<Option<CompletionRecord>>>,
    pub(crate) executors: Vec<Executor>,
    /// A completion that belongs to no operation, or comes twice.
    pub(crate) stray: bool,
}

impl Batches {
    pub(crate) fn new(batches: Vec<Vec<Operation>>) -> Batches {
        Batches {
            records: batches.iter().map(|b| vec![None; b.len()]).collect(),
            batches,
            next: 0,
            waiting: 0,
            executors: Vec::new(),
            stray: false,
        }
    }

    fn reap<M: Mover>(&mut self, mover: &mut M) {
        let mut seen = [Completion::default(); 3];
        let count = mover.poll(&mut seen);
        for completion in &seen[..count] {
            let (batch, member) = (completion.user_data >> 32, completion.user_data as u32);
            let place = self.records.get_mut(batch as usize);
            match place.and_then(|records| records.get_mut(member as usize)) {
                Some(place @ None) => {
                    *place = Some(completion.record);
                    self.waiting -= 1;
                }
                _ => self.stray = true,
            }
            self.executors.push(completion.executor);
        }
    }
}

impl Application for Batches {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.reap(mover);
        while let Some(batch) = self.batches.get(self.next).filter(|_| self.waiting == 0) {
            let operations: Vec<Operation> = (0..)
                .zip(batch)
                .map(|(n, operation)| operation.with_user_data((self.next as u64) << 32 | n))
                .collect();
            // SAFETY: the memory outlives the run, and one batch is in flight at a time.
            if unsafe { mover.enqueue_batch(&operations) }.is_err() {
                return Next::Again;
            }
            self.waiting = operations.len();
            self.next += 1;
        }
        self.stray |= mover.in_flight() != self.waiting;
        match mover.submit() {
            Progress::Pending => Next::Again,
            Progress::Done if self.waiting == 0 && self.next == self.batches.len() => Next::Done,
            Progress::Done => Next::Wait,
        }
    }
}

/// What each of [`batches`] is about.
pub(crate) const NAMES: [&str; 4] = [
    "two copies",
    "three copies in the order of their fences",
    "a member fails: what is behind the fence is abandoned",
    "a member fails: what no fence holds back goes on",
];

/// Batches on memory of 8 pages at `base`: page 0 has noise, the others are 0. With each operation
/// the status that it must have.
pub(crate) fn batches(base: u64) -> Vec<Vec<(Operation, Status)>> {
    let page = |n: u64| base + n * PAGE;
    let copy = |from, to| Operation::memmove(page(from), page(to), PAGE as u32);
    // Noise is not all 0: the comparison finds something that it was to find nothing.
    let unexpected = Descriptor::compare_pattern(page(0), 0, 64)
        .with_flags(Flags::CHECK_RESULT)
        .with_expected_result(0);
    let unexpected = Operation::try_from(unexpected).expect("a comparison is an operation");
    let done = Status::SUCCESS;
    let held_back = Status(0);
    vec![
        // No order is promised, and none is needed.
        vec![(copy(0, 1), done), (copy(0, 2), done)],
        // Each copy needs the one before it.
        vec![
            (copy(1, 3), done),
            (copy(3, 4).with_fence(), done),
            (copy(4, 5).with_fence(), done),
        ],
        // Behind a fence that meets a failure nothing is executed.
        vec![
            (Operation::fill(0x11, page(6), 64), done),
            (unexpected, Status::SUCCESS_PREDICATE),
            (Operation::fill(0x22, page(7), 64).with_fence(), held_back),
            (Operation::fill(0x33, page(7), 64), held_back),
        ],
        // Without a fence the others go on.
        vec![
            (unexpected, Status::SUCCESS_PREDICATE),
            (Operation::fill(0x44, page(6) + 128, 64), done),
        ],
    ]
}

/// What the memory must hold afterwards.
pub(crate) fn expected(noise: &[u8]) -> Vec<u8> {
    let page = PAGE as usize;
    let mut bytes = noise.to_vec();
    for n in 1..6 {
        bytes.copy_within(0..page, n * page);
    }
    let fill = |bytes: &mut [u8], pattern: u64| {
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&pattern.to_le_bytes());
        }
    };
    fill(&mut bytes[6 * page..6 * page + 64], 0x11);
    fill(&mut bytes[6 * page + 128..6 * page + 192], 0x44);
    bytes
}
