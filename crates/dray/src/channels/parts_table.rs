//! The parts of operations that are under way, by operation, in the order of their bytes.

use dray_spec::CompletionRecord;

use crate::Operation;
use crate::stalled_faults::StalledFaults;

/// No part.
pub(super) const NONE: u32 = u32::MAX;

/// A stripe of an operation: on one channel at a time, and there perhaps one descriptor after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Slot of its operation.
    pub(super) slot: u32,
    /// The next part of the same operation.
    pub(super) next: u32,
    /// All of it.
    pub(super) operation: Operation,
    /// Where it begins in its operation.
    pub(super) offset: u32,
    /// Bytes that are done.
    pub(super) done: u32,
    /// Bytes of the descriptor in flight.
    pub(super) in_flight: u32,
    /// Page faults since it last made progress.
    pub(super) faults: StalledFaults,
    /// How it ended, or its last descriptor did.
    pub(super) record: CompletionRecord,
    /// A queue has accepted some of it.
    pub(super) accepted: bool,
    /// It belongs to a batch of the caller's, which is left as it is.
    pub(super) in_batch: bool,
}

/// Room for parts, allocated once.
#[derive(Debug)]
pub(super) struct Parts {
    parts: Vec<Part>,
    free: Vec<u32>,
}

impl Parts {
    pub(super) fn new(capacity: usize) -> Parts {
        let empty = Part {
            slot: 0,
            next: NONE,
            operation: Operation::noop(),
            offset: 0,
            done: 0,
            in_flight: 0,
            faults: StalledFaults::default(),
            record: CompletionRecord::default(),
            accepted: false,
            in_batch: false,
        };
        Parts {
            parts: vec![empty; capacity],
            free: (0..capacity as u32).rev().collect(),
        }
    }

    pub(super) fn available(&self) -> usize {
        self.free.len()
    }

    /// A new part; there must be one available.
    pub(super) fn add(&mut self, part: Part) -> u32 {
        let index = self.free.pop().expect("the caller has looked for room");
        self.parts[index as usize] = part;
        index
    }

    pub(super) fn get(&self, index: u32) -> &Part {
        &self.parts[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Part {
        &mut self.parts[index as usize]
    }

    /// Takes all parts of an operation back.
    pub(super) fn release(&mut self, first: u32) {
        let mut index = first;
        while index != NONE {
            let next = self.parts[index as usize].next;
            self.free.push(index);
            index = next;
        }
    }
}
