//! An address space of registered regions.

use std::ops::Range;

use dray_device::Access;

use crate::Translation;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    addresses: Range<u64>,
    writable: bool,
}

/// Regions of addresses; everything else faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Regions {
    /// In order, none empty, none overlapping another.
    regions: Vec<Region>,
}

impl Regions {
    /// No address at all.
    pub fn new() -> Regions {
        Regions::default()
    }

    /// Adds `len` bytes at `start`. Where a region overlaps one that is there, the later one decides.
    /// What would lie behind the last address is left out.
    #[must_use]
    pub fn with(mut self, start: u64, len: u64, writable: bool) -> Regions {
        let new = start..start.saturating_add(len);
        if new.is_empty() {
            return self;
        }
        let mut regions = Vec::with_capacity(self.regions.len() + 2);
        for old in self.regions.drain(..) {
            let Range { start, end } = old.addresses;
            let writable = old.writable;
            for addresses in [start..end.min(new.start), start.max(new.end)..end] {
                if !addresses.is_empty() {
                    regions.push(Region {
                        addresses,
                        writable,
                    });
                }
            }
        }
        regions.push(Region {
            addresses: new,
            writable,
        });
        regions.sort_by_key(|region| region.addresses.start);
        Regions { regions }
    }
}

impl Translation for Regions {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let end = addr.saturating_add(len);
        let first = self.regions.partition_point(|r| r.addresses.end <= addr);
        let mut reached = addr;
        for region in &self.regions[first..] {
            let fits = access == Access::Read || region.writable;
            if reached >= end || region.addresses.start > reached || !fits {
                break;
            }
            reached = region.addresses.end;
        }
        reached.min(end) - addr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_crossed_and_holes_are_not() {
        let regions = Regions::new()
            .with(0x3000, 0x1000, false)
            .with(0x1000, 0x1000, true)
            .with(0x2000, 0x1000, true)
            .with(0x9000, 0, true);
        for (addr, len, reads, writes) in [
            (0xfff, 1, 0, 0),
            (0x1000, 0x10, 0x10, 0x10),
            (0x1800, 0x4000, 0x2800, 0x1800),
            (0x3fff, 2, 1, 0),
            (0x4000, 1, 0, 0),
            (0x9000, 1, 0, 0),
            (u64::MAX, u64::MAX, 0, 0),
        ] {
            assert_eq!(regions.accessible(addr, len, Access::Read), reads);
            assert_eq!(regions.accessible(addr, len, Access::Write), writes);
        }
    }

    #[test]
    fn a_later_region_cuts_what_was_there() {
        let regions = Regions::new()
            .with(0x1000, 0x3000, true)
            .with(0x2000, 0x1000, false);
        assert_eq!(regions.accessible(0x1000, 0x3000, Access::Write), 0x1000);
        assert_eq!(regions.accessible(0x1000, 0x3000, Access::Read), 0x3000);
        assert_eq!(regions.accessible(0x3000, 0x1000, Access::Write), 0x1000);
        let last = Regions::new().with(u64::MAX - 7, 16, true);
        assert_eq!(last.accessible(u64::MAX - 7, 16, Access::Write), 7);
    }
}
