//! An engine starts work, and reports how the list of a batch could be read.

use dray_spec::Descriptor;

use super::Device;
use crate::check::goes_between;
use crate::task::{Action, ListRead, RecordPage, Task};
use crate::{DescriptorResult, Effect, Work, WorkId, WorkKind};

impl Device {
    /// What an engine needs to execute work that it starts now. `None` if the work has ended.
    ///
    /// The address spaces of inter-domain work are looked up here, and hold until it ends
    /// (spec 3.14.5).
    #[inline]
    pub fn start(&mut self, work: &Work) -> Option<Task> {
        let id = work.id;
        let job = self.jobs.get(id)?;
        let (descriptor, pasid) = (job.descriptor, job.job_origin.submitter.pasid);
        let mut domains = None;
        let action = match work.kind {
            WorkKind::Execute(opcode) if goes_between(opcode) => match self.domains(id) {
                Ok(found) => {
                    domains = Some(found);
                    Action::Execute(opcode)
                }
                Err(outcome) => Action::End(outcome),
            },
            WorkKind::Execute(opcode) => Action::Execute(opcode),
            WorkKind::Reject(rejection) => Action::End(rejection.outcome()),
            WorkKind::FetchList { address, count } => Action::ReadList { address, count },
        };
        Some(Task {
            id,
            action,
            descriptor,
            pasid,
            record: self.record_address(id),
            log_takes_record: self.event_log.on,
            domains,
            translates: self.translates(id),
            // A `Function` knows better: it has PCI's controls.
            requests_pages: false,
        })
    }

    /// The list of batch `id` has been read, as far as `read` says; `list` is what there is of it, and
    /// its members run (spec 8.3.2). With an empty list the batch ends at once. A list that has been
    /// read before, or of work that is no batch, changes nothing.
    pub fn list_read(
        &mut self,
        id: WorkId,
        list: &[Descriptor],
        read: ListRead,
        effects: &mut Vec<Effect>,
    ) {
        match read.record {
            RecordPage::Discard => {
                return self.done(id, &DescriptorResult::unrecorded(), effects);
            }
            RecordPage::Log => {
                self.record_faults(id);
            }
            RecordPage::Writable => {}
        }
        self.begin_batch(id, list, read.fault, effects);
    }
}
