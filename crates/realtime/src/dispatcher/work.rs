//! What an engine has started: descriptors are executed, lists of batches fetched.

use dray_device::{Access, Domains, Outcome, Work, WorkId, WorkKind};
use dray_spec::{Descriptor, Opcode};
use zerocopy::transmute;

use super::Dispatcher;
use crate::outlet::RECORD_BYTES;
use crate::worker::{ATTEMPTS, Order, carry_out};
use crate::{SharedMemory, View};

impl<M: SharedMemory> Dispatcher<M> {
    #[inline]
    pub(super) fn begin(&mut self, index: usize, work: Work, batch: Option<WorkId>) {
        if self.outlet.steps {
            let engine = self.engines[index].id;
            self.outlet
                .tell_start(work.id, engine, batch, &mut self.function);
        }
        let outcome = match work.kind {
            _ if !self.is_recordable(work.id) => Outcome::unrecorded(),
            WorkKind::Execute(opcode) => match self.execute(index, work.id, opcode, None) {
                Some(outcome) => outcome,
                None => return,
            },
            WorkKind::ExecuteBetween(opcode) => match self.function.domains(work.id) {
                Ok(domains) => match self.execute(index, work.id, opcode, Some(domains)) {
                    Some(outcome) => outcome,
                    None => return,
                },
                Err(outcome) => outcome,
            },
            WorkKind::Reject(rejection) => rejection.outcome(),
            WorkKind::FetchList { address, count } => {
                self.engines[index].batch = Some(work.id);
                self.fetch(work.id, address, count);
                return self.carry_out();
            }
        };
        self.function.done(work.id, &outcome, &mut self.effects);
        self.carry_out();
    }

    /// Whether the completion record of what is to begin has a place: its page can be written, or the
    /// event log takes it (spec 5.4, 3.13.3).
    #[inline]
    fn is_recordable(&mut self, id: WorkId) -> bool {
        let Some(address) = self.function.record_address(id) else {
            return true;
        };
        let memory = &mut self.outlet.memory;
        let pasid = self.function.pasid(id).unwrap_or(0);
        memory.enter(View::of_its_own(pasid, self.function.requests_pages(id)));
        memory.accessible(address, RECORD_BYTES, Access::Write) == RECORD_BYTES
            || self.function.record_faults(id)
    }

    /// Has an engine carry a descriptor out: how it ended, unless that is for its thread to tell.
    #[inline]
    fn execute(
        &mut self,
        index: usize,
        id: WorkId,
        opcode: Opcode,
        domains: Option<Domains>,
    ) -> Option<Outcome> {
        let descriptor = *self.function.descriptor(id)?;
        let pasid = self.function.pasid(id)?;
        let translates = self.function.translates(id);
        let mut view = match opcode {
            Opcode::Drain => View::of_its_own(pasid, self.function.requests_pages(id)),
            _ => View::of(&descriptor, pasid),
        };
        // Pages are asked for by who translates (spec Table 9-2).
        view.blocks &= translates;
        let order = Order {
            id,
            opcode,
            view,
            descriptor,
            domains,
            translates,
        };
        let engine = &mut self.engines[index];
        match &mut engine.worker {
            Some(worker) if !engine.alone => {
                engine.outstanding += 1;
                worker.order(order);
                None
            }
            _ => Some(carry_out(
                &order,
                &mut self.outlet.memory,
                &self.shared,
                &self.name,
            )),
        }
    }

    /// Reads the list of a batch, as far as it can be read (spec 8.3.2).
    fn fetch(&mut self, id: WorkId, address: u64, count: u32) {
        const SIZE: u64 = size_of::<Descriptor>() as u64;
        let size = u64::from(count) * SIZE;
        let memory = &mut self.outlet.memory;
        let pasid = self.function.pasid(id).unwrap_or(0);
        memory.enter(View::of_its_own(pasid, self.function.requests_pages(id)));
        let mut whole = 0;
        for _ in 0..ATTEMPTS {
            whole = memory.accessible(address, size, Access::Read) / SIZE;
            self.list.clear();
            for n in 0..whole {
                let mut bytes = [0; SIZE as usize];
                memory.read(address + n * SIZE, &mut bytes);
                self.list.push(transmute!(bytes));
            }
            if memory.settle() {
                break;
            }
            whole = 0;
        }
        let fault = address.saturating_add(whole * SIZE);
        let effects = &mut self.effects;
        if whole == u64::from(count) {
            self.function.list_fetched(id, &self.list, effects);
        } else if whole == 0 {
            self.function.list_faulted(id, fault, effects);
        } else {
            self.function
                .list_fetched_until(id, &self.list, fault, effects);
        }
    }
}
