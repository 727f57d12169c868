//! How much of a session's time may go into close looks at programs.
//!
//! A close look costs a program some tenths of a millisecond: far longer than most descriptors take. The first submissions
//! of each place in a program are looked at always. What repeats has a share of the time, so that a long run is not much slower
//! than one without looks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dray_realtime::Origin;

use crate::processes::Pid;

/// Submissions of a place in a program that are looked at whatever it costs.
const FIRST: u32 = 64;
/// Places that are told apart; those beyond have the share alone.
const PLACES: usize = 4096;
/// One part of the time in so many is for looks.
const SHARE: u32 = 16;
/// What may be saved up for later.
const SAVED: Duration = Duration::from_millis(20);

/// What may still be spent.
#[derive(Debug)]
pub(super) struct Budget {
    /// `None`: without limit.
    share: Option<Share>,
    /// Submissions so far, by process, instruction and stack pointer.
    places: BTreeMap<(Option<Pid>, u64, u64), u32>,
}

#[derive(Debug)]
struct Share {
    since: Instant,
    /// What was earned before is kept as what may be spent in all.
    earned: Duration,
    spent: Duration,
}

impl Budget {
    pub(super) fn new(limited: bool) -> Budget {
        Budget {
            share: limited.then(|| Share {
                since: Instant::now(),
                earned: SAVED,
                spent: Duration::ZERO,
            }),
            places: BTreeMap::new(),
        }
    }

    /// Counts a submission: whether it is to be looked at.
    pub(super) fn admits(&mut self, pid: Option<Pid>, origin: Option<&Origin>) -> bool {
        let place = origin.map_or((0, 0), |origin| (origin.site, origin.stack));
        let key = (pid, place.0, place.1);
        let room = self.places.len() < PLACES;
        let is_new = match self.places.get_mut(&key) {
            Some(count) => {
                *count = count.saturating_add(1);
                *count <= FIRST
            }
            None if room => {
                self.places.insert(key, 1);
                true
            }
            None => false,
        };
        is_new || self.has_credit()
    }

    /// Whether something may be spent on what is not new.
    pub(super) fn has_credit(&mut self) -> bool {
        let Some(share) = &mut self.share else {
            return true;
        };
        let now = Instant::now();
        share.earned += now.duration_since(share.since) / SHARE;
        share.since = now;
        // What was not needed for long is not spent at once.
        share.earned = share.earned.min(share.spent + SAVED);
        share.spent < share.earned
    }

    pub(super) fn spend(&mut self, time: Duration) {
        if let Some(share) = &mut self.share {
            share.spent += time;
        }
    }

    /// A process has ended, or executes another program.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.places.retain(|(of, _, _), _| *of != Some(pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(site: u64) -> Origin {
        Origin {
            site,
            ..Origin::default()
        }
    }

    #[test]
    fn what_is_new_is_admitted_when_all_is_spent() {
        let mut budget = Budget::new(true);
        budget.spend(Duration::from_secs(3600));
        let admitted = |budget: &mut Budget, site| {
            let all = (0..2 * FIRST).filter(|_| budget.admits(Some(1), Some(&at(site))));
            all.count() as u32
        };
        assert_eq!(admitted(&mut budget, 1), FIRST);
        assert_eq!(admitted(&mut budget, 2), FIRST, "another place");
        assert_eq!(admitted(&mut budget, 1), 0);
        // Another program under the same number.
        budget.forget(1);
        assert_eq!(admitted(&mut budget, 1), FIRST);
    }

    #[test]
    fn what_is_saved_has_a_bound_and_no_limit_has_none() {
        let mut budget = Budget::new(true);
        assert!(budget.has_credit());
        budget.spend(SAVED + Duration::from_secs(3600));
        assert!(!budget.has_credit());
        let mut open = Budget::new(false);
        open.spend(Duration::from_secs(3600));
        assert!(open.has_credit());
    }
}
