//! What the event log says of ends that have no record (spec 3.13.3, 5.9).

use dray_device::{DescriptorResult, Effect, ListRead, Member, SliceMemory, Work};
use dray_spec::registers::{self as at, Command, ErrorHead, EventLogEntry, WorkQueuePolicy};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use super::driver::Driver;
use super::log::{
    OFF, ON, Setup, begin, code, end, entries, entry, execute, member, rejection, software_error,
    success, without_record,
};
use crate::common::manual_runner::{batch, drain, noop};

/// Operand identifier of a completion record.
const RECORD_OPERAND: u64 = 5 << 61;
const REQUIRED: u64 = EventLogEntry::RECORD_REQUIRED;
const FIRST: u64 = EventLogEntry::FIRST_IN_BATCH;
const INTERRUPT: u64 = EventLogEntry::INTERRUPT_REQUIRED;

/// Work succeeds whose record the log has to take.
fn unrecorded_success(driver: &mut Driver, work: &Work) {
    let outcome = without_record(driver, work);
    assert_eq!(
        outcome.record,
        CompletionRecord::with_status(Status::SUCCESS)
    );
    assert!(outcome.record_in_log);
    end(driver, work.id, &outcome);
}

fn noop_with_interrupt() -> Descriptor {
    noop(1).with_interrupt(3)
}

#[test]
fn a_record_that_faults_goes_to_the_log_with_what_it_says() {
    let mut driver = ON.driver();
    let compare = Descriptor::compare(0x1000, 0x2000, 64)
        .with_completion(0x4000)
        .with_interrupt(3);
    driver.submit(0, &compare);
    let work = driver.take(0);
    // The sources are there, and differ in byte 40; the record's page is not.
    let mut sources = vec![0; 0x1040];
    sources[40] = 1;
    let outcome = execute(&mut driver, &work, &mut SliceMemory::new(0x1000, sources));
    assert_eq!(
        (outcome.record.result, outcome.record.bytes_completed),
        (1, 40)
    );
    end(&mut driver, work.id, &outcome);
    let entry = entry(&mut driver);
    let head = ErrorHead::from_bits(entry.head);
    assert_eq!((head.error(), head.operation(), head.wq()), (0x1a, 5, 0));
    assert!(head.write() && head.information_valid() && head.descriptor_valid());
    assert!(head.wq_valid() && !head.batch_member() && !head.valid());
    let detail = RECORD_OPERAND | REQUIRED | INTERRUPT | 3 << 32;
    assert_eq!(
        (entry.detail, entry.address, entry.record),
        (detail, 0x4000, outcome.record)
    );
    // What is not due is not missed: no completion record was asked for.
    let quiet = Descriptor::noop().with_interrupt(3);
    let quiet = Descriptor {
        completion_addr: 0x4000,
        ..quiet.with_flags(Flags::COMPLETION_ADDRESS_VALID)
    };
    driver.submit(0, &quiet);
    let work = driver.take(0);
    unrecorded_success(&mut driver, &work);
    assert_eq!(driver.effects, [Effect::Interrupt { handle: 3 }]);
}

#[test]
fn a_descriptor_that_was_discarded_for_its_record_says_so_in_the_log() {
    let mut driver = ON.driver();
    driver.submit(0, &noop_with_interrupt());
    let work = driver.take(0);
    end(&mut driver, work.id, &DescriptorResult::unrecorded());
    let entry = entry(&mut driver);
    assert_eq!(
        entry.detail,
        RECORD_OPERAND | REQUIRED | INTERRUPT | 3 << 32
    );
    assert_eq!(
        (entry.address, entry.record),
        (32, DescriptorResult::unrecorded().record)
    );
}

#[test]
fn without_a_log_the_descriptor_is_discarded_and_the_register_has_the_fault() {
    let mut driver = OFF.driver();
    driver.submit(0, &noop_with_interrupt());
    let work = driver.take(0);
    let outcome = without_record(&mut driver, &work);
    assert_eq!(outcome, DescriptorResult::unrecorded());
    end(&mut driver, work.id, &outcome);
    assert_eq!(driver.effects, []);
    let error = software_error(&driver);
    let head = ErrorHead::from_bits(error.head);
    assert_eq!((head.error(), head.operation()), (0x1a, 0));
    assert!(head.valid() && head.write() && head.descriptor_valid());
    // The table of the register has no information of this code.
    assert!(!head.information_valid());
    assert_eq!((error.detail, error.address), (0, 32));
    // A batch with such a member has failed, and reports it in its record as ever.
    driver.write(at::SWERROR, 3);
    let fenced = noop(3).with_flags(Flags::FENCE);
    let id = begin(&mut driver, &batch(1, 2), &[noop(2), fenced]);
    let first = member(&mut driver, id);
    end(&mut driver, first.id, &DescriptorResult::unrecorded());
    assert_eq!(software_error(&driver).address, 64);
    let mut record = CompletionRecord::with_status(Status::BATCH_FAIL);
    record.bytes_completed = 1;
    let reported = Effect::Record {
        address: 32,
        record,
        pasid: 0,
    };
    assert_eq!(driver.effects, [reported]);
}

#[test]
fn a_batch_is_in_the_log_behind_members_that_are() {
    let mut driver = ON.driver();
    let descriptor = batch(1, 3).with_interrupt(3);
    let list = [noop(2), noop(3), noop(4).with_flags(Flags::FENCE)];
    let id = begin(&mut driver, &descriptor, &list);
    for number in 0..2 {
        let work = member(&mut driver, id);
        unrecorded_success(&mut driver, &work);
        let entry = entry(&mut driver);
        let head = ErrorHead::from_bits(entry.head);
        assert!(head.batch_member() && head.error() == 0x1a);
        let first = if number == 0 { FIRST } else { 0 };
        assert_eq!(entry.detail, RECORD_OPERAND | REQUIRED | first | number);
    }
    // A member that succeeds passes the fence, wherever its record is.
    let last = member(&mut driver, id);
    success(&mut driver, last.id);
    let reported = driver.effects.remove(0);
    assert!(matches!(reported, Effect::Record { address: 128, .. }));
    let entry = entry(&mut driver);
    let head = ErrorHead::from_bits(entry.head);
    assert_eq!((head.error(), head.operation()), (0x27, 1));
    assert!(!head.batch_member() && head.information_valid());
    assert_eq!(entry.detail, REQUIRED | INTERRUPT | 3 << 32);
    let mut record = CompletionRecord::with_status(Status::SUCCESS);
    record.bytes_completed = 3;
    assert_eq!((entry.address, entry.record), (32, record));
    // The next batch in the same place has its own first entry.
    let id = begin(&mut driver, &batch(1, 2), &[noop(2), noop(3)]);
    let work = member(&mut driver, id);
    unrecorded_success(&mut driver, &work);
    assert_eq!(entries(&mut driver)[0].detail & FIRST, FIRST);
}

#[test]
fn members_behind_a_fence_do_not_run_if_one_before_it_was_discarded() {
    let mut driver = ON.driver();
    let list = [noop(2), noop(3).with_flags(Flags::FENCE)];
    let id = begin(&mut driver, &batch(1, 2), &list);
    let work = member(&mut driver, id);
    end(&mut driver, work.id, &DescriptorResult::unrecorded());
    assert_eq!(driver.function.next_member(id), Member::None);
    let entries = entries(&mut driver);
    assert_eq!(entries.iter().map(code).collect::<Vec<_>>(), [0x1a, 0x27]);
    let mut record = CompletionRecord::with_status(Status::BATCH_FAIL);
    record.bytes_completed = 1;
    assert_eq!(entries[1].record, record);
    let batch_id = |entry: &EventLogEntry| ErrorHead::from_bits(entry.head).batch_id();
    assert_eq!(batch_id(&entries[0]), batch_id(&entries[1]));
}

#[test]
fn a_batch_that_asks_for_nothing_is_not_in_the_log() {
    let ask = |flags: Flags, list: u64| {
        let mut driver = ON.driver();
        let d = Descriptor::batch(0x1000, 2).with_flags(flags);
        let d = match flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT) {
            true => d.with_interrupt(3),
            false => d,
        };
        driver.submit(0, &d);
        let batch = driver.take(0).id;
        let fault = (list != 0).then_some(list);
        let read = ListRead {
            fault,
            ..ListRead::default()
        };
        driver.list_read(batch, &[noop(2)], read);
        let work = member(&mut driver, batch);
        unrecorded_success(&mut driver, &work);
        let entries = entries(&mut driver);
        let of = |entry: &EventLogEntry| (code(entry), entry.address, entry.detail);
        entries[1..].iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(ask(Flags::EMPTY, 0), []);
    let interrupt = INTERRUPT | 3 << 32;
    assert_eq!(
        ask(Flags::REQUEST_COMPLETION_INTERRUPT, 0),
        [(0x27, 0, interrupt)]
    );
    // Its own fault has no record to be reported in.
    let fault = (6, 0x2000, 1 << 61);
    assert_eq!(ask(Flags::EMPTY, 0x2000), [fault]);
    assert_eq!(
        ask(Flags::REQUEST_COMPLETION_INTERRUPT, 0x2000),
        [fault, (0x27, 0, interrupt)]
    );
}

#[test]
fn a_drain_goes_to_the_log_where_no_page_request_mends_the_records_before_it() {
    let disabled = WorkQueuePolicy::new().with_prs_disable(true);
    let cases = [
        (ON, false),
        (OFF, false),
        (
            Setup {
                page_requests: false,
                ..ON
            },
            true,
        ),
        (
            Setup {
                page_requests: false,
                ..OFF
            },
            false,
        ),
        (
            Setup {
                policy: disabled,
                ..ON
            },
            true,
        ),
    ];
    for (setup, logged) in cases {
        let mut driver = setup.driver();
        // One waits for work, the other has nothing to wait for.
        driver.submit(0, &noop(1));
        driver.submit(0, &drain(2).with_interrupt(3));
        let work = driver.take(0);
        assert_eq!(driver.function.take(0, &mut driver.effects), None);
        driver.done(&work);
        let record = driver.effects.remove(0);
        assert!(matches!(record, Effect::Record { address: 32, .. }));
        if !logged {
            assert_eq!(driver.effects.len(), 2);
            assert_eq!(driver.records(), [2]);
            continue;
        }
        let success = CompletionRecord::with_status(Status::SUCCESS);
        let first = entry(&mut driver);
        assert_eq!((code(&first), first.address), (0x26, 64));
        assert_eq!(first.detail, REQUIRED | INTERRUPT | 3 << 32);
        assert_eq!(first.record, success);
        driver.submit(0, &drain(3));
        let work = driver.take(0);
        driver.done(&work);
        let second = entry(&mut driver);
        assert_eq!((code(&second), second.address), (0x26, 96));
        assert_eq!((second.detail, second.record), (REQUIRED, success));
        // One that is not carried out has its record.
        driver.submit(0, &drain(4).with_readback1(0x5000));
        let work = driver.take(0);
        let outcome = DescriptorResult::status(Status::READBACK_PAGE_FAULT);
        end(&mut driver, work.id, &outcome);
        driver.submit(0, &drain(5).with_flags(Flags::FENCE));
        let work = driver.take(0);
        end(&mut driver, work.id, &rejection(&work).outcome());
        assert_eq!(driver.records(), [4, 5]);
        // The other queue has page requests where the device has them.
        driver.submit(1, &drain(6));
        let work = driver.take(0);
        driver.done(&work);
        let reported = matches!(driver.effects[..], [Effect::Record { .. }]);
        assert_eq!(reported, setup.page_requests);
    }
}

#[test]
fn an_interrupt_handle_that_is_none_is_in_the_log_with_the_record() {
    let mut driver = ON.driver();
    for handle in [0, 0x77] {
        driver.submit(0, &noop(1).with_interrupt(handle));
        let work = driver.take(0);
        let outcome = rejection(&work).outcome();
        end(&mut driver, work.id, &outcome);
        let record = driver.effects.remove(0);
        assert!(matches!(record, Effect::Record { .. }));
        let entry = entry(&mut driver);
        assert!(ErrorHead::from_bits(entry.head).information_valid());
        assert_eq!(
            (code(&entry), entry.record),
            (0x19, outcome.record),
            "handle {handle:#x}"
        );
        assert_eq!(entry.detail, REQUIRED | INTERRUPT | u64::from(handle) << 32);
    }
    let mut driver = OFF.driver();
    driver.submit(0, &noop(1).with_interrupt(0));
    let work = driver.take(0);
    end(&mut driver, work.id, &rejection(&work).outcome());
    let error = software_error(&driver);
    assert!(ErrorHead::from_bits(error.head).information_valid());
    assert_eq!(error.detail, 0);
}

#[test]
fn a_record_that_faults_too_late_is_in_the_log_all_the_same() {
    let record = CompletionRecord::with_status(Status::SUCCESS);
    let mut driver = ON.driver();
    driver
        .function
        .unrecorded(0x4000, &record, &mut driver.effects);
    let entry = entry(&mut driver);
    let head = ErrorHead::from_bits(entry.head);
    assert!(head.information_valid() && !head.descriptor_valid() && !head.wq_valid());
    assert_eq!(
        (entry.detail, entry.record),
        (RECORD_OPERAND | REQUIRED, record)
    );
    let mut driver = OFF.driver();
    driver
        .function
        .unrecorded(0x4000, &record, &mut driver.effects);
    let error = software_error(&driver);
    assert_eq!((error.head, error.detail), (0x1a21, 0));
}

#[test]
fn a_record_that_comes_after_the_disable_does_not_reach_the_log() {
    let mut driver = ON.driver();
    assert_eq!(driver.command(Command::DisableDevice, 0), 0);
    let record = CompletionRecord::with_status(Status::SUCCESS);
    driver
        .function
        .unrecorded(0x4000, &record, &mut driver.effects);
    assert_eq!(driver.effects, []);
    assert_eq!(software_error(&driver).head & 0xffff, 0x1a21);
}
