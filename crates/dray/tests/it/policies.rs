//! Policies of channels: page faults, full queues, required executors.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use dray::channels::{
    Channels, ChannelsError, ChannelsOptions, Choice, FullQueuePolicy, LostQueuePolicy, Member,
    Outcome, PageFaultPolicy, Reason, Require,
};
use dray::virt::{AllAccessible, Options, Translation, VirtualDevice, VirtualMover};
use dray::{
    Channel, Completion, CpuMover, Executor, Failure, Mover, Operation, Output, Progress,
    WaitError, WaitPolicy, wait,
};
use dray_device::Access;
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_ops::{CrcOptions, crc32c};
use dray_spec::registers::{Command, CommandRegister};
use dray_spec::{CompletionRecord, Descriptor, Status};

use crate::channels::{address, members, noise, options, run};
use crate::machine::{device, queue};
use crate::manual::Manual;
use crate::memory::{Guarded, PAGE};
use crate::silent::Silent;

/// Memory whose pages fault once each.
#[derive(Default)]
pub(crate) struct FirstTouch {
    seen: Mutex<HashSet<u64>>,
    pages: std::ops::Range<u64>,
}

impl FirstTouch {
    /// All pages that operations name.
    pub(crate) fn everywhere() -> FirstTouch {
        FirstTouch {
            pages: 0..u64::MAX,
            ..FirstTouch::default()
        }
    }
}

impl Translation for FirstTouch {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let mut page = addr & !4095;
        while page < addr + len {
            let inside = self.pages.contains(&page);
            let first = inside && self.seen.lock().expect("no panic").insert(page);
            if first {
                return page.max(addr) - addr;
            }
            page += 4096;
        }
        AllAccessible.accessible(addr, len, access)
    }
}

fn faulting(target: &[u8], page_fault: PageFaultPolicy) -> Channels<VirtualMover> {
    let start = address(target).next_multiple_of(4096);
    let space = FirstTouch {
        pages: start..start + target.len() as u64,
        ..FirstTouch::default()
    };
    let config = device(1, vec![queue(0, Dedicated, 16), queue(1, Shared, 16)]);
    let started = VirtualDevice::start_in(config, Options::default(), space, |_| {});
    let started = started.expect("a device that can be enabled");
    let open = |id| Member {
        mover: started.open(id, 16).expect("a queue"),
        numa_node: None,
    };
    let options = ChannelsOptions {
        page_fault,
        ..options()
    };
    Channels::new([open(0), open(1)], options).expect("channels")
}

#[test]
fn every_page_fault_policy_ends_as_it_says() {
    let source = noise(256 << 10);
    let len = source.len() as u32;
    let crc = crc32c(5, &source, CrcOptions::default());
    for policy in [
        PageFaultPolicy::TouchAndResume { most: 64 },
        PageFaultPolicy::FinishOnCore,
        PageFaultPolicy::Return,
    ] {
        let target = vec![0_u8; source.len()];
        let mut channels = faulting(&target, policy);
        let copy = Operation::copy_crc(address(&source), address(&target), len, 5);
        let outcome = run(&mut channels, &[copy])[0];
        let result = outcome.output(&copy);
        match policy {
            PageFaultPolicy::Return => {
                let Err(Failure::PageFault {
                    write: true,
                    bytes_completed,
                    address: at,
                }) = result
                else {
                    panic!("{result:?}");
                };
                assert_eq!(at & !4095, address(&target).next_multiple_of(4096));
                assert!(bytes_completed < 4096);
                assert!(source[..bytes_completed as usize] == target[..bytes_completed as usize]);
            }
            PageFaultPolicy::FinishOnCore => {
                assert_eq!(result, Ok(Output::Crc32(crc)));
                assert_eq!(outcome.core_reason, Some(Reason::PageFault));
                assert_eq!(outcome.core_bytes + outcome.device_bytes, u64::from(len));
                assert_eq!(outcome.executor(), Executor::Cpu);
                assert!(source == target);
            }
            _ => {
                assert_eq!(result, Ok(Output::Crc32(crc)));
                assert!(outcome.resumed_faults >= 63, "{outcome:?}");
                assert_eq!(outcome.core_reason, None);
                assert_eq!(outcome.device_bytes, u64::from(len));
                assert!(source == target);
            }
        }
    }
}

#[test]
fn a_copy_that_makes_progress_takes_a_fault_for_each_of_its_pages() {
    let source = noise(1 << 20);
    let target = vec![0_u8; source.len()];
    let mut channels = faulting(&target, options().page_fault);
    let copy = Operation::memmove(address(&source), address(&target), 1 << 20);
    let outcome = run(&mut channels, &[copy])[0];
    assert_eq!(outcome.output(&copy), Ok(Output::Done));
    assert!(outcome.resumed_faults >= 255, "{outcome:?}");
    assert_eq!((outcome.device_bytes, outcome.core_bytes), (1 << 20, 0));
    assert!(source == target);
}

#[test]
fn an_operation_that_begins_again_takes_a_fault_for_each_of_its_pages() {
    // A delta record is made anew after a fault: no byte of it is done before all pages are there.
    let len = 512 << 10;
    let (old, mut new, record) = (noise(len), noise(len), vec![0_u8; 4096]);
    new[len - 1] ^= 1;
    let config = device(1, vec![queue(0, Dedicated, 16)]);
    let space = FirstTouch::everywhere();
    let started = VirtualDevice::start_in(config, Options::default(), space, |_| {});
    let member = Member {
        mover: started.expect("a device").open(0, 16).expect("a queue"),
        numa_node: None,
    };
    let mut channels = Channels::new([member], options()).expect("channels");
    let [first, second, to] = [&old, &new, &record].map(|bytes| address(bytes));
    let delta = Operation::create_delta(first, second, len as u32, to, 4096);
    let outcome = run(&mut channels, &[delta])[0];
    let made = Output::Delta {
        record_bytes: 10,
        overflow_at: None,
    };
    assert_eq!(outcome.output(&delta), Ok(made));
    assert!(outcome.resumed_faults > 64, "{outcome:?}");
}

/// Page and bytes done of a fault, by its number.
type Fault = fn(u64) -> (u64, u32);

#[test]
fn faults_without_progress_end_the_operation() {
    let target = Guarded::new(4);
    let at = target.address();
    let fill = Operation::fill(1, at, 4 * PAGE as u32);
    // Each with how many of them are resolved.
    let again = |_: u64| (1, 0);
    let in_turns = |n: u64| (n % 2, 0);
    let with_progress = |n: u64| (0, u32::from(n.is_multiple_of(3)));
    let faults: [(Fault, u32); 3] = [
        (again, 3),
        // The 4 pages and 2 for the ends, and 3 more.
        (in_turns, 9),
        // All that there were: a byte is done before the third at the same page.
        (with_progress, 100),
    ];
    for (fault, resolved) in faults {
        let mover = Manual::new(4, 4);
        let member = Member {
            mover: mover.clone(),
            numa_node: None,
        };
        let options = ChannelsOptions {
            page_fault: PageFaultPolicy::TouchAndResume { most: 3 },
            ..options()
        };
        let mut channels = Channels::new([member], options).expect("channels");
        // SAFETY: the memory outlives the operation, which is waited for.
        unsafe { channels.enqueue(&fill) }.expect("a slot");
        let mut ended = [Outcome::default()];
        let mut count = 0;
        for n in 0..100 {
            channels.submit();
            if mover.in_flight().is_empty() {
                break;
            }
            let (page, bytes) = fault(n);
            let mut record = CompletionRecord::with_status(Status::PAGE_FAULT.with_write_fault());
            record.fault_address = at + page * PAGE as u64;
            record.bytes_completed = bytes;
            mover.end(record);
            count = channels.poll_outcomes(&mut ended);
        }
        channels.submit();
        if count == 0 {
            assert_eq!(mover.execute_all(), 1);
            assert_eq!(channels.poll_outcomes(&mut ended), 1);
        }
        assert_eq!(ended[0].resumed_faults, resolved);
        assert_eq!(ended[0].output(&fill).is_ok(), count == 0);
    }
}

#[test]
fn a_page_that_the_core_cannot_make_present_ends_the_operation() {
    // Read-only: the core cannot write it either, and must not try.
    let pages = 4 * 4096;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            pages,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(base, libc::MAP_FAILED);
    for policy in [
        PageFaultPolicy::TouchAndResume { most: 64 },
        PageFaultPolicy::FinishOnCore,
    ] {
        let space = FirstTouch {
            pages: base as u64..base as u64 + pages as u64,
            ..FirstTouch::default()
        };
        let config = device(1, vec![queue(0, Dedicated, 16)]);
        let started = VirtualDevice::start_in(config, Options::default(), space, |_| {});
        let mover = started.expect("a device").open(0, 16).expect("a queue");
        let member = Member {
            mover,
            numa_node: None,
        };
        let options = ChannelsOptions {
            page_fault: policy,
            ..options()
        };
        let mut channels = Channels::new([member], options).expect("channels");
        let fill = Operation::fill(1, base as u64, pages as u32);
        let outcome = run(&mut channels, &[fill])[0];
        let fault = Failure::PageFault {
            address: base as u64,
            write: true,
            bytes_completed: 0,
        };
        assert_eq!(outcome.output(&fill), Err(fault), "{policy:?}");
    }
    // SAFETY: the mapping of this test.
    unsafe { libc::munmap(base, pages) };
}

#[test]
fn with_block_on_fault_the_device_is_asked_to_wait() {
    let target = vec![0_u8; 64 << 10];
    let mut channels = Channels::new(
        members(2, 16),
        ChannelsOptions {
            page_fault: PageFaultPolicy::BlockOnFault,
            ..options()
        },
    )
    .expect("queues that block on faults");
    let fill = Operation::fill(1, address(&target), 64 << 10);
    assert_eq!(
        run(&mut channels, &[fill])[0].completion.status(),
        Status::SUCCESS
    );
    let mut refusing = queue(0, Dedicated, 16);
    refusing.block_on_fault = false;
    let started = VirtualDevice::start(device(1, vec![refusing]), Options::default());
    let mover = started.expect("a device").open(0, 16).expect("a queue");
    let member = Member {
        mover,
        numa_node: None,
    };
    let refused = Channels::new(
        [member],
        ChannelsOptions {
            page_fault: PageFaultPolicy::BlockOnFault,
            ..options()
        },
    );
    assert_eq!(
        refused.err(),
        Some(ChannelsError::NoBlockOnFault { channel: 0 })
    );
}

/// Channels on a queue that takes nothing and does not say why: it is full for ever.
fn full(full_queue: FullQueuePolicy, slots: usize) -> (VirtualDevice, Channels<Silent>) {
    let started = VirtualDevice::start(device(1, vec![queue(0, Shared, 16)]), Options::default());
    let started = started.expect("a device that can be enabled");
    let disabled = started
        .device()
        .command(Command::DisableWq, CommandRegister::queue(0));
    assert_eq!(disabled, Ok(Ok(0)));
    let member = Member {
        mover: Silent(started.open(0, slots).expect("a queue")),
        numa_node: None,
    };
    let options = ChannelsOptions {
        full_queue,
        ..options()
    };
    (started, Channels::new([member], options).expect("channels"))
}

#[test]
fn every_full_queue_policy_ends_as_it_says() {
    let target = vec![0_u8; 40 * 4096];
    let fill = |n: u64| Operation::fill(0x0101_0101_0101_0101, address(&target) + n * 4096, 4096);
    let fills: Vec<Operation> = (0..40).map(fill).collect();
    // More than the mover has slots, and fewer.
    for slots in [4, 128] {
        let (_device, mut channels) = full(FullQueuePolicy::Core, slots);
        let outcomes = run(&mut channels, &fills);
        let core = |outcome: &Outcome| outcome.core_reason == Some(Reason::QueueFull);
        assert!(outcomes.iter().all(core));
        assert!(target.iter().all(|byte| *byte == 1));
        let (_device, mut channels) = full(FullQueuePolicy::Error, slots);
        let outcomes = run(&mut channels, &fills);
        let failed = |outcome: &Outcome| outcome.output(&fills[0]) == Err(Failure::QueueFull);
        assert!(outcomes.iter().all(failed));
        // To wait for ever is the caller's choice: a deadline ends it, and all comes back.
        let (device, mut channels) = full(FullQueuePolicy::Wait, slots);
        for fill in &fills {
            // SAFETY: the buffer outlives the operations.
            unsafe { channels.enqueue(fill) }.expect("a slot");
        }
        let mut ended = [Completion::default(); 64];
        let after = Duration::from_millis(1);
        let waited = wait(&mut channels, &mut ended, WaitPolicy::Yield, Some(after));
        assert_eq!(waited, Err(WaitError::Deadline { after }));
        assert_eq!(channels.withdraw(), 40);
        assert_eq!(channels.poll(&mut ended), 40);
        assert!(
            ended[..40]
                .iter()
                .all(|completion| completion.record.status == 0)
        );
        assert_eq!(channels.submit(), Progress::Done);
        // Large and small ones wait in turn: all come back.
        let large = Operation::fill(2, address(&target), 40 * 4096);
        for operation in [&fills[0], &large, &fills[1], &large, &fills[2]] {
            // SAFETY: as above.
            unsafe { channels.enqueue(operation) }.expect("a slot");
        }
        channels.submit();
        channels.withdraw();
        assert_eq!(channels.poll(&mut ended), 5);
        drop(device);
    }
}

#[test]
fn what_is_required_is_kept_or_refused() {
    let required = |require, change: fn(&mut ChannelsOptions)| {
        let mut options = ChannelsOptions {
            require,
            ..options()
        };
        change(&mut options);
        Channels::new(members(1, 4), options).map(|_| ())
    };
    assert_eq!(required(Require::Device, |_| {}), Ok(()));
    let executor = Some(Executor::Virtual);
    assert_eq!(
        required(Require::Hardware, |_| {}),
        Err(ChannelsError::NotHardware {
            channel: 0,
            executor
        })
    );
    let excluded = |policy| Err(ChannelsError::CoreExcluded { policy });
    let changes: [(fn(&mut ChannelsOptions), _); 4] = [
        (|o| o.choice = Choice::Core, "choice"),
        (
            |o| o.page_fault = PageFaultPolicy::FinishOnCore,
            "page-fault",
        ),
        (|o| o.full_queue = FullQueuePolicy::Core, "full-queue"),
        (|o| o.lost_queue = LostQueuePolicy::Core, "lost-queue"),
    ];
    for (change, policy) in changes {
        assert_eq!(required(Require::Device, change), excluded(policy));
    }
    let device = ChannelsOptions {
        require: Require::Device,
        ..options()
    };
    let none: [Member<VirtualMover>; 0] = [];
    assert_eq!(
        Channels::new(none, device).err(),
        Some(ChannelsError::NoChannel)
    );
    let core = Member {
        mover: CpuMover::new(4),
        numa_node: None,
    };
    let refused = Channels::new([core], device).err();
    assert!(
        matches!(refused, Some(ChannelsError::NotHardware { .. })),
        "{refused:?}"
    );
    // What the device does not have fails by its status, and is not done by the core.
    let source = noise(4096);
    let crc = Operation::try_from(Descriptor::crc64(address(&source), 4096, 0)).expect("a CRC");
    let mut channels = Channels::new(members(1, 4), device).expect("a device");
    let outcome = run(&mut channels, &[crc])[0];
    assert_eq!(outcome.completion.status(), Status::INVALID_FLAGS);
    assert_eq!(
        (outcome.executor(), outcome.core_bytes),
        (Executor::Virtual, 0)
    );
}

#[test]
fn a_core_waits_for_pages_as_any_device_that_blocks() {
    let member = Member {
        mover: CpuMover::new(4),
        numa_node: None,
    };
    let options = ChannelsOptions {
        page_fault: PageFaultPolicy::BlockOnFault,
        ..ChannelsOptions::default()
    };
    let mut channel = Channel::new(Channels::new([member], options).expect("a core may"));
    let copy = channel.copy(vec![7; 4096], vec![1; 4096]);
    assert!(copy.is_ok());
    let done = channel.wait(WaitPolicy::Pause, None).expect("it ends");
    assert_eq!(done.result, Ok(Output::Done));
    assert_eq!(done.buffers.destination, Some(vec![7; 4096]));
}

#[test]
fn channels_of_one_queue_have_a_record_to_wait_for() {
    let config = device(1, vec![queue(0, Dedicated, 8)]);
    let started = VirtualDevice::start(config, Options::default()).expect("a device");
    let channels = |movers: usize| {
        let mover = || started.open(0, 4).expect("a queue");
        let members = (0..movers).map(|_| Member {
            mover: mover(),
            numa_node: None,
        });
        let mut channels = Channels::new(members, ChannelsOptions::default()).expect("channels");
        // SAFETY: a NOOP has no operands.
        unsafe { channels.enqueue(&Operation::noop()) }.expect("a slot");
        channels.submit();
        channels.oldest_record().is_some()
    };
    assert!(channels(1));
    assert!(!channels(2));
}
