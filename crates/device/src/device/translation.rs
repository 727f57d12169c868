//! Work of queues without ATS.

use super::Device;
use crate::WorkId;

impl Device {
    /// Whether the device has the addresses of this work translated, and so learns of all its page
    /// faults. It has not where ATS is off for the device or its queue (spec 3.13.1).
    #[inline]
    pub(super) fn translates(&self, id: WorkId) -> bool {
        !self.untranslated || self.queue_translates(id)
    }

    #[cold]
    fn queue_translates(&self, id: WorkId) -> bool {
        let queue = self
            .jobs
            .get(id)
            .map(|job| usize::from(job.job_origin.queue));
        queue.is_none_or(|queue| self.config.pci.ats && !self.queues[queue].config.ats_disable)
    }
}
