//! An adversary that does only what the specification allows.
//!
//! A program must be right whenever the device reads a source, in whichever order it writes the bytes of a destination,
//! whenever and in whichever order descriptors end, and wherever a page fault stops one. [`Chaos`] has the device in real
//! time choose among all of that. Each choice follows from the seed and from which submission of which queue and
//! address space it is for, so that the same submissions meet the same choices.

mod kinds;
mod memory;
mod plan;

use std::fmt;
use std::str::FromStr;

pub use kinds::{Kind, Kinds};
pub(crate) use memory::{ChaoticMemory, Piece};
pub(crate) use plan::{Delivery, Outage, Plan, Submission};
use thiserror::Error;

/// How a device in real time chooses among what the specification allows.
///
/// As text: `SEED[:KINDS][@FIRST-LAST]`; `7:delay+fault@0-15` delays and faults the first 16 submissions of each queue
/// and address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chaos {
    /// What all choices follow from.
    pub seed: u64,
    /// What it may do.
    pub kinds: Kinds,
    /// The first and the last submission that it disturbs, counted from 0 for each work queue and address space.
    pub window: (u64, u64),
}

/// Text that is no [`Chaos`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChaosError {
    /// The seed.
    #[error("{0:?} is no seed: a seed is a number")]
    Seed(String),
    /// A word that is neither a kind nor a profile.
    #[error(
        "{0:?} is no kind of disturbance: {kinds}, several of them with +, or a profile: {profiles}",
        kinds = kinds::names(),
        profiles = kinds::profiles()
    )]
    Kind(String),
    /// The submissions.
    #[error("{0:?} is no range of submissions: @FIRST-LAST, counted from 0")]
    Window(String),
}

impl Chaos {
    /// All that every program must expect, for all submissions.
    pub fn new(seed: u64) -> Chaos {
        Chaos {
            seed,
            kinds: Kinds::LEGAL,
            window: (0, u64::MAX),
        }
    }

    /// Whether it disturbs a submission.
    pub(crate) fn covers(&self, index: u64) -> bool {
        (self.window.0..=self.window.1).contains(&index)
    }
}

impl FromStr for Chaos {
    type Err = ChaosError;

    fn from_str(text: &str) -> Result<Chaos, ChaosError> {
        let (head, window) = match text.split_once('@') {
            Some((head, window)) => (head, Some(window)),
            None => (text, None),
        };
        let (seed, kinds) = match head.split_once(':') {
            Some((seed, kinds)) => (seed, Some(kinds)),
            None => (head, None),
        };
        let mut chaos = Chaos::new(seed.parse().map_err(|_| ChaosError::Seed(seed.into()))?);
        if let Some(kinds) = kinds {
            chaos.kinds = kinds.parse()?;
        }
        if let Some(window) = window {
            let bad = || ChaosError::Window(window.into());
            let (first, last) = window.split_once('-').ok_or_else(bad)?;
            chaos.window = (
                first.parse().map_err(|_| bad())?,
                last.parse().map_err(|_| bad())?,
            );
            if chaos.window.0 > chaos.window.1 {
                return Err(bad());
            }
        }
        Ok(chaos)
    }
}

impl fmt::Display for Chaos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)?;
        if self.kinds != Kinds::LEGAL {
            write!(f, ":{}", self.kinds)?;
        }
        match self.window {
            (0, u64::MAX) => Ok(()),
            (first, last) => write!(f, "@{first}-{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "0",
            "18446744073709551615",
            "7:errors",
            "7:broken-hardware@3-3",
            "7:outages",
            "7:halt+dead",
            "7:delay+fault@0-15",
            "9@2-5",
            "9:none",
        ] {
            let chaos: Chaos = text.parse().unwrap();
            assert_eq!(chaos.to_string(), text);
        }
        let profile: Chaos = "1:legal".parse().unwrap();
        assert_eq!(profile, Chaos::new(1));
    }

    #[test]
    fn other_text_is_refused() {
        let seed = |text: &str| Err(ChaosError::Seed(text.into()));
        let kind = |text: &str| Err(ChaosError::Kind(text.into()));
        let window = |text: &str| Err(ChaosError::Window(text.into()));
        for (text, error) in [
            ("", seed("")),
            ("-1", seed("-1")),
            ("x:delay", seed("x")),
            ("1:", kind("")),
            ("1:delay+", kind("")),
            ("1:dealy", kind("dealy")),
            ("1@", window("")),
            ("1@5", window("5")),
            ("1@5-4", window("5-4")),
            ("1@5-x", window("5-x")),
        ] {
            assert_eq!(text.parse::<Chaos>(), error, "{text}");
        }
    }
}
