//! When a thread that finds nothing to do goes to sleep.

use std::hint::spin_loop;
use std::time::Instant;

use crate::Idle;

/// Polls between two readings of the clock.
const POLLS: u32 = 64;

/// Counts the polls of a thread that found nothing.
#[derive(Debug)]
pub(crate) struct IdlePolicy {
    idle: Idle,
    polls: u32,
    since: Option<Instant>,
}

impl IdlePolicy {
    pub(crate) fn new(idle: Idle) -> IdlePolicy {
        IdlePolicy {
            idle,
            polls: 0,
            since: None,
        }
    }

    /// Something was found.
    #[inline]
    pub(crate) fn renew(&mut self) {
        self.polls = 0;
        self.since = None;
    }

    /// Nothing was found. True if it is time to sleep.
    #[inline]
    pub(crate) fn is_over(&mut self) -> bool {
        spin_loop();
        self.polls += 1;
        if self.polls < POLLS {
            return false;
        }
        self.polls = 0;
        match self.idle {
            Idle::Spin => false,
            Idle::Park { after } => {
                let since = *self.since.get_or_insert_with(Instant::now);
                since.elapsed() >= after
            }
        }
    }
}
