//! Operands in the cache level or memory of a case: put there before each timed span, and checked.

use std::fmt;

use super::cache::{CAN_PLACE, demote, flush, look, sweep, touch, turns};
use super::machine::cache_bytes;

/// Bytes of an operand, at most, that show what each level costs here.
const SAMPLE: u64 = 4096;

/// Where a buffer is when an operation starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// Nothing is done about it.
    None,
    /// The core's first-level cache.
    L1,
    /// The core's second-level cache.
    L2,
    /// The last-level cache.
    Llc,
    /// Memory.
    Ram,
}

impl Location {
    /// Reads a location. DML's help calls the first one `def`, its parser `none`.
    pub fn parse(text: &str) -> Option<Location> {
        Some(match text {
            "none" | "def" => Location::None,
            "l1" => Location::L1,
            "l2" => Location::L2,
            "llc" => Location::Llc,
            "ram" => Location::Ram,
            _ => return None,
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Location::None => "none",
            Location::L1 => "l1",
            Location::L2 => "l2",
            Location::Llc => "llc",
            Location::Ram => "ram",
        })
    }
}

/// An operand, and where it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
    /// Where it is to be.
    pub location: Location,
}

/// The operands of a thread.
#[derive(Debug)]
pub struct Placement {
    operands: Vec<Operand>,
    /// Memory to read instead, which pushes lines out of the second level.
    space: Vec<u8>,
    /// Bytes of it that push lines out of the first.
    small: usize,
    /// Sizes of the data caches by level, the first at 0.
    caches: [Option<u64>; 3],
}

impl Placement {
    /// # Safety
    /// The operands must be mapped for as long as this lives.
    pub unsafe fn new(operands: Vec<Operand>, cpu: u16) -> Placement {
        let caches = [1, 2, 3].map(|level| cache_bytes(cpu, level));
        let twice = |size: Option<u64>, otherwise: u64| 2 * size.unwrap_or(otherwise) as usize;
        let wanted = operands.iter().any(|o| o.location != Location::None);
        let small = twice(caches[0], 48 << 10);
        Placement {
            space: match wanted {
                true => vec![1; twice(caches[1], 2 << 20).max(small)],
                false => Vec::new(),
            },
            operands,
            small,
            caches,
        }
    }

    /// Whether use alone does not keep the operands where they are to be.
    pub fn is_lost_by_use(&self) -> bool {
        let lost = |o: &Operand| matches!(o.location, Location::L2 | Location::Llc | Location::Ram);
        CAN_PLACE && self.operands.iter().any(lost)
    }

    /// Puts every operand where it is to be, the farthest first: what follows does not move it.
    pub fn place(&self) {
        for location in [Location::Ram, Location::Llc, Location::L2, Location::L1] {
            let mut any = false;
            for operand in self.operands.iter().filter(|o| o.location == location) {
                // SAFETY: operands are mapped, as `new` asks for.
                unsafe { put(operand.address, operand.len, location) };
                any = true;
            }
            match location {
                Location::Llc if any => sweep(&self.space),
                Location::L2 if any => sweep(&self.space[..self.small]),
                _ => {}
            }
        }
    }

    /// What is wrong with the places, if anything: places the operands and looks.
    pub fn doubt(&self) -> Option<String> {
        if !CAN_PLACE {
            return None;
        }
        let mut wanted: Vec<&Operand> = self
            .operands
            .iter()
            .filter(|o| o.location != Location::None)
            .collect();
        let first = *wanted.first()?;
        let all: u64 = wanted.iter().map(|o| o.len).sum();
        for (level, location, name) in [
            (0, Location::L1, "first"),
            (1, Location::L2, "second"),
            (2, Location::Llc, "last"),
        ] {
            let is = wanted.iter().any(|o| o.location == location);
            if is && self.caches[level].is_some_and(|size| all > size) {
                return Some(format!(
                    "the operands, {all} bytes, do not fit into the {name}-level cache"
                ));
            }
        }
        let costs = self.costs(first.address, first.len.min(SAMPLE));
        // Looking brings lines in: what is looked at first must be what is nearest.
        wanted.sort_by_key(|o| o.location);
        let mut ticks = vec![Vec::new(); wanted.len()];
        for turn in 0..turns(first.len) {
            self.place();
            for (operand, ticks) in wanted.iter().zip(&mut ticks) {
                // SAFETY: operands are mapped, as `new` asks for.
                unsafe { look(operand.address, operand.len, turn, ticks) };
            }
        }
        let mut found = wanted.iter().zip(&mut ticks);
        found.find_map(|(operand, ticks)| misplaced(operand.location, middle(ticks), &costs))
    }

    /// Ticks of a load from each place, of an operand's first bytes.
    fn costs(&self, address: u64, len: u64) -> [(Location, u64); 4] {
        [Location::L1, Location::L2, Location::Llc, Location::Ram].map(|location| {
            let mut ticks = Vec::new();
            for turn in 0..turns(len) {
                // SAFETY: the bytes are an operand's, which is mapped.
                unsafe { put(address, len, location) };
                match location {
                    Location::L2 => sweep(&self.space[..self.small]),
                    Location::Llc => sweep(&self.space),
                    _ => {}
                }
                // SAFETY: as above.
                unsafe { look(address, len, turn, &mut ticks) };
            }
            (location, middle(&mut ticks))
        })
    }
}

fn middle(ticks: &mut [u64]) -> u64 {
    ticks.sort_unstable();
    ticks.get(ticks.len() / 2).copied().unwrap_or(0)
}

/// # Safety
/// The range must be mapped and readable.
unsafe fn put(address: u64, len: u64, location: Location) {
    match location {
        Location::None => {}
        // SAFETY: the caller vouches for the range.
        Location::Ram => unsafe { flush(address, len) },
        Location::Llc => {
            // SAFETY: as above.
            unsafe { touch(address, len) };
            // SAFETY: as above.
            unsafe { demote(address, len) };
        }
        // SAFETY: as above.
        Location::L1 | Location::L2 => unsafe { touch(address, len) },
    }
}

/// Whether a load took as long as from another place: within a fifth of its cost and nearer to it
/// than to that of the place wanted, where the two differ by a quarter at least.
fn misplaced(wanted: Location, ticks: u64, costs: &[(Location, u64)]) -> Option<String> {
    let own = costs.iter().find(|(l, _)| *l == wanted)?.1;
    let (nearest, cost) = *costs.iter().min_by_key(|(_, cost)| cost.abs_diff(ticks))?;
    let apart = own.abs_diff(cost) * 4 > own.min(cost);
    let alike = cost.abs_diff(ticks) * 5 < cost;
    (nearest != wanted && apart && alike).then(|| {
        format!(
            "an operand wanted in {wanted} is rather in {nearest}: a load took {ticks} ticks; {wanted} takes {own}, {nearest} {cost}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: [(Location, u64); 4] = [
        (Location::L1, 40),
        (Location::L2, 48),
        (Location::Llc, 100),
        (Location::Ram, 300),
    ];

    #[test]
    fn the_time_of_a_load_shows_the_cache_level_of_its_line() {
        assert_eq!(misplaced(Location::Llc, 90, &COSTS), None);
        assert!(misplaced(Location::Llc, 290, &COSTS).is_some_and(|t| t.contains("rather in ram")));
        assert!(misplaced(Location::Ram, 41, &COSTS).is_some_and(|t| t.contains("rather in l1")));
        // Between two places nothing is sure.
        assert_eq!(misplaced(Location::Llc, 66, &COSTS), None);
        // The first two levels are too much alike to be distinguished from each other.
        assert_eq!(misplaced(Location::L1, 47, &COSTS), None);
    }

    #[test]
    fn operands_larger_than_their_cache_are_reported() {
        let bytes = [0u8; 64];
        let operand = Operand {
            address: bytes.as_ptr() as u64,
            len: 64,
            location: Location::L1,
        };
        // SAFETY: the buffer outlives the placement.
        let mut placement = unsafe { Placement::new(vec![operand], 0) };
        placement.caches = [Some(63), None, None];
        if CAN_PLACE {
            let doubt = placement.doubt().unwrap();
            assert!(doubt.contains("do not fit into the first-level"), "{doubt}");
        }
        assert!(!placement.is_lost_by_use());
    }
}
