//! What engines take, and how it ends: the [`Device`](crate::Device)'s ways, and what registers have
//! to do with them.

use dray_spec::registers::WorkQueueState;
use dray_spec::{CompletionRecord, Descriptor, Status};

use super::Function;
use crate::error_report::RECORD_FAULT;
use crate::registers::{Report, Source};
use crate::{
    AddressSpace, DescriptorResult, Effect, LifecycleEvent, ListRead, Member, Task, Work, WorkId,
};

impl Function {
    /// Next descriptor for `engine`; see [`Device::take`](crate::Device::take). None comes while a
    /// full event log blocks the device (spec 5.9).
    #[inline]
    pub fn take(&mut self, engine: u16, effects: &mut Vec<Effect>) -> Option<Work> {
        if self.backlog.is_blocked() {
            return None;
        }
        let work = self.device.take(engine);
        if self.file.watches_occupancy {
            self.check_occupancies(effects);
        }
        work
    }

    #[cold]
    fn check_occupancies(&mut self, effects: &mut Vec<Effect>) {
        for wq in 0..self.file.queues.len() {
            self.check_occupancy(wq, effects);
        }
    }

    /// Whether engines get nothing until software makes room in a full event log (spec 5.9).
    pub fn is_blocked(&self) -> bool {
        self.backlog.is_blocked()
    }

    /// See [`Device::start`](crate::Device::start).
    #[inline]
    pub fn start(&mut self, work: &Work) -> Option<Task> {
        let mut task = self.device.start(work)?;
        task.requests_pages = self.requests_pages(work.id);
        Some(task)
    }

    /// See [`Device::list_read`](crate::Device::list_read).
    pub fn list_read(
        &mut self,
        id: WorkId,
        list: &[Descriptor],
        read: ListRead,
        effects: &mut Vec<Effect>,
    ) {
        let before = effects.len();
        self.device.list_read(id, list, read, effects);
        self.after(before, effects);
    }

    /// See [`Device::record_lifecycle`](crate::Device::record_lifecycle).
    pub fn record_lifecycle(&mut self) {
        self.device.record_lifecycle();
    }

    /// See [`Device::take_lifecycle`](crate::Device::take_lifecycle).
    #[inline]
    pub fn take_lifecycle(&mut self) -> impl Iterator<Item = LifecycleEvent> + '_ {
        self.device.take_lifecycle()
    }

    /// Whether pages that work `id` finds missing are asked for where blocking on faults is not its
    /// choice: for completion record, descriptor list and readback (spec 3.13.3, 8.1.3).
    #[inline]
    fn requests_pages(&self, id: WorkId) -> bool {
        let queue = self.device.queue_of(id);
        self.pci.page_requests && queue.is_some_and(|queue| !queue.prs_disable)
    }

    /// See [`Device::next_member`](crate::Device::next_member).
    #[inline]
    pub fn next_member(&mut self, id: WorkId) -> Member {
        self.device.next_member(id)
    }

    /// See [`Device::done`](crate::Device::done). A command that has waited may end with it.
    #[inline]
    pub fn done(&mut self, id: WorkId, outcome: &DescriptorResult, effects: &mut Vec<Effect>) {
        let before = effects.len();
        self.device.done(id, outcome, effects);
        self.after(before, effects);
    }

    /// See [`Device::hold_batches`](crate::Device::hold_batches).
    pub fn hold_batches(&mut self) {
        self.device.hold_batches();
    }

    /// See [`Device::take_held`](crate::Device::take_held).
    pub fn take_held(&mut self) -> Vec<WorkId> {
        self.device.take_held()
    }

    /// See [`Device::end_held`](crate::Device::end_held). A command that has waited may end with it.
    pub fn end_held(&mut self, id: WorkId, effects: &mut Vec<Effect>) {
        let before = effects.len();
        self.device.end_held(id, effects);
        self.after(before, effects);
    }

    /// Errors among the effects from `before` on go to their registers, and a command that has waited
    /// ends.
    #[inline]
    pub(super) fn after(&mut self, before: usize, effects: &mut Vec<Effect>) {
        let is_error = |effect: &Effect| matches!(effect, Effect::SoftwareError { .. });
        if effects[before..].iter().any(is_error) {
            self.take_out_errors(before, effects);
        }
        if self.pending.is_some() {
            self.settle(effects);
        }
    }

    #[cold]
    fn take_out_errors(&mut self, before: usize, effects: &mut Vec<Effect>) {
        for effect in effects.split_off(before) {
            self.sort(effect, effects);
        }
    }

    pub(super) fn sort(&mut self, effect: Effect, effects: &mut Vec<Effect>) {
        let Effect::SoftwareError {
            status,
            wq,
            address,
            origin,
            record,
        } = effect
        else {
            effects.push(effect);
            return;
        };
        if self.hardware().without_driver {
            effects.push(effect);
        }
        let report = Report {
            status,
            wq: Some(wq),
            address,
            origin,
            information: origin.and_then(|origin| origin.information),
            record,
        };
        self.report(&report, effects);
    }

    /// A completion record that could not be written, where the runner has found that out too late
    /// for the [`Task`] to (spec 5.8.1, 0x1a). The entry of the event log
    /// has the record, but says nothing of the descriptor, which is gone. With ATS off the device
    /// would not know.
    pub fn unrecorded(
        &mut self,
        address: u64,
        record: &CompletionRecord,
        effects: &mut Vec<Effect>,
    ) {
        if !self.pci.config.ats {
            return;
        }
        let logged = self.file.logs();
        let status = Status::COMPLETION_ADDRESS_FAULT.with_write_fault();
        let report = Report {
            address,
            information: logged.then_some(RECORD_FAULT),
            record: *record,
            ..Report::of(status)
        };
        self.report(&report, effects);
    }

    /// An entry of the event log that could not be written.
    pub fn unlogged(&mut self, effects: &mut Vec<Effect>) {
        self.report(&Report::of(Status::EVENT_LOG_APPEND), effects);
    }

    /// The address space of the event log; `None` where there is none that is on.
    pub fn event_log_space(&self) -> Option<AddressSpace> {
        let log = self.file.event_log;
        let space = AddressSpace {
            pasid: log.pasid_enable().then_some(log.pasid()),
            privileged: log.privileged(),
        };
        self.file.gen_cfg.event_log_enable().then_some(space)
    }

    /// Errors of submission.
    pub(super) fn report_errors(&mut self, effects: &mut Vec<Effect>) {
        for error in self.device.take_errors() {
            self.sort(error, effects);
        }
    }

    /// The occupancy interrupt of a queue, if it is due (spec 9.2.24).
    pub(super) fn check_occupancy(&mut self, wq: usize, effects: &mut Vec<Effect>) {
        let queue = &mut self.file.queues[wq];
        let armed = queue.occupancy.interrupt_enable() && !queue.interrupt_generated;
        if !armed || queue.state != WorkQueueState::Enabled {
            return;
        }
        let occupancy = self.device.occupancy(wq as u16).unwrap_or(0);
        if occupancy > queue.occupancy.limit() {
            return;
        }
        queue.interrupt_generated = true;
        let source = Source::of(queue.interrupt.message_storage());
        let handle = queue.interrupt.handle();
        // Causes are recorded for entry 0 alone (spec 9.2.11).
        if source == Source::Msix && handle == 0 {
            self.file.cause.set_occupancy(true);
        }
        if let Some(interrupts) = self.device.interrupts() {
            effects.extend(interrupts.raise(source, handle));
        }
    }
}
