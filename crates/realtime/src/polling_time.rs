//! CPU time of a dispatcher that looks for descriptors by itself.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::shared::Shared;

/// Counts it, for the thread that owns it.
#[derive(Debug, Default)]
pub(crate) struct PollingTime {
    /// CPU time of the thread at the last look, while it polls.
    since: Option<Duration>,
}

impl PollingTime {
    /// Adds what the thread has used since the last look. After each sleep.
    #[inline]
    pub(crate) fn look(&mut self, shared: &Shared) {
        if self.since.is_some() || shared.region.doorbell().is_polled() {
            self.add(shared);
        }
    }

    #[cold]
    fn add(&mut self, shared: &Shared) {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let now = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        if let Some(since) = self.since {
            shared.add_polling_time(now - since);
        }
        self.since = shared.region.doorbell().is_polled().then_some(now);
    }
}
