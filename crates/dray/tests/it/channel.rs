//! The safe way: buffers go in and come back, whatever happens.

use std::time::Duration;

use dray::virt::{Chaos, Kind, Kinds, Options, VirtualDevice};
use dray::{
    Channel, ChannelError, CpuMover, Executor, Failure, Mover, Output, WaitError, WaitPolicy,
};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_spec::Opcode;

use crate::machine::{device, queue};

fn every_operation<M: Mover>(mover: M, executor: Executor) {
    let mut channel = Channel::new(mover);
    let done = |channel: &mut Channel<M>| {
        let done = channel.wait(WaitPolicy::Yield, None).expect("it ends");
        assert_eq!(done.executor, executor);
        done
    };
    channel.copy(vec![7; 5000], vec![0; 5000]).expect("a slot");
    let copied = done(&mut channel);
    assert_eq!(copied.result, Ok(Output::Done));
    assert_eq!(copied.buffers.destination, Some(vec![7; 5000]));
    let mut other = vec![7; 5000];
    other[4096] = 8;
    channel.compare(vec![7; 5000], other).expect("a slot");
    let difference = Some(4096);
    assert_eq!(
        done(&mut channel).result,
        Ok(Output::Compared { difference })
    );
    channel
        .fill(0x0101_0101_0101_0101, vec![0; 64])
        .expect("a slot");
    assert_eq!(done(&mut channel).buffers.destination, Some(vec![1; 64]));
    channel
        .compare_pattern(vec![1; 64], 0x0101_0101_0101_0101)
        .expect("a slot");
    let difference = None;
    assert_eq!(
        done(&mut channel).result,
        Ok(Output::Compared { difference })
    );
    // CRC32C of "123456789", which everybody knows. The device inverts seed and result.
    let check = b"123456789".to_vec();
    channel.crc32c(check.clone(), 0).expect("a slot");
    let crc = done(&mut channel).result;
    channel
        .copy_crc32c(check.clone(), vec![0; 9], 0)
        .expect("a slot");
    let copied = done(&mut channel);
    assert_eq!(copied.result, crc);
    assert_eq!(copied.buffers.destination, Some(check));
    assert_eq!(crc, Ok(Output::Crc32(0xe306_9283)));
    assert_eq!(channel.in_flight(), 0);
    let nothing = channel.wait(WaitPolicy::Yield, Some(Duration::ZERO));
    assert!(matches!(nothing, Err(WaitError::Nothing)));
}

#[test]
fn on_the_core_and_on_the_virtual_device() {
    every_operation(CpuMover::new(4), Executor::Cpu);
    for mode in [Dedicated, Shared] {
        let device = VirtualDevice::start(device(1, vec![queue(0, mode, 16)]), Options::default());
        let device = device.expect("a device that can be enabled");
        every_operation(device.open(0, 4).expect("a queue"), Executor::Virtual);
    }
}

/// Whatever a device chooses of what the specification leaves open, but for page faults, which are the caller's.
#[test]
fn under_an_adversary() {
    for seed in 0..16 {
        for mode in [Dedicated, Shared] {
            let options = Options {
                chaos: Some(Chaos {
                    kinds: Kinds::LEGAL.without(Kind::Fault),
                    ..Chaos::new(seed)
                }),
                ..Options::default()
            };
            let device = VirtualDevice::start(device(4, vec![queue(0, mode, 16)]), options);
            let device = device.expect("a device that can be enabled");
            every_operation(device.open(0, 4).expect("a queue"), Executor::Virtual);
        }
    }
}

#[test]
fn what_is_not_taken_comes_back_with_its_buffers() {
    let mut channel = Channel::new(CpuMover::new(1));
    let rejected = channel
        .copy(vec![1; 3], vec![2; 4])
        .expect_err("other lengths");
    let lengths = ChannelError::Lengths {
        first: 3,
        second: 4,
    };
    assert_eq!(rejected.error, lengths);
    assert_eq!(rejected.buffers.destination, Some(vec![2; 4]));
    let rejected = channel.fill(0, vec![]).expect_err("no bytes");
    assert_eq!(rejected.error, ChannelError::Length { len: 0 });
    channel.fill(0, vec![1; 8]).expect("a slot");
    let rejected = channel.fill(0, vec![3; 8]).expect_err("no slot");
    assert!(matches!(rejected.error, ChannelError::Full(_)));
    assert_eq!(rejected.buffers.destination, Some(vec![3; 8]));
    let mut config = device(1, vec![queue(0, Dedicated, 16)]);
    config.capabilities.op_cap[0] &= !(1 << Opcode::CopyCrc as u8);
    let device = VirtualDevice::start(config, Options::default()).expect("a device");
    let mut channel = Channel::new(device.open(0, 4).expect("a queue"));
    let rejected = channel
        .copy_crc32c(vec![1; 8], vec![0; 8], 0)
        .expect_err("not supported");
    let unsupported = ChannelError::Unsupported {
        opcode: Opcode::CopyCrc,
        len: 8,
    };
    assert_eq!(rejected.error, unsupported);
    let rejected = channel
        .fill(0, vec![0; (2 << 20) + 1])
        .expect_err("too large");
    assert!(matches!(rejected.error, ChannelError::Unsupported { .. }));
}

#[test]
fn a_channel_that_is_dropped_waits_for_its_buffers() {
    let device = VirtualDevice::start(device(1, vec![queue(0, Dedicated, 64)]), Options::default());
    let device = device.expect("a device that can be enabled");
    for _ in 0..20 {
        let mut channel = Channel::new(device.open(0, 32).expect("a queue"));
        for n in 0..32 {
            channel.fill(n, vec![0; 100_000]).expect("a slot");
        }
        drop(channel.poll());
    }
    assert_eq!(device.device().lost(0), Some(0));
}

#[test]
fn a_disabled_queue_completes_nothing_before_the_deadline() {
    use dray_spec::registers::{Command, CommandRegister};
    let device = VirtualDevice::start(device(1, vec![queue(0, Dedicated, 64)]), Options::default());
    let device = device.expect("a device that can be enabled");
    let disabled = device
        .device()
        .command(Command::DisableWq, CommandRegister::queue(0));
    assert_eq!(disabled, Ok(Ok(0)));
    let mut channel = Channel::new(device.open(0, 4).expect("a queue"));
    channel.fill(1, vec![0; 64]).expect("a slot");
    let after = Duration::from_millis(1);
    let waited = channel.wait(WaitPolicy::Yield, Some(after));
    assert!(
        matches!(waited, Err(WaitError::Deadline { .. })),
        "{waited:?}"
    );
    let enabled = device.device().command(Command::EnableWq, 0);
    assert_eq!(enabled, Ok(Ok(0)));
    let done = channel.wait(WaitPolicy::Yield, None).expect("it ends");
    assert_ne!(done.result, Err(Failure::NotExecuted));
    assert_eq!(
        done.buffers.destination,
        Some([1, 0, 0, 0, 0, 0, 0, 0].repeat(8))
    );
}
