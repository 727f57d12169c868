//! Which units a program accesses: one sequence for each working set, which all runs of it share.

use std::sync::{Arc, Mutex, PoisonError};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::Pattern;
use super::program::UNIT;

/// Parts of all accesses, at most, by which the rank of one is found.
const GUIDES: u64 = 8192;
/// Accesses that are drawn at once.
const CHUNK: usize = 1 << 14;

/// The accesses of a working set by a Zipf law with exponent 1, in whole numbers, so that all machines
/// agree.
#[derive(Debug)]
pub struct Accesses {
    /// Accesses that go to ranks up to this one, of all of them.
    cumulative: Vec<u64>,
    /// The first rank that each part of all accesses may go to.
    guide: Vec<u32>,
    /// Bits of an access that do not say which part it belongs to.
    guide_shift: u32,
    /// The unit of each rank.
    units: Vec<u32>,
    /// Share of all accesses that goes to each unit.
    shares: Vec<f64>,
    drawn: Mutex<Drawn>,
}

/// The sequence as far as a run has asked for it.
#[derive(Debug)]
struct Drawn {
    rng: ChaCha8Rng,
    chunks: Vec<Arc<[u32]>>,
}

impl Accesses {
    /// The accesses of a pattern; of its sizes only those of its memory count.
    pub fn of(pattern: &Pattern) -> Accesses {
        let all = pattern.bytes / UNIT;
        let accessed = (pattern.accessed_bytes / UNIT).clamp(1, all.max(1));
        let cold = all.saturating_sub(accessed);
        let weight = |rank: u64| (1u64 << 40) / (rank + 1);
        let mut cumulative = Vec::with_capacity(accessed as usize);
        let mut sum = 0u64;
        for rank in 0..accessed {
            sum += weight(rank);
            cumulative.push(sum);
        }
        let units: Vec<u32> = (0..accessed)
            .map(|rank| (cold + spread(rank, accessed)) as u32)
            .collect();
        let mut shares = vec![0.0; all.max(1) as usize];
        for (rank, unit) in units.iter().enumerate() {
            shares[*unit as usize] = weight(rank as u64) as f64 / sum as f64;
        }
        let guide_shift = (sum / GUIDES + 1).next_power_of_two().ilog2();
        let guide = (0..=sum >> guide_shift)
            .map(|n| cumulative.partition_point(|until| *until <= n << guide_shift) as u32)
            .collect();
        Accesses {
            cumulative,
            guide,
            guide_shift,
            units,
            shares,
            drawn: Mutex::new(Drawn {
                rng: ChaCha8Rng::seed_from_u64(17),
                chunks: Vec::new(),
            }),
        }
    }

    /// Share of all accesses that goes to each unit.
    pub(super) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Calls `see` with the units of `count` accesses of the sequence from `first` on.
    pub(super) fn each(&self, mut first: u64, mut count: u64, mut see: impl FnMut(u32)) {
        while count > 0 {
            let chunk = self.chunk((first / CHUNK as u64) as usize);
            let rest = &chunk[(first % CHUNK as u64) as usize..];
            let part = &rest[..rest.len().min(count as usize)];
            part.iter().copied().for_each(&mut see);
            first += part.len() as u64;
            count -= part.len() as u64;
        }
    }

    fn chunk(&self, index: usize) -> Arc<[u32]> {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let Drawn { rng, chunks } = &mut *drawn;
        while chunks.len() <= index {
            chunks.push((0..CHUNK).map(|_| self.draw(rng)).collect());
        }
        chunks[index].clone()
    }

    /// The unit of the next access.
    fn draw(&self, rng: &mut ChaCha8Rng) -> u32 {
        let total = self.cumulative.last().copied().unwrap_or(1);
        let drawn = ((u128::from(rng.next_u64()) * u128::from(total)) >> 64) as u64;
        let number = (drawn >> self.guide_shift) as usize;
        let first = self.guide[number] as usize;
        let end = match self.guide.get(number + 1) {
            Some(next) => (*next as usize + 1).min(self.cumulative.len()),
            None => self.cumulative.len(),
        };
        let rank = first + self.cumulative[first..end].partition_point(|sum| *sum <= drawn);
        self.units[rank]
    }
}

/// Where the unit of a rank lies, so that hot units are not neighbours: a multiplication by a prime
/// that is larger than any number of units, which gives each unit once.
fn spread(rank: u64, units: u64) -> u64 {
    rank * 2_654_435_761 % units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_exactly_one_rank() {
        for units in [1, 2, 511, 512, 13_824] {
            let mut seen = vec![false; units as usize];
            for rank in 0..units {
                seen[spread(rank, units) as usize] = true;
            }
            assert!(seen.into_iter().all(|once| once), "{units}");
        }
    }

    #[test]
    fn the_access_sequence_can_be_read_in_parts() {
        let pattern = Pattern {
            fast_bytes: 1 << 30,
            bytes: 5 << 30,
            accessed_bytes: 4 << 30,
            allocation_s: 0,
            huge_percent: 0,
            threads: 1,
        };
        let accesses = Accesses::of(&pattern);
        let of = |first: u64, count: u64| {
            let mut units = Vec::new();
            accesses.each(first, count, |unit| units.push(unit));
            units
        };
        let count = 3 * CHUNK as u64 / 2;
        let whole = of(0, count);
        assert_eq!(whole.len() as u64, count);
        // What is cold comes first and is not accessed.
        assert!(whole.iter().all(|unit| (512..2560).contains(unit)));
        let mut parts = of(0, 0);
        for (first, part) in [(0, 5), (5, CHUNK as u64), (CHUNK as u64 + 5, count)] {
            parts.extend(of(first, part));
        }
        parts.truncate(count as usize);
        assert_eq!(parts, whole);
        // The first rank has about one access in eight.
        let first = whole.iter().filter(|unit| **unit == 512).count() as f64;
        assert!((first / count as f64 - accesses.shares()[512]).abs() < 0.01);
    }
}
