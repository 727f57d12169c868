//! What has ended on a queue: in flight, withdrawn, or given up with its device.

use dray_spec::{CompletionRecord, Status};

use super::unit::Ended;
use super::{Port, Queue};
use crate::{Completion, Outcome, Ticket};

impl<P: Port> Queue<P> {
    /// The first of the units in flight that has ended.
    #[inline]
    fn find_ended(&mut self) -> Option<Ended> {
        for position in 0..self.in_flight.len().min(self.window) {
            let unit = self.in_flight[position];
            if let Some(record) = self.memory.read(self.record_of(unit)) {
                self.in_flight.remove(position);
                self.port.ended();
                return Some(Ended::new(unit, record));
            }
        }
        None
    }

    /// The device has ended, and what it has not reported it never will.
    #[cold]
    fn give_up(&mut self) -> Option<Ended> {
        if let Some(ended) = self.find_ended() {
            return Some(ended);
        }
        if let Some(unit) = self.in_flight.pop_front() {
            self.port.ended();
            let record = self.memory.read(self.record_of(unit)).unwrap_or_default();
            return Some(Ended::new(unit, record));
        }
        let unit = self.queued.pop_front()?;
        Some(Ended {
            accepted: self.has_executed_some(unit),
            ..Ended::new(unit, CompletionRecord::default())
        })
    }

    #[inline]
    pub(crate) fn poll(&mut self, into: &mut [Completion]) -> usize {
        self.poll_with(into, |place, completion, _, _| *place = completion)
    }

    /// As `poll`, with who did what.
    pub(crate) fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        self.poll_with(into, |place, completion, ended, port| {
            // A member behind a fence has no record though its batch has one.
            let missing =
                completion.record.status == 0 && ended.record.status == 0 && !ended.withdrawn;
            *place = Outcome {
                retries: ended.unit.retries,
                resumed_faults: ended.unit.resumed,
                queue_lost: if missing { port.lost() } else { None },
                stripes: ended.accepted.into(),
                withdrawn: ended.withdrawn,
                accepted: ended.accepted,
                ..Outcome::of_one_executor(completion)
            };
        })
    }

    /// Puts what has ended into places, as many as there are.
    #[inline]
    fn poll_with<T>(
        &mut self,
        into: &mut [T],
        put: impl Fn(&mut T, Completion, &Ended, &P),
    ) -> usize {
        self.submit_rest();
        let mut count = 0;
        while let Some(place) = into.get_mut(count) {
            let ended = match self.ended.take() {
                Some(ended) => Some(ended),
                None => match self.find_ended() {
                    None if self.port.has_ended()
                        || self.port.is_closed() && self.in_flight.is_empty() =>
                    {
                        self.give_up().or_else(|| self.take_withdrawn())
                    }
                    None => self.take_withdrawn(),
                    found => found,
                },
            };
            let Some(mut ended) = ended else {
                return count;
            };
            if self.has_more(&mut ended) {
                self.submit();
                continue;
            }
            let slot = ended.unit.first + ended.next;
            let completion = Completion {
                ticket: Ticket(slot),
                user_data: self.user_data[slot as usize],
                record: self.member_record(slot, &ended),
                executor: P::EXECUTOR,
            };
            put(place, completion, &ended, &self.port);
            self.ring.give_back(slot);
            count += 1;
            self.ended = self.rest_of_batch(ended, completion.status());
        }
        count
    }

    #[inline]
    fn take_withdrawn(&mut self) -> Option<Ended> {
        let unit = self.withdrawn.pop_front()?;
        Some(Ended {
            withdrawn: true,
            accepted: self.has_executed_some(unit),
            ..Ended::new(unit, CompletionRecord::default())
        })
    }

    #[inline]
    pub(super) fn member_record(&self, slot: u32, ended: &Ended) -> CompletionRecord {
        if ended.unit.members == 1 {
            return ended.record;
        }
        let record = self.memory.peek(slot);
        if record.status == 0 && ended.record.status == 0 {
            // What else is there is of an earlier operation.
            return CompletionRecord::default();
        }
        let ran = matches!(
            ended.record.status(),
            Status::SUCCESS | Status::BATCH_FAIL | Status(0)
        );
        // A batch that was refused says so in its own record alone.
        match record.status == 0 && !ran {
            // Its `bytes_completed` counts descriptors.
            true => CompletionRecord {
                bytes_completed: 0,
                ..ended.record
            },
            false => record,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::with_exposed_provenance_mut;
    use std::sync::Arc;

    use dray_device::Submission;
    use dray_spec::Descriptor;

    use super::*;
    use crate::slots::SlotMemory;
    use crate::{Capabilities, Executor, Operation, QueueLost};

    /// Accepts all, and completes nothing.
    struct Accepting;

    impl Port for Accepting {
        const EXECUTOR: Executor = Executor::Virtual;

        fn submit(&mut self, _: &Descriptor) -> Submission {
            Submission::Accepted
        }

        fn credits(&self) -> usize {
            8
        }

        fn lost(&self) -> Option<QueueLost> {
            Some(QueueLost::Disabled)
        }
    }

    fn queue(memory: &Arc<SlotMemory>) -> Queue<Accepting> {
        let capabilities = Capabilities {
            max_batch: 8,
            ..Capabilities::software()
        };
        Queue::new(Accepting, capabilities, memory.clone(), 8)
    }

    fn write(memory: &SlotMemory, index: u32, status: Status, bytes_completed: u32) {
        let place = memory.record_address(index) as usize;
        let mut record = CompletionRecord::with_status(status);
        record.bytes_completed = bytes_completed;
        // SAFETY: a record of the block, which nothing else accesses meanwhile.
        unsafe { with_exposed_provenance_mut::<CompletionRecord>(place).write(record) };
    }

    #[test]
    fn a_member_behind_a_fence_is_not_lost_with_its_queue() {
        let memory = Arc::new(SlotMemory::new(8));
        let mut queue = queue(&memory);
        queue.enqueue_batch(&[Operation::noop(); 2]).expect("slots");
        queue.submit();
        write(&memory, 0, Status::PAGE_FAULT, 0);
        write(&memory, memory.batch_record(0), Status::BATCH_FAIL, 2);
        let mut ended = [Outcome::default(); 2];
        assert_eq!(queue.poll_outcomes(&mut ended), 2);
        assert_eq!(ended[1].completion.status(), Status::NONE);
        assert_eq!(ended.map(|outcome| outcome.queue_lost), [None; 2]);
    }

    #[test]
    fn members_of_a_batch_whose_list_cannot_be_read_have_done_no_bytes() {
        let memory = Arc::new(SlotMemory::new(8));
        let mut queue = queue(&memory);
        queue.enqueue_batch(&[Operation::noop(); 3]).expect("slots");
        queue.submit();
        // The first was executed, and the page of the others could not be read.
        write(&memory, 0, Status::SUCCESS, 0);
        write(&memory, memory.batch_record(0), Status::BATCH_PAGE_FAULT, 1);
        let mut ended = [Completion::default(); 4];
        assert_eq!(queue.poll(&mut ended), 3);
        assert_eq!(ended[0].status(), Status::SUCCESS);
        for completion in &ended[1..3] {
            assert_eq!(completion.status(), Status::BATCH_PAGE_FAULT);
            assert_eq!(completion.record.bytes_completed, 0);
        }
    }

    /// Accepts so many.
    struct Refusing(u32);

    impl Port for Refusing {
        const EXECUTOR: Executor = Executor::Virtual;

        fn submit(&mut self, _: &Descriptor) -> Submission {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    Submission::Accepted
                }
                None => Submission::Retry,
            }
        }

        fn credits(&self) -> usize {
            8
        }

        fn lost(&self) -> Option<QueueLost> {
            None
        }
    }

    /// Its rest no longer overlaps and takes its place: still a part of it is done, and it must not begin again.
    #[test]
    fn a_backward_move_of_which_the_rest_is_withdrawn_was_on_a_queue() {
        let memory = Arc::new(SlotMemory::new(2));
        let capabilities = Capabilities {
            max_transfer_bytes: 4096,
            ..Capabilities::software()
        };
        let mut queue = Queue::new(Refusing(1), capabilities, memory.clone(), 2);
        queue.divide_from_now_on();
        queue
            .enqueue(&Operation::memmove(0x10000, 0x11000, 8192))
            .expect("a slot");
        queue.submit();
        write(&memory, 0, Status::SUCCESS, 0);
        let mut ended = [Outcome::default(); 2];
        assert_eq!((queue.poll_outcomes(&mut ended), queue.withdraw()), (0, 1));
        assert_eq!(queue.poll_outcomes(&mut ended), 1);
        assert!(ended[0].withdrawn && ended[0].accepted);
        assert_eq!(ended[0].completion.record.bytes_completed, 4096);
    }

    #[test]
    fn what_is_withdrawn_was_on_no_queue() {
        let memory = Arc::new(SlotMemory::new(2));
        let mut queue = Queue::new(Accepting, Capabilities::software(), memory, 2);
        queue.enqueue(&Operation::noop()).expect("a slot");
        assert_eq!((queue.withdraw(), queue.withdraw()), (1, 0));
        let mut ended = [Outcome::default(); 2];
        assert_eq!(queue.poll_outcomes(&mut ended), 1);
        let outcome = &ended[0];
        assert!(outcome.withdrawn && !outcome.accepted);
        assert_eq!(
            (outcome.stripes, outcome.completion.status()),
            (0, Status::NONE)
        );
        assert_eq!(queue.poll_outcomes(&mut ended), 0);
    }
}
