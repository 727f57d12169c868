//! Operations of more than one descriptor, one after the other: larger than a descriptor may be, or resumed after a
//! page fault.

use dray_placement::{Cut, Rest};
use dray_spec::{CompletionRecord, Flags, Status};

use super::unit::{Ended, Unit};
use super::{Port, Queue};
use crate::populate::populate;
use crate::stalled_faults::{self, StalledFaults};
use crate::{Operation, parts};

/// An operation that has begun, and of which one part at a time is in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct InParts {
    operation: Operation,
    /// What has not ended: the part in flight, and those behind it.
    rest: Rest,
    /// Bytes of the part in flight.
    part: u32,
    /// Bytes at the end of a backward move that were done before its rest, which does not overlap, took its place.
    from_end: u32,
    /// The record of the bytes before.
    before: CompletionRecord,
    faults: StalledFaults,
}

impl InParts {
    fn new(operation: Operation) -> InParts {
        InParts {
            rest: parts::rest(&operation, 0),
            operation,
            part: 0,
            from_end: 0,
            before: CompletionRecord::default(),
            faults: StalledFaults::default(),
        }
    }

    /// Bytes of the parts that have ended.
    fn done(&self) -> u32 {
        self.rest.done() as u32
    }

    /// The rest of a backward move that does not overlap is a forward one: what is done of it counts.
    fn turn(&mut self) {
        let (left, done) = (self.rest.left(), self.done());
        let d = self.operation.descriptor();
        let distance = d.address1.abs_diff(d.address2);
        if self.rest.is_backward() && done > 0 && left <= distance {
            self.operation = parts::part(&self.operation, 0, left as u32, None);
            self.from_end = done;
            self.rest = Rest::new(left);
        }
    }

    /// The record of all of it.
    fn finish(&self, record: CompletionRecord) -> CompletionRecord {
        let mut whole = parts::finish(&self.operation, self.done(), record);
        if self.from_end > 0 && whole.status() != Status::SUCCESS {
            (whole.bytes_completed, whole.result) = (self.from_end, 1);
        }
        whole
    }

    /// The next part, of at most `most` bytes; what has no parts goes whole.
    fn next(&mut self, most: u64) -> Operation {
        let piece = parts::next_part(&self.operation, self.rest, most);
        let piece = piece.unwrap_or(Rest::new(self.operation.len().into()).next(Cut::WHOLE));
        self.part = piece.bytes as u32;
        if self.part == self.operation.len() {
            return self.operation;
        }
        let before = (self.done() > 0).then_some(&self.before);
        parts::part(&self.operation, piece.offset as u32, self.part, before)
    }
}

impl<P: Port> Queue<P> {
    /// Divides operations that are larger than the largest transfer.
    #[cfg(feature = "hw")]
    pub(crate) fn dividing(mut self) -> Queue<P> {
        self.divide_from_now_on();
        self
    }

    /// The same; before anything is enqueued.
    pub(crate) fn divide_from_now_on(&mut self) {
        self.capabilities.divides = true;
        self.make_room_for_parts();
    }

    /// An operation that meets a page that is not present is resumed, `most` times without progress; 0: it ends.
    /// Before anything is enqueued.
    pub(crate) fn resume_page_faults(&mut self, most: u32) {
        self.most_faults = most;
        self.make_room_for_parts();
    }

    fn make_room_for_parts(&mut self) {
        let slots = self.slots();
        self.in_parts.resize(slots, None);
        self.batches.reserve(slots);
    }

    /// Prepares the first part of an operation. False if it cannot be divided: the device then
    /// refuses it.
    #[cold]
    pub(super) fn divide(&mut self, slot: u32, operation: &Operation) -> bool {
        let most = self.capabilities.max_transfer_bytes;
        if !self.capabilities.divides || !parts::has_parts(operation, most) {
            return false;
        }
        // What breaks a rule as a whole is refused as a whole.
        if dray_device::check_operands(operation.opcode(), operation.descriptor()).is_err() {
            return false;
        }
        let mut whole = InParts::new(*operation);
        let first = whole.next(most);
        self.in_parts[slot as usize] = Some(whole);
        self.prepare(slot, &first);
        true
    }

    /// Whether parts of an operation that is queued have been executed.
    #[cold]
    pub(super) fn has_executed_some(&self, unit: Unit) -> bool {
        let whole = self.in_parts.get(unit.first as usize).copied().flatten();
        unit.in_parts && whole.is_some_and(|whole| whole.rest.done() > 0 || whole.from_end > 0)
    }

    /// What goes on was refused by a full queue: it is handed over again, for its caller has submitted all it knows of.
    #[inline]
    pub(super) fn submit_rest(&mut self) {
        if let Some(&unit) = self.queued.front()
            && (unit.of_batch || unit.resumed > 0 || unit.in_parts && self.has_executed_some(unit))
        {
            self.submit();
        }
    }

    /// What has ended is no end yet: the rest of it is queued then, at once, for its caller has submitted all it knows of.
    #[inline]
    pub(super) fn has_more(&mut self, ended: &mut Ended) -> bool {
        if ended.unit.members > 1 {
            return ended.record.status() == Status::BATCH_FAIL && self.resumes_member(ended);
        }
        let goes_on = ended.unit.in_parts || self.is_page_fault(&ended.record);
        goes_on && self.continue_in_parts(ended.unit, &mut ended.record)
    }

    fn is_page_fault(&self, record: &CompletionRecord) -> bool {
        self.most_faults > 0 && record.status().code() == Status::PAGE_FAULT.code()
    }

    /// A part has ended. True if another follows, which is queued then.
    #[cold]
    fn continue_in_parts(&mut self, mut unit: Unit, record: &mut CompletionRecord) -> bool {
        let slot = unit.first as usize;
        let begun = self.in_parts.get_mut(slot).and_then(Option::take);
        let Some(mut whole) = begun.or_else(|| self.begun(unit, record)) else {
            return false;
        };
        let operation = whole.operation;
        if self.resumes(&mut whole, record) {
            unit.resumed = unit.resumed.saturating_add(1);
        } else if parts::goes_on(&operation, record) && whole.rest.left() > whole.part.into() {
            whole.rest.advance(whole.part.into());
            whole.before = *record;
        } else {
            *record = whole.finish(*record);
            return false;
        }
        whole.turn();
        let next = whole.next(self.capabilities.max_transfer_bytes);
        self.in_parts[slot] = Some(whole);
        self.prepare(unit.first, &next);
        unit.in_parts = true;
        self.queued.push_front(unit);
        true
    }

    /// What has met a page fault in its only descriptor.
    fn begun(&self, unit: Unit, record: &CompletionRecord) -> Option<InParts> {
        if unit.in_parts || !self.is_page_fault(record) {
            return None;
        }
        let mut whole = InParts::new(self.alone(unit.first));
        whole.part = whole.operation.len();
        Some(whole)
    }

    /// The operation of a slot, outside its batch.
    fn alone(&self, slot: u32) -> Operation {
        let descriptor = self.memory.get_descriptor(slot);
        let user_data = self.user_data[slot as usize];
        Operation::of_valid(descriptor, user_data).with_changed_flags(Flags::FENCE, Flags::EMPTY)
    }

    /// Whether a part that has met a page fault goes on: the page is present then, and what was done counted.
    fn resumes(&mut self, whole: &mut InParts, record: &CompletionRecord) -> bool {
        if !self.is_page_fault(record) || self.port.has_ended() || self.port.is_closed() {
            return false;
        }
        let operation = &whole.operation;
        let bytes = parts::done_at_fault(operation, record, whole.part);
        let pages = stalled_faults::pages(operation);
        let (address, write) = (record.fault_address, record.status().is_write_fault());
        let has_progress = bytes > 0;
        // Of what is done nothing is left, whatever faulted then.
        let goes_on = !(has_progress && u64::from(bytes) >= whole.rest.left())
            && whole
                .faults
                .goes_on(address, has_progress, self.most_faults, pages)
            && populate(address, 1, write).is_ok();
        if goes_on && has_progress {
            whole.rest.advance(bytes.into());
            whole.before = *record;
        }
        goes_on
    }

    /// The next member to report of a batch that has ended has met a page fault, or was to start when the members before
    /// it have succeeded, as they now have. It is queued alone then, and the rest of the batch waits for it.
    #[cold]
    fn resumes_member(&mut self, ended: &mut Ended) -> bool {
        if self.most_faults == 0 || self.port.has_ended() || self.port.is_closed() {
            return false;
        }
        let slot = ended.unit.first + ended.next;
        let mut record = self.member_record(slot, ended);
        let unit = Unit {
            first: slot,
            members: 1,
            in_parts: false,
            of_batch: true,
            ..ended.unit
        };
        let fence = self
            .memory
            .get_descriptor(slot)
            .flags()
            .contains(Flags::FENCE);
        ended.is_abandoned |= fence && ended.has_failed;
        // Without a fault that was resumed the device itself has abandoned it.
        let waits = record.status() == Status::NONE && ended.has_resumed && !ended.is_abandoned;
        if waits {
            let operation = self.alone(slot);
            self.prepare(slot, &operation);
            self.queued.push_front(unit);
        } else if !self.is_page_fault(&record) || !self.continue_in_parts(unit, &mut record) {
            return false;
        }
        ended.has_resumed = true;
        self.batches.push(*ended);
        true
    }

    /// A member has been reported: what is left of its batch.
    #[inline]
    pub(super) fn rest_of_batch(&mut self, mut ended: Ended, status: Status) -> Option<Ended> {
        if ended.unit.of_batch {
            ended = self.take_batch(ended.unit.first);
        }
        // A false predicate is no plain success: it stops a fence, too (spec 3.9).
        ended.has_failed |= status != Status::SUCCESS;
        ended.next += 1;
        (ended.next < ended.unit.members).then_some(ended)
    }

    /// The batch that waits for the member of a slot.
    #[cold]
    fn take_batch(&mut self, slot: u32) -> Ended {
        let waits = |ended: &Ended| ended.unit.first + ended.next == slot;
        let found = self.batches.iter().position(waits);
        let Some(position) = found else {
            unreachable!("a member that is alone belongs to a batch that waits for it")
        };
        self.batches.swap_remove(position)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn a_queue_cuts_as_channels_and_page_lists_do(
            most in 1_u64..1 << 16, halves in 1_u64..64, less in 0_u64..1 << 16, distance in 0_u64..1 << 22,
            upwards: bool,
        ) {
            const BASE: u64 = 1 << 40;
            let len = (most * halves / 2).saturating_sub(less).max(1);
            let to = if upwards { BASE + distance } else { BASE - distance };
            let operation = Operation::memmove(BASE, to, len as u32);
            let mut whole = InParts::new(operation);
            let mut by_queue = Vec::new();
            while whole.rest.left() > 0 {
                let part = whole.next(most);
                by_queue.push((part.descriptor().address1 - BASE, u64::from(part.len())));
                whole.rest.advance(part.len().into());
            }
            let (mut done, mut by_channels) = (0, Vec::new());
            while u64::from(done) < len {
                let rest = parts::rest(&operation, done);
                let piece = parts::next_part(&operation, rest, most).expect("a copy has parts");
                by_channels.push((piece.offset, piece.bytes));
                done += piece.bytes as u32;
            }
            prop_assert_eq!(&by_queue, &by_channels);
            // They, offload and tier copy from the first piece to the last.
            let pieces = Rest::new(len).pieces(Cut::bytes(most));
            let by_lists: Vec<(u64, u64)> = pieces.map(|piece| (piece.offset, piece.bytes)).collect();
            let lengths = |pieces: &[(u64, u64)]| pieces.iter().map(|p| p.1).collect::<Vec<u64>>();
            prop_assert_eq!(lengths(&by_queue), lengths(&by_lists));
            prop_assert!(parts::is_backward(&operation) || by_queue == by_lists);
        }
    }
}
