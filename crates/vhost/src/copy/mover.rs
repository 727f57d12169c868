//! The movers of the library `dray` as copy engines.

use dray::{Completion, Mover, Operation};

use super::engine::{Copy, CopyEngine, Done};

/// Ends polled at once.
const POLL: usize = 64;

/// Copies over any mover of the library `dray`.
#[derive(Debug)]
pub struct MoverCopier<M> {
    mover: M,
    executor: &'static str,
    slots: usize,
    in_flight: usize,
    max_batch: usize,
    operations: Vec<Operation>,
    ended: [Completion; POLL],
}

impl<M: Mover> MoverCopier<M> {
    /// Over a mover without other users; `executor` is its name in statistics.
    pub fn new(mover: M, executor: &'static str) -> MoverCopier<M> {
        MoverCopier {
            slots: mover.slots(),
            max_batch: mover.capabilities().max_batch.max(1) as usize,
            operations: Vec::with_capacity(POLL),
            mover,
            executor,
            in_flight: 0,
            ended: [Completion::default(); POLL],
        }
    }
}

fn operation(copy: &Copy) -> Operation {
    Operation::memmove(copy.source, copy.destination, copy.len).with_user_data(copy.token)
}

impl<M: Mover + Send> CopyEngine for MoverCopier<M> {
    fn executor(&self) -> &'static str {
        self.executor
    }

    fn room(&self) -> usize {
        self.slots - self.in_flight
    }

    unsafe fn submit(&mut self, copies: &[Copy]) {
        for burst in copies.chunks(self.max_batch) {
            self.operations.clear();
            self.operations.extend(burst.iter().map(operation));
            // SAFETY: the caller's promise is the same.
            if burst.len() > 1 && unsafe { self.mover.enqueue_batch(&self.operations) }.is_ok() {
                self.in_flight += burst.len();
                continue;
            }
            // A batch needs neighbouring slots, which there are not always.
            for operation in &self.operations {
                // SAFETY: the caller's promise is the same.
                let taken = unsafe { self.mover.enqueue(operation) };
                debug_assert!(taken.is_ok(), "callers ask for room first");
                self.in_flight += usize::from(taken.is_ok());
            }
        }
        // What a full queue leaves behind is handed over by the next poll.
        let _ = self.mover.submit();
    }

    fn poll(&mut self, into: &mut [Done]) -> usize {
        if self.in_flight == 0 {
            return 0;
        }
        let _ = self.mover.submit();
        let most = into.len().min(POLL);
        let count = self.mover.poll(&mut self.ended[..most]);
        for (done, completion) in into.iter_mut().zip(&self.ended[..count]) {
            *done = Done {
                token: completion.user_data,
                status: completion.status(),
            };
        }
        self.in_flight -= count;
        count
    }
}
