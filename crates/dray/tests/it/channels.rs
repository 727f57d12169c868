//! Several queues and devices as one: stripes, batches, choices and policies, all of them visible.

use std::collections::HashSet;

use dray::channels::{
    Channels, ChannelsOptions, Choice, CostModel, Member, Outcome, Reason, Require,
};
use dray::virt::{Options, VirtualDevice, VirtualMover};
use dray::{Completion, CpuMover, Executor, Failure, Mover, Operation, Output, WaitPolicy, wait};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_ops::{CrcOptions, DestinationDifFlags, DifFlags, SourceDifFlags, crc32c};
use dray_spec::{Descriptor, DifTags, Flags, GenCap, Status};

use crate::machine::{device, queue};

pub(crate) fn noise(len: usize) -> Vec<u8> {
    (0..len)
        .map(|n| (n.wrapping_mul(0x9e37_79b9) >> 11) as u8)
        .collect()
}

pub(crate) fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr().expose_provenance() as u64
}

/// `queues` queues on a device of their own each.
pub(crate) fn members(queues: u32, slots: usize) -> Vec<Member<VirtualMover>> {
    let open = |node| {
        let mode = if node % 2 == 0 { Dedicated } else { Shared };
        let started = VirtualDevice::start(device(1, vec![queue(0, mode, 16)]), Options::default());
        let started = started.expect("a device that can be enabled");
        Member {
            mover: started.open(0, slots).expect("a queue"),
            numa_node: Some(node),
        }
    };
    (0..queues).map(open).collect()
}

pub(crate) fn options() -> ChannelsOptions {
    ChannelsOptions {
        local_node: None,
        ..ChannelsOptions::default()
    }
}

/// Enqueues operations on memory that outlives the call, and runs them to their end; by user data.
pub(crate) fn run<M: Mover>(channels: &mut Channels<M>, operations: &[Operation]) -> Vec<Outcome> {
    let mut outcomes = vec![None; operations.len()];
    let mut next = 0;
    let mut seen = [Outcome::default(); 7];
    while outcomes.iter().any(Option::is_none) {
        while let Some(operation) = operations.get(next) {
            let operation = operation.with_user_data(next as u64);
            // SAFETY: the tests' buffers outlive the call, and operations do not overlap.
            if unsafe { channels.enqueue(&operation) }.is_err() {
                break;
            }
            next += 1;
        }
        channels.submit();
        let count = channels.poll_outcomes(&mut seen);
        for outcome in &seen[..count] {
            let place = &mut outcomes[outcome.completion.user_data as usize];
            assert_eq!(place.replace(*outcome), None, "ended twice");
        }
        if count == 0 {
            std::thread::yield_now();
        }
    }
    outcomes.into_iter().flatten().collect()
}

#[test]
fn large_operations_are_striped_and_give_what_one_device_gives() {
    let bytes = 1_000_003;
    let source = noise(bytes);
    let len = bytes as u32;
    for queues in [1, 2, 3, 8] {
        let mut channels = Channels::new(members(queues, 16), options()).expect("channels");
        let mut other = source.clone();
        other[700_001] ^= 1;
        let target = [vec![0_u8; bytes], vec![0_u8; bytes], vec![0_u8; bytes]];
        let (from, to) = (address(&source), target.each_ref().map(|t| address(t)));
        let operations = [
            Operation::memmove(from, to[0], len),
            Operation::fill(0x0807_0605_0403_0201, to[1], len),
            Operation::compare(from, address(&other), len),
            Operation::crc(from, len, 77),
            Operation::copy_crc(from, to[2], len, 0),
        ];
        let outcomes = run(&mut channels, &operations);
        assert!(target[0] == source && target[2] == source, "{queues}");
        assert!(
            target[1]
                .iter()
                .enumerate()
                .all(|(n, b)| *b == (n % 8) as u8 + 1)
        );
        let difference = Some(700_001);
        assert_eq!(
            outcomes[2].output(&operations[2]),
            Ok(Output::Compared { difference })
        );
        for (n, seed) in [(3, 77), (4, 0)] {
            let crc = crc32c(seed, &source, CrcOptions::default());
            assert_eq!(outcomes[n].output(&operations[n]), Ok(Output::Crc32(crc)));
        }
        for (n, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.stripes, queues, "operation {n}");
            assert_eq!(outcome.executor(), Executor::Virtual);
            assert_eq!((outcome.core_bytes, outcome.core_reason), (0, None));
        }
        assert_eq!(outcomes[0].device_bytes, bytes as u64);
    }
}

#[test]
fn a_comparison_in_stripes_checks_its_result_as_a_whole() {
    let (a, mut b) = (noise(1 << 20), noise(1 << 20));
    b[1000] ^= 1;
    b[900_000] ^= 1;
    let mut channels = Channels::new(members(4, 16), options()).expect("channels");
    let compare = |expected| {
        let compare = Descriptor::compare(address(&a), address(&b), 1 << 20)
            .with_flags(Flags::CHECK_RESULT)
            .with_expected_result(expected);
        Operation::try_from(compare).expect("a comparison")
    };
    let outcomes = run(&mut channels, &[compare(0), compare(1)]);
    let status = |n: usize| outcomes[n].completion.status();
    assert_eq!(
        (status(0), status(1)),
        (Status::SUCCESS_PREDICATE, Status::SUCCESS)
    );
    assert_eq!(outcomes[1].completion.record.bytes_completed, 1000);
}

#[test]
fn small_operations_travel_in_batches() {
    let source = noise(4096);
    let target = vec![0_u8; 64 * 64];
    let copy =
        |n: u64| Operation::memmove(address(&source) + n * 64, address(&target) + n * 64, 64);
    let operations: Vec<Operation> = (0..64).map(copy).collect();
    let mut channels = Channels::new(members(2, 64), options()).expect("channels");
    let outcomes = run(&mut channels, &operations);
    assert_eq!(source, target);
    assert!(outcomes.iter().all(|outcome| outcome.gathered));
    let single = ChannelsOptions {
        max_gathered: 1,
        ..options()
    };
    let mut channels = Channels::new(members(2, 64), single).expect("channels");
    assert!(
        run(&mut channels, &operations)
            .iter()
            .all(|outcome| !outcome.gathered)
    );
}

#[test]
fn local_channels_come_first_and_others_when_they_are_loaded() {
    let local = ChannelsOptions {
        local_node: Some(2),
        remote_bytes: 100_000,
        gather_below_bytes: 0,
        max_stripes: 1,
        ..ChannelsOptions::default()
    };
    let source = noise(64 << 10);
    let target = vec![0_u8; 64 << 10];
    let copies: Vec<Operation> = (0..4_u64)
        .map(|n| {
            let at = n * (16 << 10);
            Operation::memmove(address(&source) + at, address(&target) + at, 16 << 10)
        })
        .collect();
    let mut channels = Channels::new(members(4, 16), local).expect("channels");
    for copy in &copies {
        // SAFETY: the buffers outlive the operations, which are waited for.
        unsafe { channels.enqueue(copy) }.expect("a slot");
    }
    channels.submit();
    // Which queue has what: the local one has all of them.
    let busy: Vec<bool> = channels
        .movers()
        .map(|mover| mover.oldest_record().is_some())
        .collect();
    assert_eq!(busy, [true, false, false, false]);
    let mut left = 4;
    let mut seen = [Completion::default(); 4];
    while left > 0 {
        left -= channels.poll(&mut seen);
    }
    assert_eq!(source, target);
}

#[test]
fn the_choice_is_named() {
    let (source, target) = (noise(64 << 10), vec![0_u8; 64 << 10]);
    let copy = |len| Operation::memmove(address(&source), address(&target), len);
    let by = |choice, operation| {
        let options = ChannelsOptions {
            choice,
            ..options()
        };
        let mut channels = Channels::new(members(1, 16), options).expect("channels");
        run(&mut channels, &[operation])[0]
    };
    let outcome = by(Choice::Core, copy(65536));
    assert_eq!(outcome.core_reason, Some(Reason::Chosen));
    assert_eq!(
        (outcome.core_bytes, outcome.executor()),
        (65536, Executor::Cpu)
    );
    let threshold = Choice::Threshold {
        device_from_bytes: 4096,
    };
    assert_eq!(
        by(threshold, copy(4095)).core_reason,
        Some(Reason::BelowThreshold)
    );
    assert_eq!(by(threshold, copy(4096)).core_reason, None);
    let cost = Choice::Cost(CostModel::default());
    assert_eq!(by(cost, copy(64)).core_reason, Some(Reason::Faster));
    assert_eq!(by(cost, copy(65536)).core_reason, None);
    // A device of version 1 has no CRC-64.
    let crc = Operation::try_from(Descriptor::crc64(address(&source), 4096, 0)).expect("a CRC");
    let outcome = by(Choice::Device, crc);
    assert_eq!(outcome.core_reason, Some(Reason::NoDevice));
    assert_eq!(outcome.completion.status(), Status::SUCCESS);
}

#[test]
fn a_learned_choice_tries_both_and_knows_their_times() {
    let (source, target) = (noise(4096), vec![0_u8; 4096]);
    let copy = Operation::memmove(address(&source), address(&target), 4096);
    let learned = ChannelsOptions {
        choice: Choice::Learned(CostModel::default()),
        ..options()
    };
    let mut channels = Channels::new(members(1, 16), learned).expect("channels");
    let mut reasons = HashSet::new();
    for _ in 0..200 {
        reasons.insert(run(&mut channels, &[copy])[0].core_reason);
    }
    assert!(reasons.contains(&None), "{reasons:?}");
    assert!(reasons.len() > 1, "{reasons:?}");
    let learned = channels.learned().expect("it learns");
    let (core, device) = learned.times(copy.opcode(), 4096, 1);
    assert!(core.is_some_and(|ns| ns > 0.0) && device.is_some_and(|ns| ns > 0.0));
}

#[test]
fn without_channels_the_core_does_all_of_it() {
    let source = noise(4096);
    let none: [Member<VirtualMover>; 0] = [];
    let mut channels = Channels::new(none, options()).expect("the core");
    let crc = Operation::crc(address(&source), 4096, 0);
    let outcome = run(&mut channels, &[crc])[0];
    assert_eq!(outcome.core_reason, Some(Reason::NoDevice));
    let expected = crc32c(0, &source, CrcOptions::default());
    assert_eq!(outcome.output(&crc), Ok(Output::Crc32(expected)));
}

#[test]
fn an_operation_beyond_the_largest_transfer_travels_in_parts() {
    let mut small = queue(0, Dedicated, 16);
    small.max_transfer_size = 64 << 10;
    let started = VirtualDevice::start(device(1, vec![small]), Options::default());
    let started = started.expect("a device that can be enabled");
    let mut mover = started.open(0, 8).expect("a queue").dividing();
    assert!(mover.capabilities().divides);
    let bytes = (1 << 20) + 777;
    let source = noise(bytes + 4096);
    let target = vec![0_u8; bytes + 4096];
    let (from, to, len) = (address(&source), address(&target), bytes as u32);
    let one = |mover: &mut VirtualMover, operation: &Operation| {
        // SAFETY: the buffers outlive the operation, which is waited for.
        unsafe { mover.enqueue(operation) }.expect("a slot");
        let mut ended = [Completion::default()];
        wait(mover, &mut ended, WaitPolicy::Yield, None).expect("it ends");
        ended[0].output(operation)
    };
    let crc = crc32c(9, &source[..bytes], CrcOptions::default());
    let copy = Operation::copy_crc(from, to, len, 9);
    assert_eq!(one(&mut mover, &copy), Ok(Output::Crc32(crc)));
    assert!(source[..bytes] == target[..bytes]);
    let compare = Operation::compare(from, to, len + 100);
    let difference = (bytes..)
        .find(|n| source[*n] != target[*n])
        .map(|n| n as u32);
    assert_eq!(
        one(&mut mover, &compare),
        Ok(Output::Compared { difference })
    );
    // Upwards over itself, by less than a part.
    let before = target.clone();
    let slide = Operation::memmove(to, to + 1000, len);
    assert_eq!(one(&mut mover, &slide), Ok(Output::Done));
    assert!(target[1000..1000 + bytes] == before[..bytes]);
    // What breaks a rule as a whole is not divided, and the device looks at the size first.
    let overlap = Operation::copy_crc(to, to + 1000, len, 0);
    let before = target.clone();
    let status = Status::TRANSFER_SIZE;
    let refused = one(&mut mover, &overlap);
    assert_eq!(refused, Err(Failure::Status { status }));
    assert!(target == before);
}

#[test]
fn the_core_adds_its_forms_of_operations() {
    let without = |core| {
        let mut config = device(1, vec![queue(0, Dedicated, 16)]);
        let general = GenCap::from_bits(config.capabilities.gen_cap).with_overlapping_copy(false);
        config.capabilities.gen_cap = general.into_bits();
        let started = VirtualDevice::start(config, Options::default()).expect("a device");
        let member = Member {
            mover: started.open(0, 16).expect("a queue"),
            numa_node: None,
        };
        let require = if core { Require::Any } else { Require::Device };
        let options = ChannelsOptions {
            require,
            ..options()
        };
        Channels::new([member], options).expect("channels")
    };
    let forms = |channels: &Channels<VirtualMover>| {
        let general = channels.capabilities().general;
        [
            general.overlapping_copy(),
            general.fill_pattern_16(),
            general.crc64(),
        ]
    };
    let (mut any, mut device) = (without(true), without(false));
    assert_eq!(forms(&any), [true; 3]);
    assert_eq!(forms(&device), [false; 3]);
    let before = noise(300_000);
    let memory = before.clone();
    let slide = Operation::memmove(address(&memory), address(&memory) + 1000, 200_000);
    let refused = run(&mut device, &[slide])[0].output(&slide);
    let status = Status::OVERLAP;
    assert_eq!(refused, Err(Failure::Status { status }));
    assert!(memory == before);
    let outcome = run(&mut any, &[slide])[0];
    assert_eq!(outcome.output(&slide), Ok(Output::Done));
    assert_eq!(outcome.core_reason, Some(Reason::NoDevice));
    assert!(memory[1000..201_000] == before[..200_000]);
}

#[test]
fn nothing_is_written_behind_a_bad_block() {
    const BLOCKS: usize = 2000;
    let flags = DifFlags::from_bits(0);
    let tags = DifTags {
        reference: 7,
        app_mask: 0,
        app: 9,
    };
    let made = (DestinationDifFlags::from_bits(0), tags);
    let checked = (SourceDifFlags::from_bits(0), tags);
    let data = noise(BLOCKS * 512);
    let len = (BLOCKS * 520) as u32;
    let mut protected = vec![0_u8; BLOCKS * 520];
    let (from, to) = (address(&data), address(&protected));
    let insert = Operation::dif_insert(from, to, (BLOCKS * 512) as u32, flags, made);
    let mut channels = Channels::new(members(4, 16), options()).expect("channels");
    let outcome = run(&mut channels, &[insert])[0];
    assert_eq!(
        (outcome.stripes, outcome.completion.status()),
        (4, Status::SUCCESS)
    );
    for bad in [0, 3, BLOCKS / 2, BLOCKS - 1] {
        protected[bad * 520 + 5] ^= 1;
        let from = address(&protected);
        let target = || [vec![0xcc_u8; BLOCKS * 512], vec![0xcc_u8; BLOCKS * 520]];
        let operations = |target: &[Vec<u8>; 2]| {
            let [strip, update] = target.each_ref().map(|bytes| address(bytes));
            [
                Operation::dif_strip(from, strip, len, flags, checked),
                Operation::dif_update(from, update, len, flags, checked, made),
            ]
        };
        let (striped, whole) = (target(), target());
        let found = run(&mut channels, &operations(&striped));
        let mut core = Channels::<CpuMover>::new([], options()).expect("the core");
        let expected = run(&mut core, &operations(&whole));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.completion.record, expected.completion.record, "{bad}");
            assert_eq!(found.completion.status(), Status::DIF_ERROR);
        }
        assert!(striped == whole, "bad block {bad}");
        // The oracle, in words: all before the bad block, and nothing behind it.
        assert!(striped[0][..bad * 512] == data[..bad * 512]);
        assert!(
            striped[0][(bad + 1) * 512..]
                .iter()
                .all(|byte| *byte == 0xcc)
        );
        assert!(
            striped[1][(bad + 1) * 520..]
                .iter()
                .all(|byte| *byte == 0xcc)
        );
        protected[bad * 520 + 5] ^= 1;
    }
}

#[test]
fn movers_of_idle_channels_can_be_used_one_by_one() {
    let members = [0, 1].map(|_| Member {
        mover: CpuMover::new(4),
        numa_node: None,
    });
    let mut channels = Channels::new(members, ChannelsOptions::default()).expect("channels");
    let use_both = |channels: &mut Channels<CpuMover>| {
        let movers = channels.idle_movers().expect("nothing is under way");
        assert_eq!(movers.len(), 2);
        for mover in movers {
            // SAFETY: a NOOP has no operands.
            unsafe { mover.enqueue(&Operation::noop()) }.expect("a slot");
            mover.submit();
            assert_eq!(mover.poll(&mut [Completion::default()]), 1);
        }
    };
    use_both(&mut channels);
    // SAFETY: a NOOP has no operands.
    unsafe { channels.enqueue(&Operation::noop()) }.expect("a slot");
    assert!(channels.idle_movers().is_none(), "one is enqueued");
    channels.submit();
    assert!(
        channels.idle_movers().is_none(),
        "its outcome was not taken"
    );
    assert_eq!(channels.poll(&mut [Completion::default()]), 1);
    use_both(&mut channels);
}
