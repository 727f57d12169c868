//! An engine's state in time: when it can start, when its writes are acknowledged.

use std::collections::VecDeque;

use dray_clock::{Duration, Time};

use super::service::Service;
use crate::{PAGE_BYTES, RecordedParameters};

/// The moments of one descriptor in an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issue {
    /// When the engine can start the next descriptor, if a slot is free.
    pub next_start: Time,
    /// When the last write is acknowledged and the descriptor's slot is free again.
    pub data_done: Time,
    /// When the completion record is in the cache.
    pub record_written: Time,
}

/// Timing state of one engine.
#[derive(Debug, Clone, Default)]
pub struct EnginePipe {
    write_free: Time,
    /// When each descriptor that takes a slot leaves it, in order.
    slots: VecDeque<Time>,
    pages: [u64; 5],
}

impl EnginePipe {
    /// Whether all pages of a descriptor's operands and the completion record's are those that the engine
    /// translated last: one live translation for each operand and one for the completion address.
    /// The new ones take their place. An operand is its place among two sources and two destinations, its address, and its
    /// bytes.
    #[inline]
    pub fn translate(
        &mut self,
        operands: impl Iterator<Item = (usize, u64, u64)>,
        record: u64,
    ) -> bool {
        let mut hit = true;
        for (place, address, bytes) in operands {
            let cached = &mut self.pages[place];
            hit &= *cached == address / PAGE_BYTES + 1;
            *cached = (address + bytes.max(1) - 1) / PAGE_BYTES + 1;
        }
        hit &= self.pages[4] == record / PAGE_BYTES + 1;
        self.pages[4] = record / PAGE_BYTES + 1;
        hit
    }

    /// When a slot for another descriptor is free, not before `now`.
    #[inline]
    pub fn slot_free(&mut self, now: Time, p: &RecordedParameters) -> Time {
        while self.slots.front().is_some_and(|end| *end <= now) {
            self.slots.pop_front();
        }
        match self.slots.front() {
            Some(first) if self.slots.len() as u64 >= p.engine_in_flight() => *first,
            _ => now,
        }
    }

    /// A descriptor leaves its slot at `end`; most are the last to do so.
    #[inline]
    fn take_slot(&mut self, end: Time) {
        let mut at = self.slots.len();
        while at > 0 && self.slots[at - 1] > end {
            at -= 1;
        }
        match at == self.slots.len() {
            true => self.slots.push_back(end),
            false => self.slots.insert(at, end),
        }
        debug_assert!(self.slots.iter().is_sorted());
    }

    /// The descriptor that started at `start` has had its last line's turn at `moved`; its lines were `queued` behind
    /// those of others.
    #[inline]
    pub fn issue(
        &mut self,
        start: Time,
        moved: Time,
        queued: Duration,
        s: &Service,
        p: &RecordedParameters,
    ) -> Issue {
        let moved = moved + s.stall;
        let [head, tail] = s.edges;
        // Partial lines go through a unit that takes its time for each; all but halves of lines
        // hold up the whole lines of their descriptor behind them.
        let mut unit = moved;
        let mut busy = moved;
        if head > Duration::ZERO {
            let free = start.max(self.write_free);
            unit = unit.max(free + s.held + s.body);
            busy = busy.max(free + head + s.body);
        }
        if tail > Duration::ZERO {
            unit = unit.max(self.write_free);
        }
        // The last line is there only after the slowest read: by then the unit may be through.
        let written = moved + unit.since(moved + s.late);
        if head > Duration::ZERO || tail > Duration::ZERO {
            self.write_free = unit.max(busy) + tail;
        }
        let data_done = written + s.latency + queued;
        self.take_slot(data_done);
        Issue {
            next_start: (start + p.engine_issue() + s.transform).max(moved + p.engine_gap())
                + s.readback,
            data_done,
            record_written: data_done + p.completion_write(),
        }
    }
}
