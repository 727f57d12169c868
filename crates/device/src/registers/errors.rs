//! Errors that no completion record carries: SWERROR and the event log (spec 5.8, 5.9).

use std::collections::VecDeque;

use dray_spec::registers::{DeviceState, ErrorHead, EventLogEntry, SoftwareErrorRegister};
use dray_spec::{CompletionRecord, Status};
use zerocopy::{FromBytes, IntoBytes};

use super::{File, Interrupts, Source};
use crate::device::Scope;
use crate::effect::Origin;
use crate::{DeviceConfig, Effect};

/// An error to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) status: Status,
    pub(crate) wq: Option<u16>,
    pub(crate) address: u64,
    pub(crate) origin: Option<Origin>,
    /// Of codes that have some.
    pub(crate) information: Option<u32>,
    /// What the entry of the event log has of the completion record.
    pub(crate) record: CompletionRecord,
}

impl Report {
    /// One that has to do with no queue.
    pub(crate) fn of(status: Status) -> Report {
        Report {
            status,
            wq: None,
            address: 0,
            origin: None,
            information: None,
            record: CompletionRecord::default(),
        }
    }

    fn head(&self) -> ErrorHead {
        let head = ErrorHead::new()
            .with_error(self.status.0 & 0x7f)
            .with_wq_valid(self.wq.is_some())
            .with_wq(self.wq.unwrap_or(0) as u8)
            .with_write(self.status.is_write_fault())
            .with_information_valid(self.information.is_some());
        let Some(origin) = self.origin else {
            return head;
        };
        head.with_descriptor_valid(true)
            .with_batch_member(origin.member.is_some())
            .with_privileged(origin.privileged)
            .with_operation(origin.operation)
            .with_batch_id(origin.batch_id)
            .with_pasid(origin.pasid)
    }

    fn detail(&self) -> u64 {
        let member = self.origin.and_then(|origin| origin.member);
        u64::from(member.unwrap_or(0)) | u64::from(self.information.unwrap_or(0)) << 32
    }

    /// Codes that are never in the event log (spec Table 5-7).
    fn is_for_the_register(&self) -> bool {
        matches!(self.status.0, 0x51 | 0x53 | 0x54)
    }
}

/// What waits for the head of a full event log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Backlog(VecDeque<EventLogEntry>);

impl Backlog {
    /// Whether the device is blocked by a full log (spec 5.9).
    pub(crate) fn is_blocked(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether something waits that a command about `scope` has to wait for (spec 3.15). Of a record
    /// that came too late its descriptor is not known.
    pub(crate) fn concerns(&self, scope: Scope, config: &DeviceConfig) -> bool {
        let unknown = |entry: &EventLogEntry| {
            let head = ErrorHead::from_bits(entry.head);
            !head.descriptor_valid() && head.error() < FIRST_OTHER_ERROR
        };
        let mut entries = self.0.iter();
        entries.any(|entry| unknown(entry) || is_about(entry, scope, config))
    }

    /// Descriptors are given up: their reports are gone.
    pub(crate) fn abandon(&mut self, scope: Scope, config: &DeviceConfig) {
        self.0.retain(|entry| !is_about(entry, scope, config));
    }

    /// Software that writes commands without end must not fill the memory.
    fn push(&mut self, entry: EventLogEntry) {
        let descriptor = ErrorHead::from_bits(entry.head).error() < FIRST_OTHER_ERROR;
        if descriptor || self.0.back() != Some(&entry) {
            self.0.push_back(entry);
        }
    }
}

/// Codes from here on are not about descriptors (spec Table 5-7).
const FIRST_OTHER_ERROR: u8 = 0x51;

/// Whether an entry is about a descriptor of these.
fn is_about(entry: &EventLogEntry, scope: Scope, config: &DeviceConfig) -> bool {
    let head = ErrorHead::from_bits(entry.head);
    let wq = u16::from(head.wq());
    let has_pasid = || {
        let mut queues = config.work_queues.iter();
        queues.any(|queue| queue.id == wq && queue.pasid.is_some())
    };
    match scope {
        Scope::All => true,
        Scope::Queues { .. } => head.wq_valid() && scope.has_queue(wq),
        Scope::Pasid(pasid) => head.descriptor_valid() && head.pasid() == pasid && has_pasid(),
    }
}

impl File {
    /// Whether the event log is on: it is, once the device is enabled with it (spec 5.9).
    pub(crate) fn logs(&self) -> bool {
        self.gen_cfg.event_log_enable() && self.state != DeviceState::Disabled
    }

    /// Reports an error in the event log, if it is on, or in SWERROR.
    pub(crate) fn report(
        &mut self,
        report: &Report,
        backlog: &mut Backlog,
        interrupts: &mut Interrupts,
        effects: &mut Vec<Effect>,
    ) {
        if !self.logs() || report.is_for_the_register() {
            self.record(report, interrupts, effects);
            return;
        }
        let entry = EventLogEntry {
            head: report.head().into_bits(),
            detail: report.detail(),
            address: report.address,
            unused: 0,
            record: report.record,
        };
        self.log(entry, backlog, interrupts, effects);
    }

    /// Appends to the event log, or has the device wait for room in it.
    pub(crate) fn log(
        &mut self,
        entry: EventLogEntry,
        backlog: &mut Backlog,
        interrupts: &mut Interrupts,
        effects: &mut Vec<Effect>,
    ) {
        backlog.push(entry);
        self.write_backlog(backlog, interrupts, effects);
        // Where the log may overflow, nothing waits (GENCAP bit 32).
        if backlog.is_blocked() && self.hardware.gen_cap.event_log_overflow() {
            backlog.0.clear();
            self.record(&Report::of(Status::EVENT_LOG_APPEND), interrupts, effects);
        }
    }

    /// Writes what has waited, as far as there is room now.
    pub(crate) fn write_backlog(
        &mut self,
        backlog: &mut Backlog,
        interrupts: &mut Interrupts,
        effects: &mut Vec<Effect>,
    ) {
        let entries = u32::from(self.event_log.entries()).max(1);
        let bytes = self.hardware.gen_cap.event_log_entry_bytes();
        loop {
            let tail = self.event_status.tail();
            let next = ((u32::from(tail) + 1) % entries) as u16;
            if next == self.event_status.head() {
                return;
            }
            let Some(entry) = backlog.0.pop_front() else {
                return;
            };
            let at = self.event_log.base() + u64::from(tail) * u64::from(bytes);
            let halves = <[[u64; 4]; 2]>::read_from_bytes(entry.as_bytes());
            for (half, words) in (0..).zip(halves.unwrap_or_default()) {
                let address = at + 32 * half;
                effects.push(Effect::Log { address, words });
            }
            self.event_status.set_tail(next);
            if self.gen_ctrl.event_log_interrupt() && !self.event_status.interrupt_pending() {
                self.event_status.set_interrupt_pending(true);
                self.cause.set_event_log(true);
                effects.extend(interrupts.raise(Source::Msix, 0));
            }
        }
    }

    /// Records an error in SWERROR, which holds the first one (spec 9.2.15).
    fn record(&mut self, report: &Report, interrupts: &mut Interrupts, effects: &mut Vec<Effect>) {
        let held = ErrorHead::from_bits(self.software_error.head);
        if held.valid() {
            self.software_error.head = held.with_overflow(true).into_bits();
            return;
        }
        self.software_error = SoftwareErrorRegister {
            head: report.head().with_batch_id(0).with_valid(true).into_bits(),
            detail: report.detail(),
            address: report.address,
            unused: 0,
        };
        if self.gen_ctrl.software_error_interrupt() {
            self.cause.set_software_error(true);
            effects.extend(interrupts.raise(Source::Msix, 0));
        }
    }
}
