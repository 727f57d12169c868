//! Whether a thread of the device gets a processor when it wants one.
//!
//! Programs that poll without giving way can have all processors to themselves for many milliseconds.
//! The kernel counts how long each thread was runnable and did not run; a thread that finds this to be
//! much of its time says so on the region, and who submits gives way then.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use dray_ring::Doorbell;

/// Between two looks at least: an eighth of it is longer than the single waits of a device whose
/// program starts, and shorter than those behind programs that keep all processors.
const INTERVAL: Duration = Duration::from_millis(20);
/// Turns with work between two readings of the clock.
const TURNS: u32 = 64;
/// A wait of one part in so many of the time is a delay.
const SHARE: u32 = 8;
/// What was said holds for so long: those who give way hide what they give way to.
const HOLDS: Duration = Duration::from_secs(1);

/// What one thread knows of its waits.
#[derive(Debug)]
pub(crate) struct RunDelay {
    /// `None` where the kernel does not count (`CONFIG_SCHED_INFO`).
    counts: Option<File>,
    bit: u32,
    turns: u32,
    looked: Instant,
    waited: Duration,
    until: Option<Instant>,
}

impl RunDelay {
    /// For the calling thread, which is the device's number `index`; 0 is the dispatcher.
    pub(crate) fn new(index: usize) -> RunDelay {
        let counts = File::open("/proc/thread-self/schedstat").ok();
        let waited = counts.as_ref().and_then(waited).unwrap_or_default();
        RunDelay {
            counts,
            bit: 1 << (index % 29),
            turns: 0,
            looked: Instant::now(),
            waited,
            until: None,
        }
    }

    /// The thread has found something to do.
    #[inline]
    pub(crate) fn worked(&mut self, region: &Doorbell) {
        self.turns += 1;
        if self.turns >= TURNS {
            self.look(region);
        }
    }

    /// Looks, if it is time, and says what has changed. After each sleep.
    #[cold]
    pub(crate) fn look(&mut self, region: &Doorbell) {
        self.turns = 0;
        let now = Instant::now();
        let passed = now.duration_since(self.looked);
        if passed < INTERVAL {
            return;
        }
        let Some(waited) = self.counts.as_ref().and_then(waited) else {
            return;
        };
        let since = waited.saturating_sub(self.waited);
        (self.looked, self.waited) = (now, waited);
        // A thread that slept for long has had little time to wait.
        if is_delay(since, passed) {
            self.until = Some(now + HOLDS);
            region.set_delayed(self.bit, true);
        } else if self.until.is_some_and(|until| now >= until) {
            self.until = None;
            region.set_delayed(self.bit, false);
        }
    }
}

fn is_delay(waited: Duration, passed: Duration) -> bool {
    waited * SHARE > passed
}

/// How long the thread of this file was runnable and did not run (kernel, sched-stats.rst).
fn waited(counts: &File) -> Option<Duration> {
    let mut text = [0; 96];
    let bytes = counts.read_at(&mut text, 0).ok()?;
    parse(str::from_utf8(&text[..bytes]).ok()?)
}

/// The second of three numbers, nanoseconds.
fn parse(text: &str) -> Option<Duration> {
    let waited = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dray_ring::{CompletionBell, Futex};

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse("5 70 3\n"), Some(Duration::from_nanos(70)));
        for text in ["", "5", "a b c"] {
            assert_eq!(parse(text), None);
        }
    }

    #[test]
    fn a_wait_of_an_eighth_is_a_delay() {
        let ms = Duration::from_millis;
        assert!(!is_delay(ms(1), ms(8)));
        assert!(is_delay(ms(2), ms(8)));
    }

    #[test]
    fn each_thread_takes_back_what_it_said_itself() {
        let region = Doorbell::new(Futex::default(), CompletionBell::new(Futex::default()));
        region.set_delayed(1, true);
        region.set_delayed(2, true);
        region.set_delayed(1, false);
        assert!(region.is_delayed());
        region.set_delayed(2, false);
        assert!(!region.is_delayed());
    }
}
