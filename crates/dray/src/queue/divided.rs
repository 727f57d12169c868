//! Operations that are larger than a descriptor may be: they travel in parts, one after the other.

use dray_spec::CompletionRecord;

use super::unit::Unit;
use super::{Port, Queue};
use crate::{Operation, parts};

/// An operation that travels in parts, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Divided {
    operation: Operation,
    /// Bytes of the parts that have ended.
    done: u32,
    /// Bytes of the part in flight.
    part: u32,
    /// From the last part to the first.
    backward: bool,
}

impl Divided {
    /// The next part, of at most `most` bytes.
    fn next(&mut self, most: u32, before: Option<&CompletionRecord>) -> Operation {
        let left = self.operation.len() - self.done;
        self.part = most.min(left);
        let offset = match self.backward {
            true => left - self.part,
            false => self.done,
        };
        parts::part(&self.operation, offset, self.part, before)
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
        self.divided = vec![None; self.slots()];
    }

    /// Prepares the first part of an operation. False if it cannot be divided: the device then
    /// refuses it.
    #[cold]
    pub(super) fn divide(&mut self, slot: u32, operation: &Operation) -> bool {
        let most = parts::largest_part(operation, self.capabilities.max_transfer_bytes);
        let (Some(most), false) = (most, self.divided.is_empty()) else {
            return false;
        };
        // What breaks a rule as a whole is refused as a whole.
        if dray_device::check_operands(operation.opcode(), operation.descriptor()).is_err() {
            return false;
        }
        let mut divided = Divided {
            operation: *operation,
            done: 0,
            part: 0,
            backward: parts::is_backward(operation),
        };
        let first = divided.next(most, None);
        self.divided[slot as usize] = Some(divided);
        self.prepare(slot, &first);
        true
    }

    /// Whether parts of an operation that is queued have been executed.
    #[cold]
    pub(super) fn has_executed_some(&self, unit: Unit) -> bool {
        let divided = self.divided.get(unit.first as usize).copied().flatten();
        unit.divided && divided.is_some_and(|divided| divided.done > 0)
    }

    /// A part has ended. True if another follows, which is prepared then.
    #[cold]
    pub(super) fn continue_divided(&mut self, unit: Unit, record: &mut CompletionRecord) -> bool {
        let slot = unit.first as usize;
        let Some(mut divided) = self.divided.get_mut(slot).and_then(Option::take) else {
            return false;
        };
        let operation = divided.operation;
        if !parts::goes_on(&operation, record) || divided.done + divided.part >= operation.len() {
            *record = parts::finish(&operation, divided.done, *record);
            return false;
        }
        divided.done += divided.part;
        let most = parts::largest_part(&operation, self.capabilities.max_transfer_bytes);
        let next = divided.next(most.unwrap_or(1), Some(record));
        self.divided[slot] = Some(divided);
        self.prepare(unit.first, &next);
        self.queued.push_front(unit);
        true
    }
}
