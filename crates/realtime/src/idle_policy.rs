//! When a thread that finds nothing to do goes to sleep.
//!
//! To look for a while before sleeping pays where work comes soon: nobody has to wake the thread. Where the
//! program needs the same processor it does not, for no work comes before the thread sleeps. So a thread that has
//! looked in vain a few times sleeps at once, and tries again now and then.

use std::hint::spin_loop;
use std::time::Instant;

use crate::Idle;

/// Polls between two readings of the clock.
const POLLS: u32 = 64;
/// So often in succession it looks in vain.
const VAIN: u32 = 4;
/// Sleeps from one trial to the next, then.
const SLEEPS: u32 = 64;

/// Counts the polls of a thread that found nothing.
#[derive(Debug)]
pub(crate) struct IdlePolicy {
    idle: Idle,
    polls: u32,
    since: Option<Instant>,
    /// Sleeps since something was found before one.
    vain: u32,
}

impl IdlePolicy {
    pub(crate) fn new(idle: Idle) -> IdlePolicy {
        IdlePolicy {
            idle,
            polls: 0,
            since: None,
            vain: 0,
        }
    }

    /// Something was found.
    #[inline]
    pub(crate) fn found(&mut self) {
        if self.polls > 0 || self.since.is_some() {
            self.vain = 0;
        }
        self.polls = 0;
        self.since = None;
    }

    /// The thread has slept, since nothing was found.
    pub(crate) fn slept(&mut self) {
        self.vain = self.vain.saturating_add(1);
        if self.vain >= VAIN + SLEEPS {
            self.vain = VAIN - 1;
        }
        self.polls = 0;
        self.since = None;
    }

    /// Nothing was found. True if it is time to sleep.
    #[inline]
    pub(crate) fn is_over(&mut self) -> bool {
        spin_loop();
        self.polls += 1;
        match self.idle {
            Idle::Spin => false,
            Idle::Park { .. } if self.vain >= VAIN => true,
            Idle::Park { after } => {
                if self.polls < POLLS {
                    return false;
                }
                self.polls = 1;
                let since = *self.since.get_or_insert_with(Instant::now);
                since.elapsed() >= after
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Polls until it sleeps; how many.
    fn polls(policy: &mut IdlePolicy) -> u32 {
        let polls = 1 + (0..2 * POLLS).take_while(|_| !policy.is_over()).count();
        policy.slept();
        polls as u32
    }

    #[test]
    fn who_looks_in_vain_sleeps_at_once_and_tries_again() {
        let mut policy = IdlePolicy::new(Idle::Park {
            after: Duration::ZERO,
        });
        for round in 0..3 {
            let trials = if round == 0 { VAIN } else { 1 };
            for _ in 0..trials {
                assert_eq!(polls(&mut policy), POLLS);
            }
            // What comes after a sleep was not found by looking.
            for _ in 0..SLEEPS {
                policy.found();
                assert_eq!(polls(&mut policy), 1);
            }
        }
    }

    #[test]
    fn who_finds_something_before_sleeping_goes_on_looking() {
        let mut policy = IdlePolicy::new(Idle::Park {
            after: Duration::ZERO,
        });
        for _ in 0..VAIN + SLEEPS - 1 {
            polls(&mut policy);
        }
        assert_eq!(polls(&mut policy), 1);
        assert!(!policy.is_over(), "the trial");
        policy.found();
        for _ in 0..VAIN {
            assert_eq!(polls(&mut policy), POLLS);
        }
        assert_eq!(polls(&mut policy), 1);
    }

    #[test]
    fn who_spins_never_sleeps() {
        let mut policy = IdlePolicy::new(Idle::Spin);
        assert!((0..1000).all(|_| !policy.is_over()));
    }
}
