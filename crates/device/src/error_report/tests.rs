//! Ends of every kind, with the event log off and on.

use dray_spec::Descriptor;

use super::*;
use crate::job::{Disposition, JobOrigin, Submitter};

const CRAV: Flags = Flags::COMPLETION_ADDRESS_VALID;
const RCR: Flags = Flags::REQUEST_COMPLETION_RECORD;

/// A memmove with an interrupt, or what else it is to be.
fn job(flags: Flags, disposition: Disposition) -> Job {
    let flags = flags | Flags::REQUEST_COMPLETION_INTERRUPT;
    let descriptor = Descriptor {
        completion_addr: 0x40,
        interrupt_handle: 7,
        ..Descriptor::memmove(0, 0, 1)
    };
    let cleared = Descriptor {
        flags_opcode: descriptor.flags_opcode & 0xff00_0000,
        ..descriptor
    };
    Job {
        descriptor: cleared.with_flags(flags),
        job_origin: JobOrigin {
            disposition,
            message_storage: true,
            submitter: Submitter {
                pasid: 9,
                privileged: true,
            },
            ..JobOrigin::default()
        },
    }
}

/// Statuses, addresses, information and the status of the record that goes with each error.
type Errors = Vec<(Status, u64, Option<u32>, u8)>;

fn ended(job: &Job, record: &CompletionRecord, logged: bool) -> (bool, Errors, Reports) {
    let report = ErrorReport {
        wq: 3,
        job,
        unwritable: false,
        logged,
        first: false,
    };
    let mut effects = Vec::new();
    let reports = report.report(record, &mut effects);
    let (mut written, mut errors) = (false, Errors::new());
    for effect in effects {
        match effect {
            Effect::Record {
                address,
                record: of,
                pasid,
            } => {
                assert_eq!((address, of, pasid, errors.len()), (0x40, *record, 9, 0));
                written = true;
            }
            Effect::SoftwareError {
                status,
                wq,
                address,
                origin: Some(origin),
                record,
            } => {
                assert_eq!((wq, origin.pasid, origin.privileged), (3, 9, true));
                assert_eq!(origin.operation, job.descriptor.opcode_byte());
                errors.push((status, address, origin.information, record.status));
            }
            other => panic!("{other:?}"),
        }
    }
    (written, errors, reports)
}

/// Record, software error, interrupt: what a descriptor with an interrupt has of each, without an
/// event log.
fn reported(flags: Flags, status: Status) -> (bool, Option<u64>, bool) {
    let mut record = CompletionRecord::with_status(status);
    record.fault_address = 0x5000;
    let (written, errors, reports) = ended(&job(flags, Disposition::default()), &record, false);
    assert!(!reports.entered && !reports.record_in_log);
    let error = errors.first().map(|error| {
        assert_eq!((errors.len(), error.0, error.3), (1, status, 0));
        error.1
    });
    (written, error, reports.interrupt)
}

// Spec 5.8.1 and Table 5-1.
#[test]
fn an_end_is_told_where_the_specification_says() {
    for status in [
        Status::SUCCESS,
        Status::SUCCESS_PREDICATE,
        Status::BATCH_FAIL,
    ] {
        assert_eq!(reported(CRAV | RCR, status), (true, None, true));
        assert_eq!(reported(CRAV, status), (false, None, true));
        assert_eq!(reported(Flags::EMPTY, status), (false, None, true));
    }
    for status in [
        Status::BAD_OPCODE,
        Status::OVERLAP,
        Status::HARDWARE_ERROR_READ,
    ] {
        assert_eq!(reported(CRAV | RCR, status), (true, None, true));
        assert_eq!(reported(CRAV, status), (true, None, true));
        assert_eq!(reported(Flags::EMPTY, status), (false, Some(0), true));
    }
}

#[test]
fn a_page_fault_that_has_no_record_is_told_with_its_address() {
    for status in [
        Status::PAGE_FAULT,
        Status::PAGE_FAULT.with_write_fault(),
        Status::PAGE_FAULT_INVALID_RESPONSE.with_write_fault(),
        Status::BATCH_PAGE_FAULT,
        Status::READBACK_PAGE_FAULT,
    ] {
        assert_eq!(reported(CRAV, status), (true, None, true));
        assert_eq!(reported(Flags::EMPTY, status), (false, Some(0x5000), true));
    }
}

#[test]
fn a_record_that_cannot_be_written_is_an_error_and_nothing_else() {
    for status in [
        Status::COMPLETION_ADDRESS_FAULT,
        Status::COMPLETION_ADDRESS_FAULT.with_write_fault(),
        Status::COMPLETION_ADDRESS_ALIGNMENT,
    ] {
        assert_eq!(reported(CRAV | RCR, status), (false, Some(0x40), false));
    }
    assert_eq!(
        reported(CRAV | RCR, Status::PRIVILEGE),
        (false, Some(0), false)
    );
    // An interrupt that is itself at fault is not sent.
    assert_eq!(
        reported(CRAV | RCR, Status::INTERRUPT_HANDLE),
        (true, Some(0), false)
    );
}

// Spec 9.2.15: valid with the codes that the table lists, also where it is 0.
#[test]
fn error_information_is_valid_where_the_code_has_some() {
    let information = |d: Descriptor, record: CompletionRecord| {
        let job = Job {
            descriptor: Descriptor {
                flags_opcode: d.flags_opcode & !0xff,
                completion_addr: 0,
                ..d
            },
            job_origin: JobOrigin::default(),
        };
        let report = ErrorReport {
            wq: 0,
            job: &job,
            unwritable: false,
            logged: false,
            first: false,
        };
        let mut effects = Vec::new();
        report.report(&record, &mut effects);
        let [Effect::SoftwareError { origin, .. }] = effects[..] else {
            panic!("{effects:?}");
        };
        origin.expect("a descriptor").information
    };
    let plain = Descriptor::memmove(0, 0, 1);
    let between = Descriptor::inter_domain_fill(0, 0x2000, 64).with_destination_handle(5);
    let mut record = CompletionRecord::with_status(Status::PAGE_FAULT);
    record.fault_info = 3 << 1;
    record.set_idpt_handle(5);
    assert_eq!(information(plain, record), Some(3 << 29));
    assert_eq!(information(between, record), Some(3 << 29 | 5));
    record = CompletionRecord::with_status(Status::PAGE_FAULT);
    assert_eq!(information(between, record), Some(0));
    for (status, expected) in [
        (Status::INVALID_FLAGS, Some(0)),
        (Status::BATCH_PAGE_FAULT, Some(0)),
        (Status::READBACK_PAGE_FAULT, Some(0)),
        (Status::IDPT_HANDLE, Some(0)),
        (Status::IDPT_PERMISSION, Some(0)),
        (Status::IDPT_WINDOW, Some(0)),
        // What the record of an update does not have.
        (Status::UPDATE_WINDOW_ENTRY, Some(5)),
        (Status::COMPLETION_ADDRESS_FAULT, None),
        (Status::BAD_OPCODE, None),
        (Status::TRAFFIC_CLASS, None),
        (Status::INTER_DOMAIN_PASID, None),
    ] {
        let record = CompletionRecord::with_status(status);
        assert_eq!(information(between, record), expected, "{status:?}");
    }
}

// Table 5-9.
#[test]
fn an_entry_of_the_log_has_the_record_and_says_what_is_left_to_do() {
    const LEFT: u32 = 1 << 18 | 1 << 17 | 1 << 16 | 7;
    let fault = Status::COMPLETION_ADDRESS_FAULT.with_write_fault();
    let faulting = Disposition {
        record_faults: true,
        ..Disposition::default()
    };
    let success = CompletionRecord::with_status(Status::SUCCESS);
    let (written, errors, reports) = ended(&job(CRAV | RCR, faulting), &success, true);
    assert!(!written && !reports.interrupt && reports.record_in_log && reports.entered);
    assert_eq!(errors, [(fault, 0x40, Some(5 << 29 | LEFT), 1)]);
    // Without a record there is no fault on it.
    let (written, errors, reports) = ended(&job(CRAV, faulting), &success, true);
    assert!(!written && reports.interrupt && !reports.record_in_log && errors.is_empty());
    // Nor is it asked for an interrupt that cannot be sent.
    let refused = CompletionRecord::with_status(Status::INTERRUPT_HANDLE);
    let (written, errors, reports) = ended(&job(CRAV | RCR, faulting), &refused, true);
    assert!(!written && !reports.interrupt && reports.record_in_log);
    let expected = [
        (Status::INTERRUPT_HANDLE, 0, Some(LEFT), 0x19),
        (fault, 0x40, Some(5 << 29 | 1 << 18), 0x19),
    ];
    assert_eq!(errors, expected);
    // One that was discarded, and one that has nowhere for a record.
    let discarded = CompletionRecord::with_status(fault);
    let (_, errors, _) = ended(&job(CRAV | RCR, Disposition::default()), &discarded, true);
    assert_eq!(errors, [(fault, 0x40, Some(5 << 29 | LEFT), fault.0)]);
    let bad = CompletionRecord::with_status(Status::OVERLAP);
    let (_, errors, reports) = ended(&job(Flags::EMPTY, Disposition::default()), &bad, true);
    assert_eq!(errors, [(Status::OVERLAP, 0, None, 0)]);
    assert!(reports.interrupt && !reports.entered);
}
