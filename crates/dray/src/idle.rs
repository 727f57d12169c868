//! Waiting for what is in flight when its owner is dropped.

use std::thread;
use std::time::{Duration, Instant};

/// After so long without a completion a thread sleeps between two polls.
const SLEEPS_AFTER: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_micros(100);

/// Time without a completion.
#[derive(Debug)]
pub(crate) struct Idle {
    since: Option<Instant>,
    most: Duration,
}

impl Idle {
    /// Begins with the first [`rest`](Idle::rest), and ends after `most`.
    pub(crate) fn new(most: Duration) -> Idle {
        Idle { since: None, most }
    }

    /// Lets other threads run. False, at once, if the time is over.
    pub(crate) fn rest(&mut self) -> bool {
        let now = Instant::now();
        let idle = now.duration_since(*self.since.get_or_insert(now));
        if idle >= self.most {
            return false;
        }
        match idle >= SLEEPS_AFTER {
            true => thread::sleep(SLEEP),
            false => thread::yield_now(),
        }
        true
    }
}
