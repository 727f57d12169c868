//! What page migration costs on this machine, measured.

mod compaction;
mod frames;
mod hemem;
mod mechanism;
mod memory;
mod policies;
mod program;
mod tiers;

pub use compaction::{Compaction, compaction};
pub use frames::{Frames, frames};
pub use hemem::hemem;
pub use mechanism::{Cost, costs};
pub use policies::{Followed, SECONDS, TRACES, Trace, WAYS, Way, followed, followed_by_kernel};
pub use program::{Interval, ProgramCost, Turns, a_core, churns, fits, program};
pub use tiers::{Access, Case, Phase, Running, WorkingSet, run};

use serde::Serialize;

/// Median and quartiles of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quartiles {
    /// A quarter is below.
    pub lower: u64,
    /// Half is below.
    pub median: u64,
    /// A quarter is above.
    pub upper: u64,
}

impl Quartiles {
    /// Of one sample or more.
    pub fn of(mut samples: Vec<u64>) -> Quartiles {
        samples.sort_unstable();
        let at = |part: usize| samples.get(samples.len() * part / 4).copied().unwrap_or(0);
        Quartiles {
            lower: at(1),
            median: at(2),
            upper: at(3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_0_to_100_are_25_50_75() {
        let quartiles = Quartiles::of((0..101).rev().collect());
        let expected = Quartiles {
            lower: 25,
            median: 50,
            upper: 75,
        };
        assert_eq!(quartiles, expected);
    }
}
