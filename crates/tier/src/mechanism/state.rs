//! What the migrating thread and the thread that reads events share, under one lock.

use std::collections::BTreeMap;

use super::blocks::Blocks;
use super::due::{DueEvents, Of};
use super::flight::{self, Flight, Stage};
use super::hints::Hints;
use super::outcome::Outcome;
use crate::sys::PAGE;

/// Managed memory and what moves in it.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Registered ranges, by their start.
    regions: BTreeMap<u64, u64>,
    pub(crate) blocks: Blocks,
    /// The batch under way.
    pub(crate) flights: Vec<Flight>,
    pub(crate) hints: Hints,
    /// Events still to come for ranges that another mapping may use by now.
    pub(crate) due: DueEvents,
    /// Where the last missing pages were filled, and how many: rows of them are filled at once.
    pub(crate) filled: (u64, u64),
    /// Faults whose page could not be given yet.
    pub(crate) deferred: Vec<u64>,
}

impl State {
    /// Pages that were out as hints are back. The kernel takes the protection that shows writes off a page that it moves:
    /// the next scan would count them as written by the program.
    pub(crate) fn came_back(&mut self, page: u64, len: u64) {
        self.blocks
            .change_known(page, page + len, |block, pages| block.fresh |= pages);
    }

    /// Registered ranges in order.
    pub(crate) fn regions(&self) -> impl Iterator<Item = (u64, u64)> {
        self.regions.iter().map(|(start, end)| (*start, *end))
    }

    /// Whether all of a range is managed.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.regions.range(..=at).next_back() {
                Some((_, last)) if *last > at => at = *last,
                _ => return false,
            }
        }
        true
    }

    /// A range is managed from now on.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        self.remove(start, end);
        self.regions.insert(start, end);
    }

    /// Registered ranges that lie in a range, if only in part.
    pub(crate) fn overlapping(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        self.regions
            .range(..end)
            .filter(|(_, last)| **last > start)
            .map(|(first, last)| (*first, *last))
            .collect()
    }

    /// A range is managed no more.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        for (first, last) in self.overlapping(start, end) {
            self.regions.remove(&first);
            if first < start {
                self.regions.insert(first, start);
            }
            if last > end {
                self.regions.insert(end, last);
            }
        }
    }

    /// The program has unmapped a range.
    pub(crate) fn unmapped(&mut self, start: u64, end: u64) {
        for part in self.due.unmapped(start, end) {
            let (first, last) = (part.start, part.start + part.len);
            match part.of {
                Of::Present => {
                    self.forget(first, last);
                    self.remove(first, last);
                }
                Of::Aside(aside) => self.forget(first + aside, last + aside),
                Of::Nothing => {}
            }
        }
    }

    /// Drops the pages of a range that are out: they are no longer needed.
    fn forget(&mut self, start: u64, end: u64) {
        flight::drop_range(&mut self.flights, start, end);
        self.hints.drop_range(start, end);
        self.blocks.forget(start, end);
    }

    /// The program drops the pages of a range: they read as zero when that is done.
    pub(crate) fn dropping(&mut self, start: u64, end: u64) {
        // The kernel sends the event before it drops them, and the thread that drops them waits: they are there.
        flight::drop_range(&mut self.flights, start, end);
        self.hints.drop_range(start, end);
        self.blocks.change_range(start, end, |block, pages| {
            block.dropping |= pages;
            block.slow &= !pages;
        });
    }

    /// The program has moved a range.
    pub(crate) fn remapped(&mut self, from: u64, to: u64, len: u64) {
        let parts = self.due.remapped(from, from + len);
        // The pages that were at `to` before have been unmapped, since the mapping is there now: their event is due.
        for (first, last) in self.overlapping(to, to + len) {
            let (first, last) = (first.max(to), last.min(to + len));
            match self.due.set_aside(first, last) {
                Some(aside) => self.shift(first, first + aside, last - first),
                None => self.forget(first, last),
            }
        }
        for part in parts {
            let new = part.start - from + to;
            match part.of {
                Of::Aside(aside) => self.shift(part.start + aside, new, part.len),
                _ => {
                    self.shift(part.start, new, part.len);
                    self.remove(part.start, part.start + part.len);
                }
            }
        }
        self.insert(to, to + len);
        self.due.moved(from, from + len);
    }

    fn shift(&mut self, from: u64, to: u64, len: u64) {
        flight::shift(&mut self.flights, from, to, len);
        self.hints.shift(from, to, len);
        self.blocks.shift(from, to, len);
    }

    /// No event is due: drops the ranges that were set aside. Returns how many of their pages were out.
    pub(crate) fn nothing_is_due(&mut self) -> u64 {
        let mut pages = 0;
        for (start, end) in self.due.take() {
            let out = self.flights.iter().filter(|flight| {
                flight.stage == Stage::Out && (start..end).contains(&flight.address)
            });
            pages += out.map(Flight::pages).sum::<u64>();
            pages += self.hints.bytes_in(start, end) / PAGE;
            self.forget(start, end);
        }
        pages
    }

    /// Whether a page is on its way, so that threads that wait for it are woken at the end of the batch.
    pub(crate) fn in_flight(&self, address: u64) -> bool {
        let within = |start: u64, len: u64| (start..start + len).contains(&address);
        self.flights
            .iter()
            .any(|f| within(f.address, f.len()) || within(f.origin, f.len()))
    }

    /// How far the page is that was or is at an address, if it is of the batch: out, if any of both is.
    pub(crate) fn stage_of(&self, address: u64) -> Option<Stage> {
        let within = |start: u64, len: u64| (start..start + len).contains(&address);
        let here = |f: &&Flight| within(f.address, f.len()) || within(f.origin, f.len());
        let mut stages = self.flights.iter().filter(here).map(|f| f.stage);
        let first = stages.next()?;
        match stages.any(|stage| stage == Stage::Out) {
            true => Some(Stage::Out),
            false => Some(first),
        }
    }

    /// The page of the batch that an address lies in: its first byte and length.
    pub(crate) fn span_at(&self, address: u64) -> Option<(u64, u64)> {
        let mut spans = self.flights.iter().map(|f| (f.address, f.len()));
        spans.find(|(start, len)| (*start..start + len).contains(&address))
    }

    /// A page of the batch that is not out stays where it is: its first byte and length, if there is one.
    pub(crate) fn leave(&mut self, address: u64, outcome: Outcome) -> Option<(u64, u64)> {
        let flight = self.flights.iter_mut().find(|flight| {
            let here = flight.address..flight.address + flight.len();
            flight.stage == Stage::In && here.contains(&address)
        })?;
        flight.stage = Stage::Ended(outcome);
        Some((flight.address, flight.len()))
    }

    /// End of a range at `start` of at most `len` bytes in which nothing is out.
    pub(crate) fn clear_until(&self, start: u64, len: u64) -> u64 {
        let end = start + len;
        let flying = self.flights.iter().map(|flight| flight.address);
        let first = flying.filter(|at| (start..end).contains(at)).min();
        let hint = self.hints.first_in(start, end);
        first.unwrap_or(end).min(hint.unwrap_or(end))
    }

    /// What is left of the batch.
    pub(crate) fn any(&self, stage: Stage) -> bool {
        self.flights.iter().any(|flight| flight.stage == stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_a_page_ends_its_flight_once() {
        let flight = |address, stage| Flight {
            origin: address,
            address,
            huge: false,
            landing: 0,
            made: 0,
            stage,
            tries: 0,
        };
        let mut state = State {
            flights: vec![flight(0x1000, Stage::In), flight(0x2000, Stage::Out)],
            ..State::default()
        };
        assert_eq!(state.leave(0x2000, Outcome::Written), None);
        assert_eq!(
            state.leave(0x1008, Outcome::Written),
            Some((0x1000, 0x1000))
        );
        assert_eq!(state.stage_of(0x1000), Some(Stage::Ended(Outcome::Written)));
        assert_eq!(state.leave(0x1008, Outcome::Gone), None);
    }

    #[test]
    fn regions_are_split_where_memory_is_unmapped() {
        let mut state = State::default();
        state.insert(0x1000, 0x9000);
        state.insert(0x9000, 0xb000);
        assert!(state.covers(0x1000, 0xb000));
        state.unmapped(0x3000, 0x4000);
        assert!(!state.covers(0x2000, 0x5000));
        assert!(state.covers(0x4000, 0xb000));
        state.remapped(0x4000, 0x2_0000, 0x1000);
        let regions: Vec<_> = state.regions().collect();
        assert_eq!(
            regions,
            [
                (0x1000, 0x3000),
                (0x5000, 0x9000),
                (0x9000, 0xb000),
                (0x2_0000, 0x2_1000)
            ]
        );
    }

    const A: u64 = 0x10_0000;
    const B: u64 = 0x20_0000;
    const C: u64 = 0x30_0000;
    const LEN: u64 = 0x1_0000;

    /// Three mappings, of each of which the third page is out as a hint and the fifth in the batch.
    fn three() -> State {
        let mut state = State::default();
        for (nth, at) in (1..).zip([A, B, C]) {
            state.insert(at, at + LEN);
            state.hints.insert(at + 2 * PAGE, nth, false);
            let address = at + 4 * PAGE;
            state.flights.push(Flight {
                origin: address,
                address,
                huge: false,
                landing: nth,
                made: nth,
                stage: Stage::Out,
                tries: 0,
            });
        }
        state
    }

    /// Slots by where the program has the mapping now.
    fn out(state: &mut State, at: u64) -> (Option<u64>, Option<u64>) {
        let hint = state.hints.get(at + 2 * PAGE).map(|hint| hint.slot);
        let there = |f: &&Flight| f.address == at + 4 * PAGE && f.stage == Stage::Out;
        (hint, state.flights.iter().find(there).map(|f| f.landing))
    }

    #[test]
    fn late_events_of_successive_moves_find_their_pages() {
        let far = 0x90_0000;
        let mut state = three();
        // What has happened: A goes far away, B goes where A was, C goes where B was.
        state.remapped(C, B, LEN);
        state.remapped(B, A, LEN);
        assert_eq!(out(&mut state, A), (Some(2), Some(2)));
        assert_eq!(out(&mut state, B), (Some(3), Some(3)));
        state.remapped(A, far, LEN);
        assert_eq!(out(&mut state, A), (Some(2), Some(2)));
        assert_eq!(out(&mut state, far), (Some(1), Some(1)));
        // Each thread's event then says that it has left the range where it was.
        for left in [B, C, A] {
            state.unmapped(left, left + LEN);
        }
        assert!(state.due.is_empty());
        assert_eq!(out(&mut state, A), (Some(2), Some(2)));
        assert_eq!(out(&mut state, B), (Some(3), Some(3)));
        assert!(state.covers(A, A + LEN) && state.covers(B, B + LEN));
        assert!(state.covers(far, far + LEN) && !state.covers(C, C + PAGE));
        // In this order nothing is late.
        state.remapped(A, C, LEN);
        assert_eq!(out(&mut state, A), (None, None));
        assert_eq!(out(&mut state, C), (Some(2), Some(2)));
    }

    #[test]
    fn a_late_unmap_drops_only_the_pages_of_the_former_mapping() {
        let mut state = three();
        state.remapped(B, A, LEN);
        state.unmapped(A, A + LEN);
        assert_eq!(out(&mut state, A), (Some(2), Some(2)));
        assert_eq!(
            (state.hints.waste.as_slice(), state.hints.addresses().len()),
            (&[1][..], 2)
        );
        assert_eq!(state.flights[0].stage, Stage::Ended(Outcome::Dropped));
        assert!(state.covers(A, A + LEN));
        // A second unmap event is about the mapping that is there now.
        state.unmapped(A, A + LEN);
        assert_eq!(out(&mut state, A), (None, None));
        assert!(!state.covers(A, A + PAGE));
    }

    #[test]
    fn ranges_set_aside_without_an_event_are_counted_and_dropped() {
        let mut state = three();
        state.remapped(B, A, LEN);
        assert!(!state.due.is_empty());
        assert_eq!(state.nothing_is_due(), 2);
        assert!(state.due.is_empty());
        assert_eq!(out(&mut state, A), (Some(2), Some(2)));
        assert_eq!(state.hints.addresses().len(), 2);
        assert_eq!(
            state
                .flights
                .iter()
                .filter(|f| f.stage == Stage::Out)
                .count(),
            2
        );
    }
}
