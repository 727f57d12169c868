//! What the migrating thread and the thread that reads events share, under one lock.

use std::collections::BTreeMap;

use super::blocks::Blocks;
use super::flight::{self, Flight, Stage};
use super::hints::Hints;
use super::outcome::Outcome;
use crate::sys::memory;

/// Managed memory and what moves in it.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Registered ranges, by their start.
    regions: BTreeMap<u64, u64>,
    pub(crate) blocks: Blocks,
    /// The batch under way.
    pub(crate) flights: Vec<Flight>,
    pub(crate) hints: Hints,
    /// Where the last missing pages were filled, and how many: rows of them are filled at once.
    pub(crate) filled: (u64, u64),
    /// Faults whose page could not be given yet.
    pub(crate) deferred: Vec<u64>,
}

impl State {
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

    /// A range is managed no more.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        let inside: Vec<(u64, u64)> = self
            .regions
            .range(..end)
            .filter(|(_, last)| **last > start)
            .map(|(first, last)| (*first, *last))
            .collect();
        for (first, last) in inside {
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
        flight::drop_range(&mut self.flights, start, end, memory::is_mapped);
        self.hints.drop_range(start, end, memory::is_mapped);
        self.blocks.forget(start, end);
        self.remove(start, end);
    }

    /// The program drops the pages of a range: they read as zero when that is done.
    pub(crate) fn dropping(&mut self, start: u64, end: u64) {
        // The kernel tells before it drops them: this is never late.
        flight::drop_range(&mut self.flights, start, end, |_| false);
        self.hints.drop_range(start, end, |_| false);
        self.blocks.change_range(start, end, |block, pages| {
            block.dropping |= pages;
            block.slow &= !pages;
        });
    }

    /// The program has moved a range.
    pub(crate) fn remapped(&mut self, from: u64, to: u64, len: u64) {
        flight::shift(&mut self.flights, from, to, len, memory::is_mapped);
        self.hints.shift(from, to, len, memory::is_mapped);
        self.blocks.shift(from, to, len);
        self.remove(from, from + len);
        self.insert(to, to + len);
    }

    /// Whether a page is on its way, so that whoever waits for it is woken at the end of the batch.
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

    /// A page of the batch that is not out stays where it is.
    pub(crate) fn leave(&mut self, address: u64, outcome: Outcome) {
        for flight in &mut self.flights {
            let here = (flight.address..flight.address + flight.len()).contains(&address);
            if here && flight.stage == Stage::In {
                flight.stage = Stage::Ended(outcome);
            }
        }
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
    fn regions_are_cut_where_memory_is_unmapped() {
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
}
