//! The descriptors in flight, found by the bytes that they access.

use std::collections::BTreeMap;

use super::flight::Flight;
use crate::processes::Pid;

/// Ranges have classes by the logarithm of their length: one of a class that holds a byte begins at most so far before it.
const CLASSES: usize = 64;

/// A range: process, class, start, and what makes it another one than its equals.
type Span = (Option<Pid>, usize, u64, u64);

/// Ranges of descriptors that are called `K`.
#[derive(Debug)]
struct Spans<K> {
    /// With the length.
    spans: BTreeMap<Span, (u64, K)>,
    /// How many there are of each class.
    counts: [usize; CLASSES],
}

impl<K: Copy> Spans<K> {
    fn new() -> Spans<K> {
        Spans {
            spans: BTreeMap::new(),
            counts: [0; CLASSES],
        }
    }

    fn insert(&mut self, pid: Option<Pid>, (start, len): (u64, u64), number: u64, key: K) {
        let class = len.ilog2() as usize;
        if self
            .spans
            .insert((pid, class, start, number), (len, key))
            .is_none()
        {
            self.counts[class] += 1;
        }
    }

    fn remove(&mut self, pid: Option<Pid>, (start, len): (u64, u64), number: u64) {
        let class = len.ilog2() as usize;
        if self.spans.remove(&(pid, class, start, number)).is_some() {
            self.counts[class] -= 1;
        }
    }

    /// Those that have a byte of a range.
    fn near(
        &self,
        pid: Option<Pid>,
        (start, len): (u64, u64),
    ) -> impl Iterator<Item = K> + use<'_, K> {
        let classes = (0..CLASSES).filter(|class| self.counts[*class] > 0);
        classes.flat_map(move |class| {
            let longest = u64::MAX >> (CLASSES - 1 - class);
            let first = start.saturating_sub(longest);
            let last = start.saturating_add(len - 1);
            let range = (pid, class, first, 0)..=(pid, class, last, u64::MAX);
            let before = self.spans.range(range);
            before.filter_map(move |((_, _, from, _), (len, key))| {
                let reaches = *from >= start || start - from < *len;
                reaches.then_some(*key)
            })
        })
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct InFlight<K> {
    /// With a number of its own.
    flights: BTreeMap<K, (u64, Flight<K>)>,
    reads: Spans<K>,
    writes: Spans<K>,
    records: Spans<K>,
    numbers: u64,
}

impl<K: Copy + Ord> InFlight<K> {
    pub(super) fn new() -> InFlight<K> {
        InFlight {
            flights: BTreeMap::new(),
            reads: Spans::new(),
            writes: Spans::new(),
            records: Spans::new(),
            numbers: 0,
        }
    }

    pub(super) fn get(&self, key: K) -> Option<&Flight<K>> {
        self.flights.get(&key).map(|(_, flight)| flight)
    }

    pub(super) fn insert(&mut self, key: K, flight: Flight<K>) {
        self.remove(key);
        self.numbers += 1;
        let number = self.numbers;
        for range in flight.accesses.read() {
            self.reads.insert(flight.pid, range, number, key);
        }
        for range in flight.accesses.written() {
            self.writes.insert(flight.pid, range, number, key);
        }
        if let Some(range) = flight.accesses.record_range() {
            self.records.insert(flight.pid, range, number, key);
        }
        self.flights.insert(key, (number, flight));
    }

    pub(super) fn remove(&mut self, key: K) -> Option<Flight<K>> {
        let (number, flight) = self.flights.remove(&key)?;
        for range in flight.accesses.read() {
            self.reads.remove(flight.pid, range, number);
        }
        for range in flight.accesses.written() {
            self.writes.remove(flight.pid, range, number);
        }
        if let Some(range) = flight.accesses.record_range() {
            self.records.remove(flight.pid, range, number);
        }
        Some(flight)
    }

    /// All of them, to be marked; their accesses and processes stay.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Flight<K>> {
        self.flights.values_mut().map(|(_, flight)| flight)
    }

    /// Those of the same process that access a byte of data which this one writes, or write one which it accesses. Some come
    /// twice.
    pub(super) fn beside<O>(
        &self,
        flight: &Flight<O>,
    ) -> impl Iterator<Item = (K, &Flight<K>)> + use<'_, K, O> {
        let (pid, accesses) = (flight.pid, flight.accesses);
        let data = move || accesses.read().chain(accesses.written());
        let written = accesses.written().chain(accesses.record_range());
        let readers = written.flat_map(move |range| self.reads.near(pid, range));
        let writers = data().chain(accesses.record_range());
        let writers = writers.flat_map(move |range| self.writes.near(pid, range));
        let records = data().flat_map(move |range| self.records.near(pid, range));
        let near = readers.chain(writers).chain(records);
        near.filter_map(|key| Some((key, self.get(key)?)))
    }

    /// Those of the same process with the same record.
    pub(super) fn with_record<O>(
        &self,
        flight: &Flight<O>,
    ) -> impl Iterator<Item = (K, &Flight<K>)> + use<'_, K, O> {
        let (pid, record) = (flight.pid, flight.accesses.record_range());
        let near = record.into_iter();
        let near = near.flat_map(move |record| self.records.near(pid, record));
        let near = near.filter_map(|key| Some((key, self.get(key)?)));
        near.filter(move |(_, other)| other.accesses.record_range() == record)
    }
}

#[cfg(test)]
mod tests {
    use dray_spec::Descriptor;
    use proptest::prelude::*;

    use super::super::flight::{flight, race};
    use super::*;

    /// Of two processes, with ranges that often meet.
    fn any_flight() -> impl Strategy<Value = Flight<usize>> {
        let address = || prop_oneof![0..0x400u64, Just(u64::MAX - 0x80)];
        let size = prop_oneof![1..0x40u32, Just(1), Just(0x200), Just(u32::MAX)];
        let parts = (1..3u32, address(), address(), size, 0..4u64, any::<bool>());
        parts.prop_map(|(pid, from, to, size, record, copies)| {
            let d = match copies {
                true => Descriptor::memmove(from, to, size),
                false => Descriptor::compare(from, to, size),
            };
            let d = match record {
                0 => d,
                record => d.with_completion(0x100 * record),
            };
            flight(Some(pid), (0, 0), &d, None)
        })
    }

    proptest! {
        #[test]
        fn what_is_near_holds_all_that_races(
            flights in proptest::collection::vec(any_flight(), 1..24),
            gone in proptest::collection::vec(any::<bool>(), 24),
        ) {
            let mut all = InFlight::new();
            for (key, flight) in flights.iter().enumerate() {
                all.insert(key, *flight);
            }
            let mut left: Vec<usize> = (0..flights.len()).collect();
            left.retain(|key| {
                if gone[*key] {
                    assert!(all.remove(*key).is_some());
                }
                !gone[*key]
            });
            for one in &flights {
                let mut found: Vec<usize> = all
                    .beside(one)
                    .filter(|(_, other)| race(one, other).is_some())
                    .map(|(key, _)| key)
                    .collect();
                found.sort_unstable();
                found.dedup();
                let expected = left.iter().copied().filter(|key| {
                    let other = &flights[*key];
                    other.pid == one.pid && race(one, other).is_some()
                });
                prop_assert!(found.into_iter().eq(expected));
            }
        }
    }
}
