//! Memory that cannot be read or written, between pages that nothing can access: a typed error with the
//! address, never a signal.

use dray::channels::{
    Channels, ChannelsOptions, Choice, LostQueuePolicy, Member, Outcome, QueueLost, Reason,
};
use dray::virt::{Options, VirtualDevice, VirtualMover};
use dray::{Checked, CpuMover, Executor, Failure, Mover, Operation, Output};
use dray_device::WorkQueueMode::Shared;
use dray_ops::{CrcOptions, crc32c};
use dray_spec::registers::{Command, CommandRegister};
use dray_spec::{Descriptor, Status};

use crate::channels::{options, run};
use crate::machine::{device, queue};
use crate::memory::{Guarded, PAGE};

const BASE_PAGE: u64 = PAGE as u64;

fn member(device: &VirtualDevice) -> Member<VirtualMover> {
    Member {
        mover: device.open(0, 16).expect("a queue"),
        numa_node: None,
    }
}

/// A device that looks at addresses.
fn checked() -> VirtualDevice {
    let config = device(1, vec![queue(0, Shared, 16)]);
    let started = VirtualDevice::start_in(config, Options::default(), Checked, |_| {});
    started.expect("a device that can be enabled")
}

/// Channels of every kind that end such operations with a fault.
fn all() -> Vec<(&'static str, Channels<VirtualMover>)> {
    let on =
        |options: ChannelsOptions| Channels::new([member(&checked())], options).expect("channels");
    let lost = || {
        let device = checked();
        let disabled = CommandRegister::queue(0);
        let answer = device.device().command(Command::DisableWq, disabled);
        assert_eq!(answer, Ok(Ok(0)));
        let options = ChannelsOptions {
            check_core: true,
            ..options()
        };
        Channels::new([member(&device)], options).expect("channels")
    };
    let check_core = true;
    let core = ChannelsOptions {
        check_core,
        choice: Choice::Core,
        ..options()
    };
    let none = ChannelsOptions {
        check_core,
        ..options()
    };
    vec![
        ("device", on(options())),
        ("chosen core", on(core)),
        ("no channel", Channels::new([], none).expect("the core")),
        ("lost queue", lost()),
    ]
}

fn fault_of(outcome: &Outcome, operation: &Operation) -> (u64, bool, u32) {
    match outcome.output(operation) {
        Err(Failure::PageFault {
            address,
            write,
            bytes_completed,
        }) => (address, write, bytes_completed),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unmapped_and_read_only_pages_are_faults_with_their_address() {
    for (name, mut channels) in all() {
        let source = Guarded::noise(8, 1);
        let target = Guarded::new(8);
        source.inaccessible(5..6);
        target.read_only(2..3);
        let len = 4 * PAGE as u32;
        let page = |memory: &Guarded, n: usize| memory.address() + (n * PAGE) as u64;
        for (operation, at, is_write) in [
            // A source that ends before the page, a page that cannot be read, one that cannot be written.
            (
                Operation::memmove(page(&source, 3), page(&target, 4), len),
                page(&source, 5),
                false,
            ),
            (
                Operation::memmove(page(&source, 0), page(&target, 1), len),
                page(&target, 2),
                true,
            ),
            (
                Operation::fill(1, page(&target, 1), len),
                page(&target, 2),
                true,
            ),
            (
                Operation::crc(page(&source, 4), len, 0),
                page(&source, 5),
                false,
            ),
            // Beyond the end, and before the beginning.
            (
                Operation::fill(1, page(&target, 7), len),
                page(&target, 8),
                true,
            ),
            (
                Operation::compare(page(&source, 0) - 8, page(&target, 0), 64),
                page(&source, 0) - 8,
                false,
            ),
            // Null.
            (Operation::fill(1, 0, 64), 0, true),
            (Operation::crc(0, 64, 0), 0, false),
        ] {
            let outcome = run(&mut channels, &[operation])[0];
            let (address, write, done) = fault_of(&outcome, &operation);
            let opcode = operation.opcode();
            assert_eq!(address & !4095, at & !4095, "{name}: {opcode:?}");
            assert_eq!(write, is_write, "{name}: {opcode:?}");
            assert!(done < operation.len(), "{name}: {opcode:?}");
        }
        // What is before a fault may be there; nothing else is written, and what can be done is.
        assert!(
            target[2 * PAGE..3 * PAGE].iter().all(|byte| *byte == 0),
            "{name}"
        );
        let copy = Operation::memmove(page(&source, 0), page(&target, 3), len);
        let outcome = run(&mut channels, &[copy])[0];
        assert_eq!(outcome.output(&copy), Ok(Output::Done), "{name}");
        assert!(target[3 * PAGE..7 * PAGE] == source[..4 * PAGE], "{name}");
    }
}

#[test]
fn a_flush_reads_and_a_seed_of_crc_32_has_four_bytes() {
    for (name, mut channels) in all() {
        let memory = Guarded::noise(2, 3);
        let end = memory.address() + 2 * PAGE as u64;
        memory.read_only(0..1);
        let flush = Operation::cache_flush(memory.address(), PAGE as u32);
        let seeded = |crc: Descriptor, bytes: u64| {
            let crc = crc.with_crc_seed_address(end - bytes);
            Operation::try_from(crc).expect("an operation")
        };
        let crc = seeded(Descriptor::crc(memory.address(), 64, 0), 4);
        let outcomes = run(&mut channels, &[flush, crc]);
        assert_eq!(outcomes[0].output(&flush), Ok(Output::Done), "{name}");
        let (_, seed) = memory.split_last_chunk::<4>().expect("4 bytes");
        let options = CrcOptions::default();
        let expected = crc32c(u32::from_le_bytes(*seed), &memory[..64], options);
        assert_eq!(
            outcomes[1].output(&crc),
            Ok(Output::Crc32(expected)),
            "{name}"
        );
    }
}

/// Operations that meet a page without access, or end before it: page 5 of the source cannot be read, page 2 of
/// the target cannot be written.
fn up_to_a_page_without_access(source: u64, target: u64) -> Vec<Operation> {
    let (from, to) = (
        |n: u64| source + n * BASE_PAGE,
        |n: u64| target + n * BASE_PAGE,
    );
    let (page, two) = (BASE_PAGE as u32, 2 * BASE_PAGE as u32);
    vec![
        // The pages differ, in front of what cannot be read.
        Operation::compare(from(4), to(4), two),
        Operation::compare_pattern(from(4), 0, two),
        // They do not.
        Operation::compare(from(4), from(4), two),
        Operation::memmove(from(4) + 100, to(4), two),
        Operation::memmove(from(0), to(1) + 50, page),
        Operation::fill(7, to(1) + 8, two),
        Operation::crc(from(4) + 1, two, 0),
        Operation::copy_crc(from(0), to(1), two, 0),
        Operation::dualcast(from(0), to(4), to(1), two),
        // The record has room for more than it needs, and for less.
        Operation::create_delta(from(0), from(0), page, to(2) - 80, 160),
        Operation::create_delta(from(0), from(1), page, to(2) - 80, 160),
        Operation::create_delta(from(0), from(1), page, to(2) - 80, 80),
        // Backward, from a page that can be accessed to one that cannot.
        Operation::memmove(to(2), to(2) + 64, two),
    ]
}

#[test]
fn the_core_ends_at_a_page_without_access_as_a_device_does() {
    let mut of_device = None;
    for (name, mut channels) in all() {
        let (source, target) = (Guarded::noise(8, 1), Guarded::new(8));
        source.inaccessible(5..6);
        target.read_only(2..3);
        let (from, to) = (source.address(), target.address());
        let operations = up_to_a_page_without_access(from, to);
        let mut ends = Vec::new();
        for operation in &operations {
            let outcome = run(&mut channels, &[*operation])[0];
            let record = outcome.completion.record;
            assert_eq!(
                outcome.core_bytes + outcome.device_bytes,
                match record.status().is_success() {
                    true => u64::from(operation.len()),
                    false => u64::from(record.bytes_completed),
                },
                "{name}: {operation:?}"
            );
            let fault = match record.fault_address {
                0 => None,
                at if (from..from + 8 * BASE_PAGE).contains(&at) => Some((false, at - from)),
                at => Some((true, at - to)),
            };
            ends.push((record.status, record.result, record.bytes_completed, fault));
        }
        let (ends, bytes) = (ends, target.to_vec());
        let Some((expected, expected_bytes)) = &of_device else {
            assert!(ends.iter().any(|end| end.3.is_none()));
            assert!(ends.iter().any(|end| end.3.is_some() && end.2 > 0));
            of_device = Some((ends, bytes));
            continue;
        };
        for ((operation, end), expected) in operations.iter().zip(&ends).zip(expected) {
            assert_eq!(end, expected, "{name}: {operation:?}");
        }
        assert!(bytes == *expected_bytes, "{name}");
    }
}

#[test]
fn a_batch_of_the_core_faults_by_member() {
    let core = ChannelsOptions {
        check_core: true,
        ..options()
    };
    let mut channels = Channels::<CpuMover>::new([], core).expect("the core");
    let target = Guarded::new(2);
    target.read_only(1..2);
    let fills = [0, 1].map(|n| Operation::fill(u64::MAX, target.address() + n * PAGE as u64, 64));
    // SAFETY: the channels look at the addresses.
    unsafe { channels.enqueue_batch(&fills) }.expect("slots");
    channels.submit();
    let mut ended = [Outcome::default(); 2];
    assert_eq!(channels.poll_outcomes(&mut ended), 2);
    assert_eq!(ended[0].output(&fills[0]), Ok(Output::Done));
    let fault = fault_of(&ended[1], &fills[1]);
    assert_eq!(fault, (target.address() + PAGE as u64, true, 0));
    assert_eq!(ended[1].core_bytes, 0);
}

#[test]
fn what_breaks_a_rule_is_refused_by_its_status_and_writes_nothing() {
    for (name, mut channels) in all() {
        let memory = Guarded::new(8);
        let at = |n: usize| memory.address() + n as u64;
        let half = PAGE as u32;
        let refused = [
            // No bytes.
            (
                Operation::memmove(at(0), at(half as usize), 0),
                Status::TRANSFER_SIZE,
            ),
            // Operands that overlap, of an operation that copies elsewhere.
            (
                Operation::copy_crc(at(0), at(100), half, 0),
                Status::OVERLAP,
            ),
            // Destinations of a dualcast that differ in address bits 11:0.
            (
                Operation::dualcast(at(0), at(PAGE), at(3 * PAGE + 8), 64),
                Status::DUALCAST_ALIGNMENT,
            ),
            // A delta record that is not aligned to 8 bytes.
            (
                Operation::create_delta(at(4), at(PAGE), 64, at(2 * PAGE), 80),
                Status::ADDRESS_ALIGNMENT,
            ),
        ];
        for (operation, status) in refused {
            let outcome = run(&mut channels, &[operation])[0];
            let opcode = operation.opcode();
            let found = outcome.output(&operation);
            assert_eq!(found, Err(Failure::Status { status }), "{name}: {opcode:?}");
        }
        assert!(memory.iter().all(|byte| *byte == 0), "{name}");
    }
}

#[test]
fn a_lost_queue_is_the_reason_that_the_core_met_the_fault() {
    let (_, mut channels) = all().pop().expect("the lost queue");
    let target = Guarded::new(1);
    let fill = Operation::fill(1, target.address(), 64);
    let outcome = run(&mut channels, &[fill])[0];
    assert_eq!(outcome.core_reason, Some(Reason::QueueLost));
    assert_eq!(outcome.executor(), Executor::Cpu);
    let reason = channels.excluded().next().map(|excluded| excluded.reason);
    assert_eq!(reason, Some(QueueLost::Disabled));
    assert_eq!(
        ChannelsOptions::default().lost_queue,
        LostQueuePolicy::Other
    );
}
