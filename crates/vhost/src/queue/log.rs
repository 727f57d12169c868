//! Writes to the guest, noted in the front end's log.

use std::sync::Arc;

use super::Queue;
use crate::memory::{DirtyLog, MemoryMap};
use crate::ring::{Buffer, Burst};

impl Queue {
    /// Logs writes from now on, those of copies in flight too, or does not.
    pub(crate) fn set_log(&mut self, log: Option<Arc<DirtyLog>>) {
        self.log = log;
        self.log_all_of_ring();
    }

    /// Where writes to the ring are logged; none if they are not.
    pub(crate) fn set_ring_log(&mut self, at: Option<u64>) {
        self.ring_log = at;
        self.log_all_of_ring();
    }

    /// What the device has written to the ring before counts as written now.
    fn log_all_of_ring(&mut self) {
        if let (Some(log), Some(at), Some(running)) = (&self.log, self.ring_log, &self.running) {
            let missed = running.ring.log_all(log, at, &running.memory);
            self.stats.pages_not_logged += missed;
        }
    }

    /// Logs what was published, and notifies the front end.
    #[cold]
    pub(super) fn log_published(&mut self) {
        let (Some(log), Some(running)) = (&self.log, &self.running) else {
            return;
        };
        if let Some(at) = self.ring_log {
            let missed = running.ring.log_used(&self.used, log, at, &running.memory);
            self.stats.pages_not_logged += missed;
        }
        log.notify();
    }
}

/// Logs the first `bytes` bytes of buffers that were written.
#[cold]
pub(super) fn log_buffers(
    log: &DirtyLog,
    memory: &MemoryMap,
    burst: &Burst,
    buffers: &[Buffer],
    mut bytes: u64,
) -> u64 {
    let mut missed = 0;
    for segment in buffers.iter().flat_map(|buffer| burst.segments_of(buffer)) {
        let part = bytes.min(u64::from(segment.len));
        missed += memory.log(log, segment.ptr, part);
        bytes -= part;
    }
    missed
}
