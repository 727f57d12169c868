//! Members of a batch without a fence between them: they run in any order, whatever this device did.

use std::collections::BTreeSet;
use std::ops::Range;

use super::flight::{Flight, Operands, Party, race};
use super::in_flight::InFlight;
use dray_spec::Accesses;

/// Those since the last fence, by their number.
#[derive(Debug)]
pub(super) struct Unordered {
    members: InFlight<usize>,
    /// What those that can run twice do: another one that does the same accesses no other data.
    operands: BTreeSet<Operands>,
    count: usize,
}

impl Default for Unordered {
    fn default() -> Unordered {
        Unordered {
            members: InFlight::new(),
            operands: BTreeSet::new(),
            count: 0,
        }
    }
}

impl Unordered {
    /// The next member: one before it that it races with, and for which bytes.
    pub(super) fn add<K>(&mut self, member: &Flight<K>) -> Option<(Party, Range<u64>)> {
        if member.is_fenced() {
            *self = Unordered::default();
        }
        let mut own = member.called(None);
        let found = self
            .compared(&own)
            .find_map(|(other, bytes)| Some((other, bytes?)));
        if own.accesses.repeats() && !self.operands.insert(own.operands()) {
            own.accesses = own.accesses.of_record();
        }
        if own.accesses != Accesses::default() {
            self.members.insert(self.count, own);
        }
        self.count += 1;
        found
    }

    /// Those that it is compared with, and the bytes that both race for.
    fn compared(&self, own: &Flight<usize>) -> impl Iterator<Item = (Party, Option<Range<u64>>)> {
        let beside = self.members.beside(own);
        beside.map(|(_, other)| (other.party(), race(own, other)))
    }
}

#[cfg(test)]
mod tests {
    use dray_spec::{Descriptor, Flags};

    use super::super::flight::flight;
    use super::*;

    const MEMBERS: u64 = 4096;

    /// How many of them race with one before them, and how many comparisons that took.
    fn added(members: impl Iterator<Item = Descriptor>) -> (usize, usize) {
        let mut all = Unordered::default();
        let mut comparisons = 0;
        let raced = members.filter(|d| {
            let member = flight(Some(1), (0, 0), d, None);
            let mut raced = false;
            let before = all
                .compared(&member)
                .take_while(|(_, bytes)| !std::mem::replace(&mut raced, bytes.is_some()));
            comparisons += before.count();
            all.add(&member).is_some()
        });
        (raced.count(), comparisons)
    }

    /// By shape of a batch: none is compared with more than a few others.
    #[test]
    fn a_member_is_compared_with_few_others() {
        let copy = |from: u64, to: u64| Descriptor::memmove(from, to, 64);
        type Shape = fn(u64) -> Descriptor;
        let shapes: [(&str, Shape, bool); 5] = [
            (
                "apart",
                |n| Descriptor::memmove(64 * n, (1 << 32) + 64 * n, 64),
                false,
            ),
            (
                "one source",
                |n| Descriptor::memmove(0, (1 << 32) + 64 * n, 64),
                false,
            ),
            (
                "one record",
                |n| Descriptor::fill(1, 64 * n, 64).with_completion(1 << 40),
                false,
            ),
            (
                "the same",
                |n| Descriptor::memmove(0, 1 << 32, 64).with_completion((1 << 40) + 32 * n),
                false,
            ),
            (
                "one destination",
                |n| Descriptor::memmove(64 * n, 1 << 32, 64),
                true,
            ),
        ];
        for (name, shape, races) in shapes {
            let (raced, comparisons) = added((0..MEMBERS).map(shape));
            let expected = if races { MEMBERS as usize - 1 } else { 0 };
            assert_eq!(raced, expected, "{name}");
            assert!(comparisons <= 2 * MEMBERS as usize, "{name}: {comparisons}");
        }
        // What is kept of one that does the same is its record.
        let record = (1 << 40) + 32;
        let over = Descriptor::fill(0, record, 4);
        let same = |record| copy(0, 1 << 32).with_completion(record);
        let (raced, _) = added([same(1 << 40), same(record), over].into_iter());
        assert_eq!(raced, 1);
    }

    #[test]
    fn a_fence_orders_those_before_it() {
        let copy = Descriptor::memmove(0, 0x1000, 64);
        let mut next = Descriptor::memmove(0x1000, 0x2000, 64);
        assert_eq!(added([copy, next].into_iter()).0, 1);
        next.flags_opcode |= Flags::FENCE.bits();
        assert_eq!(added([copy, next].into_iter()).0, 0);
    }
}
