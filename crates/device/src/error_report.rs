//! How the device reports a descriptor that ended otherwise than with plain success: in its record, in the event log
//! or the software error register, by its interrupt (spec 5.4, 5.8.1, 5.9).

use dray_spec::registers::EventLogEntry;
use dray_spec::{CompletionRecord, Flags, Opcode, Status};

use crate::check::is_inter_domain;
use crate::effect::{Effect, Operand, Origin, fault_info};
use crate::job::{BatchRole, Job};

/// Statuses that are no errors: without a request for it, no record reports them (spec 8.1.3).
#[inline]
pub(crate) fn is_plain(status: Status) -> bool {
    matches!(
        status,
        Status::SUCCESS | Status::SUCCESS_PREDICATE | Status::BATCH_FAIL
    )
}

/// A descriptor whose end is to be reported.
#[derive(Debug)]
pub(crate) struct ErrorReport<'a> {
    pub(crate) wq: u16,
    pub(crate) job: &'a Job,
    /// The record cannot be written, whatever its address (spec 5.4, traffic class).
    pub(crate) unwritable: bool,
    /// The event log is on.
    pub(crate) logged: bool,
    /// It is a member, and its batch has no entry in the event log that says it is the first.
    pub(crate) first: bool,
}

/// What has been reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reports {
    /// An interrupt is due.
    pub(crate) interrupt: bool,
    /// There is an entry in the event log that says whether it is the first of its batch.
    pub(crate) entered: bool,
    /// The event log has the record, for the fault on its page.
    pub(crate) record_in_log: bool,
}

/// Bits of an entry's error information, as the 32 bits that they are of.
const fn information(bit: u64) -> u32 {
    (bit >> 32) as u32
}

const RECORD_REQUIRED: u32 = information(EventLogEntry::RECORD_REQUIRED);
const INTERRUPT_REQUIRED: u32 = information(EventLogEntry::INTERRUPT_REQUIRED);
const MESSAGE_STORAGE: u32 = information(EventLogEntry::MESSAGE_STORAGE);
const FIRST_IN_BATCH: u32 = information(EventLogEntry::FIRST_IN_BATCH);

/// Operand identifier of fault info, in bits 63:61 of the qword of the error information.
const fn operand(fault_info: u8) -> u32 {
    ((fault_info >> 1 & 7) as u32) << 29
}

/// Error information of an entry for a record that its page does not take.
pub(crate) const RECORD_FAULT: u32 =
    operand(fault_info(Operand::CompletionRecord)) | RECORD_REQUIRED;

impl ErrorReport<'_> {
    /// Appends what the end causes.
    pub(crate) fn report(&self, record: &CompletionRecord, effects: &mut Vec<Effect>) -> Reports {
        let status = record.status();
        let unusable = self.unwritable
            || matches!(
                status.code(),
                0x1a | 0x1b | 0x1d // Completion address fault, alignment; privilege (spec 5.8.1).
            );
        let asked = match is_plain(status) {
            true => Flags::REQUEST_COMPLETION_RECORD,
            false => Flags::EMPTY,
        };
        let due = self.has(Flags::COMPLETION_ADDRESS_VALID.union(asked)) && !unusable;
        let mut reports = Reports::default();
        let entry = self.entry(status, due);
        if due && entry.is_none() {
            effects.push(Effect::Record {
                address: self.job.descriptor.completion_addr,
                record: *record,
                pasid: self.job.job_origin.submitter.pasid,
            });
        }
        // One about an interrupt is reported twice (spec Table 5-1).
        if !is_plain(status) && !due || status == Status::INTERRUPT_HANDLE {
            effects.push(self.error(status, record, due, &mut reports));
        }
        match entry {
            // Software interrupts, when it has propagated the record (spec 5.9).
            Some(status) => effects.push(self.error(status, record, due, &mut reports)),
            // Sent also after a failed check, unless that was about the interrupt (spec 5.4).
            None => reports.interrupt = self.interrupts(status) && !unusable,
        }
        reports
    }

    fn has(&self, flags: Flags) -> bool {
        self.job.descriptor.flags().contains(flags)
    }

    /// Whether an interrupt is asked for that can be sent.
    fn interrupts(&self, status: Status) -> bool {
        self.has(Flags::REQUEST_COMPLETION_INTERRUPT) && status != Status::INTERRUPT_HANDLE
    }

    /// Error code of the entry that stands for record and interrupt, if they go to the event log.
    fn entry(&self, status: Status, due: bool) -> Option<Status> {
        let disposition = self.job.job_origin.disposition;
        let notified = due || self.interrupts(status);
        match self.job.descriptor.opcode() {
            Ok(Opcode::Drain) if disposition.logged && status == Status::SUCCESS => {
                notified.then_some(Status::DRAIN_EVENT_LOG)
            }
            Ok(Opcode::Batch) if disposition.logged && notified => Some(Status::BATCH_EVENT_LOG),
            _ => (disposition.record_faults && due)
                .then(|| Status::COMPLETION_ADDRESS_FAULT.with_write_fault()),
        }
    }

    fn error(
        &self,
        status: Status,
        record: &CompletionRecord,
        due: bool,
        reports: &mut Reports,
    ) -> Effect {
        let d = &self.job.descriptor;
        let (batch_id, member) = match self.job.job_origin.role {
            BatchRole::Single => (0, None),
            BatchRole::Batch(slot) => (slot, None),
            BatchRole::Member { slot, number, .. } => (slot, Some(number)),
        };
        let information = self.information(status, record, due, reports);
        let with_record = self.logged
            && matches!(status.code(), 0x19 | 0x1a | 0x26 | 0x27)
            && information.is_some_and(|bits| bits & RECORD_REQUIRED != 0);
        Effect::SoftwareError {
            status,
            wq: self.wq,
            address: match status.code() {
                0x1a | 0x1b | 0x26 | 0x27 => d.completion_addr,
                // Page faults (spec 8.2.5).
                0x03 | 0x04 | 0x06 | 0x1f => record.fault_address,
                _ => 0,
            },
            origin: Some(Origin {
                operation: d.opcode_byte(),
                pasid: self.job.job_origin.submitter.pasid,
                privileged: self.job.job_origin.submitter.privileged,
                member,
                batch_id: batch_id as u8,
                information,
            }),
            record: match with_record {
                true => *record,
                false => CompletionRecord::default(),
            },
        }
    }

    /// Error information, of the codes that have some (spec 9.2.15, Table 5-9).
    fn information(
        &self,
        status: Status,
        record: &CompletionRecord,
        due: bool,
        reports: &mut Reports,
    ) -> Option<u32> {
        let d = &self.job.descriptor;
        let if_so = |condition: bool, bits: u32| if condition { bits } else { 0 };
        let portal = if_so(self.job.job_origin.message_storage, MESSAGE_STORAGE);
        let interrupt = INTERRUPT_REQUIRED | portal | u32::from(d.interrupt_handle);
        let asked = if_so(self.interrupts(record.status()), interrupt);
        Some(match status.code() {
            0x11 => record.invalid_flags().bits(),
            0x19 if self.logged => self.first(reports) | if_so(due, RECORD_REQUIRED) | interrupt,
            0x19 => d.interrupt_handle.into(),
            0x1a if self.logged => {
                reports.record_in_log = true;
                RECORD_FAULT | self.first(reports) | asked
            }
            0x26 | 0x27 => if_so(due, RECORD_REQUIRED) | asked,
            0x03 | 0x04 => {
                let between = d.opcode().is_ok_and(is_inter_domain);
                operand(record.fault_info) | if_so(between, record.idpt_handle().into())
            }
            0x06 | 0x1f => operand(record.fault_info),
            0x29..=0x2b => record.idpt_handle().into(),
            // The record of an update does not say it (spec 8.3.27).
            0x2c => d.destination_handle().into(),
            _ => return None,
        })
    }

    /// The bit of the first entry of a batch, which is given once.
    fn first(&self, reports: &mut Reports) -> u32 {
        let first = self.first && !reports.entered;
        reports.entered = true;
        if first { FIRST_IN_BATCH } else { 0 }
    }
}

#[cfg(test)]
mod tests;
