//! Events still to come for ranges that another mapping may use by now.
//!
//! A thread unmaps or moves a mapping, and the event of that follows; another thread may have moved a mapping of
//! its own to the free range by then, and its event may come first. Pages of the first mapping that are out must
//! not be mixed with those of the second: they are recorded at addresses that no program has, until their event
//! comes. A thread that moves a mapping causes two events: that the mapping has moved, and then that the range
//! where it was is unmapped.

/// Bit from which on an address says that it is set aside: programs have addresses below 2^56.
const SHIFT: u32 = 57;
/// How many ranges can be set aside at once.
const KEYS: u64 = 127;

/// A range of which an event is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    start: u64,
    end: u64,
    of: Of,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The pages recorded at that address.
    Present,
    /// The pages of the former mapping: recorded at addresses that are so much higher.
    Aside(u64),
    /// No pages: another event has already removed them.
    Nothing,
}

/// Part of a range that an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// First byte, as the event says.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) len: u64,
    pub(crate) of: Of,
}

/// All of them, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct DueEvents {
    ranges: Vec<Due>,
    last: u64,
}

/// Whether an address is one of those in the books that no program has.
pub(crate) fn is_aside(address: u64) -> bool {
    address >> SHIFT != 0
}

impl DueEvents {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Enters that an event of a range is due; returns what is to be added to the addresses of its pages. `None` if
    /// there are too many such ranges.
    pub(crate) fn set_aside(&mut self, start: u64, end: u64) -> Option<u64> {
        let mut keys = (0..KEYS).map(|nth| (self.last + nth) % KEYS + 1);
        let is_free = |key: &u64| {
            let aside = Of::Aside(key << SHIFT);
            self.ranges.iter().all(|due| due.of != aside)
        };
        let key = keys.find(is_free)?;
        self.last = key;
        let aside = key << SHIFT;
        let of = Of::Aside(aside);
        self.ranges.push(Due { start, end, of });
        Some(aside)
    }

    /// A mapping has moved from a range: the event that the range is unmapped is still due.
    pub(crate) fn moved(&mut self, start: u64, end: u64) {
        let of = Of::Nothing;
        self.ranges.push(Due { start, end, of });
    }

    /// Whether an event of a range is due.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|due| due.start < end && start < due.end)
    }

    /// It has come that a range is unmapped: its parts, in order. Those of which it was due are due no more.
    pub(crate) fn unmapped(&mut self, start: u64, end: u64) -> Vec<Part> {
        self.part_of(start, end, |_| true)
    }

    /// It has come that a range has moved: as [`DueEvents::unmapped`].
    pub(crate) fn remapped(&mut self, start: u64, end: u64) -> Vec<Part> {
        self.part_of(start, end, |of| of != Of::Nothing)
    }

    fn part_of(&mut self, start: u64, end: u64, concerns: impl Fn(Of) -> bool) -> Vec<Part> {
        let mut rest = vec![(start, end)];
        let mut parts = Vec::new();
        let mut left = Vec::with_capacity(self.ranges.len());
        for due in std::mem::take(&mut self.ranges) {
            if !concerns(due.of) {
                left.push(due);
                continue;
            }
            let mut open = vec![(due.start, due.end)];
            let mut next = Vec::new();
            for (first, last) in rest {
                let (low, high) = (first.max(due.start), last.min(due.end));
                if low >= high {
                    next.push((first, last));
                    continue;
                }
                parts.push(Part {
                    start: low,
                    len: high - low,
                    of: due.of,
                });
                next.extend(without((first, last), low, high));
                open = open
                    .into_iter()
                    .flat_map(|range| without(range, low, high))
                    .collect();
            }
            rest = next;
            left.extend(
                open.into_iter()
                    .map(|(start, end)| Due { start, end, ..due }),
            );
        }
        self.ranges = left;
        parts.extend(rest.into_iter().map(|(start, end)| Part {
            start,
            len: end - start,
            of: Of::Present,
        }));
        parts.sort_unstable_by_key(|part| part.start);
        parts
    }

    /// Ends all due events; returns their remaining ranges, as recorded addresses.
    pub(crate) fn take(&mut self) -> Vec<(u64, u64)> {
        let ranges = std::mem::take(&mut self.ranges);
        let aside = |due: Due| match due.of {
            Of::Aside(aside) => Some((due.start + aside, due.end + aside)),
            _ => None,
        };
        ranges.into_iter().filter_map(aside).collect()
    }
}

/// What is left of a range without `low..high`.
fn without((start, end): (u64, u64), low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> {
    [(start, end.min(low)), (start.max(high), end)]
        .into_iter()
        .filter(|(start, end)| start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, end: u64, aside: u64) -> Part {
        let of = match aside {
            0 => Of::Present,
            aside => Of::Aside(aside),
        };
        let len = end - start;
        Part { start, len, of }
    }

    #[test]
    fn an_event_is_matched_with_the_range_set_aside_first() {
        let mut due = DueEvents::default();
        let first = due.set_aside(0x4000, 0x6000).expect("few");
        let second = due.set_aside(0x8000, 0x9000).expect("few");
        assert_ne!(first, second);
        assert!(is_aside(first) && !is_aside((1 << 56) - 1));
        let parts = due.unmapped(0x3000, 0x5000);
        assert_eq!(
            parts,
            [part(0x3000, 0x4000, 0), part(0x4000, 0x5000, first)]
        );
        // Of that part it was due once.
        assert_eq!(due.unmapped(0x4000, 0x5000), [part(0x4000, 0x5000, 0)]);
        let parts = due.unmapped(0x5000, 0xa000);
        assert_eq!(
            parts,
            [
                part(0x5000, 0x6000, first),
                part(0x6000, 0x8000, 0),
                part(0x8000, 0x9000, second),
                part(0x9000, 0xa000, 0)
            ]
        );
        assert!(due.is_empty());
    }

    #[test]
    fn a_partial_event_splits_a_range_and_the_oldest_is_first() {
        let mut due = DueEvents::default();
        let old = due.set_aside(0x1000, 0x4000).expect("few");
        let new = due.set_aside(0x1000, 0x4000).expect("few");
        assert_eq!(due.unmapped(0x2000, 0x3000), [part(0x2000, 0x3000, old)]);
        let parts = due.unmapped(0x1000, 0x4000);
        assert_eq!(
            parts,
            [
                part(0x1000, 0x2000, old),
                part(0x2000, 0x3000, new),
                part(0x3000, 0x4000, old)
            ]
        );
        let left = due.take();
        let aside = |start: u64, end: u64| (start + new, end + new);
        assert_eq!(left, [aside(0x1000, 0x2000), aside(0x3000, 0x4000)]);
    }

    #[test]
    fn events_that_are_due_are_limited_in_number() {
        let mut due = DueEvents::default();
        let mut seen = std::collections::BTreeSet::new();
        for nth in 0..KEYS {
            let aside = due.set_aside(nth << 12, (nth + 1) << 12).expect("not yet");
            assert!(seen.insert(aside) && aside >> SHIFT <= KEYS);
        }
        assert_eq!(due.set_aside(1 << 40, 2 << 40), None);
        due.unmapped(0, 1 << 12);
        assert!(due.set_aside(1 << 40, 2 << 40).is_some());
    }

    #[test]
    fn a_moved_mapping_has_a_remap_and_an_unmap_event() {
        let mut due = DueEvents::default();
        due.moved(0x2000, 0x4000);
        assert!(due.overlaps(0x3000, 0x9000) && !due.overlaps(0x4000, 0x9000));
        // Pages that move from there now belong to the mapping that came later.
        assert_eq!(due.remapped(0x2000, 0x4000), [part(0x2000, 0x4000, 0)]);
        let nothing = Part {
            start: 0x2000,
            len: 0x2000,
            of: Of::Nothing,
        };
        let parts = due.unmapped(0x1000, 0x4000);
        assert_eq!(parts, [part(0x1000, 0x2000, 0), nothing]);
        assert!(due.is_empty());
        due.moved(0x2000, 0x4000);
        assert_eq!(due.take(), []);
        assert!(due.is_empty());
    }
}
