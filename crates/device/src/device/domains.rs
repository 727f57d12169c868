//! Inter-domain descriptors on the device: their entries are looked up, windows change.

use dray_spec::{CompletionRecord, Flags, Opcode, Status};

use super::Device;
use crate::execute::domain::refusal;
use crate::idpt::{Handles, Idpt};
use crate::{DescriptorResult, Domains, Effect, IdptEntry, Rejection, WorkId, WorkKind};

/// Who works with an entry of the table, and who waits for that.
#[derive(Debug, Clone, Default)]
pub(super) struct Windows {
    /// Descriptors that have looked entries up, with the handles.
    users: Vec<(WorkId, Domains)>,
    /// Updates, each with the descriptors that work with what was there before.
    updates: Vec<(WorkId, Vec<WorkId>)>,
}

impl Windows {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Descriptors that work with the entry `handle`.
    fn users_of(&self, handle: u16) -> Vec<WorkId> {
        let uses = |domains: &Domains| {
            let both = [domains.first, domains.second].into_iter().flatten();
            both.map(|domain| domain.handle).any(|used| used == handle)
        };
        let users = self.users.iter().filter(|(_, domains)| uses(domains));
        users.map(|(id, _)| *id).collect()
    }
}

impl Device {
    /// Address spaces of inter-domain work, asked for when it starts. What the table says then holds
    /// for it until it ends (spec 3.14.5). The error is the outcome with which it ends, if the table
    /// does not let it start (spec 5.6).
    #[inline(never)]
    pub(super) fn domains(&mut self, id: WorkId) -> Result<Domains, DescriptorResult> {
        let ended = DescriptorResult::status(Status::IDPT_HANDLE);
        let job = self.jobs.get(id).ok_or(ended)?;
        let d = &job.descriptor;
        let opcode = d.opcode().map_err(|_| ended)?;
        let domains = self.idpt.domains(opcode, d, job.job_origin.submitter);
        let domains = domains.map_err(|(status, handle)| refusal(status, handle))?;
        self.windows.users.retain(|user| user.0 != id);
        self.windows.users.push((id, domains));
        Ok(domains)
    }

    /// The handles of the table.
    pub(crate) fn idpt_handles(&mut self) -> &mut Handles {
        self.idpt.handles()
    }

    /// The whole table.
    pub(crate) fn idpt(&self) -> &Idpt {
        &self.idpt
    }

    /// Replaces the whole table.
    pub(crate) fn set_idpt(&mut self, idpt: Idpt) {
        self.idpt = idpt;
    }

    /// An entry of the inter-domain permissions table; `None` beyond its end.
    pub fn idpt_entry(&self, index: u16) -> Option<&IdptEntry> {
        self.idpt.get(index)
    }

    /// Replaces an entry. Which fields may change when is for the caller to know (spec Table 9-10).
    /// False beyond the end of the table.
    pub fn set_idpt_entry(&mut self, index: u16, entry: IdptEntry) -> bool {
        match self.idpt.get_mut(index) {
            Some(place) => {
                *place = entry;
                true
            }
            None => false,
        }
    }

    /// What an engine does with an inter-domain descriptor; `None` for an update that waits.
    #[inline(never)]
    pub(super) fn begin_between(&mut self, id: WorkId, opcode: Opcode) -> Option<WorkKind> {
        if opcode != Opcode::UpdateWindow {
            return Some(WorkKind::Execute(opcode));
        }
        let job = self.jobs.get(id)?;
        if let Err(status) = self.idpt.update(&job.descriptor, job.job_origin.submitter) {
            return Some(WorkKind::Reject(Rejection::from(status)));
        }
        let users = self.windows.users_of(job.descriptor.destination_handle());
        let drains = !job
            .descriptor
            .flags()
            .contains(Flags::UPDATE_WINDOW_SUPPRESS_DRAIN);
        if drains && !users.is_empty() {
            self.windows.updates.push((id, users));
            return None;
        }
        Some(WorkKind::Execute(opcode))
    }

    /// Work that may have been between domains has ended: updates may have waited for it.
    #[cold]
    pub(super) fn end_between(&mut self, id: WorkId, effects: &mut Vec<Effect>) {
        self.windows.users.retain(|user| user.0 != id);
        for (_, users) in &mut self.windows.updates {
            users.retain(|user| *user != id);
        }
        while let Some(at) = self.windows.updates.iter().position(|u| u.1.is_empty()) {
            let (update, _) = self.windows.updates.remove(at);
            let record = CompletionRecord::with_status(Status::SUCCESS);
            self.done(update, &DescriptorResult::of(record), effects);
        }
    }
}
