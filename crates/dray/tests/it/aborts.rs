//! Movers on the virtual device whose operations are aborted, or whose queue is disabled.

use std::time::Duration;

use crate::machine::{device, queue};
use dray::virt::{Engines, Idle, Options, VirtualDevice};
use dray::{Completion, Mover, Operation, Progress};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_spec::Status;
use dray_spec::registers::{Command, CommandRegister};

/// Submits 32 copies, gives the commands, and polls until all have completed.
fn interrupted(engines: u16, options: Options, commands: &[(Command, u32)]) {
    for mode in [Dedicated, Shared] {
        let config = device(engines, vec![queue(0, mode, 64)]);
        let device = VirtualDevice::start(config, options).expect("it can be enabled");
        let mut mover = device.open(0, 32).expect("a queue");
        let source = [7_u8; 4096];
        let mut targets = vec![[0_u8; 4096]; 32];
        let from = source.as_ptr().expose_provenance() as u64;
        for target in &mut targets {
            let to = target.as_mut_ptr().expose_provenance() as u64;
            let copy = Operation::memmove(from, to, 4096);
            // SAFETY: source and target live longer than the mover.
            unsafe { mover.enqueue(&copy) }.expect("a slot");
        }
        while mover.submit() != Progress::Done {
            std::thread::yield_now();
        }
        for (command, operand) in commands {
            let result = device.device().command(*command, *operand);
            assert_eq!(result, Ok(Ok(0)), "{command:?}");
        }
        let mut ended = vec![Completion::default(); 32];
        let mut count = 0;
        while count < 32 {
            count += mover.poll(&mut ended[count..]);
        }
        for completion in &ended {
            let status = completion.record.status();
            assert!(matches!(status, Status::SUCCESS | Status::NONE), "{status}");
        }
        let copied = targets.iter().filter(|target| **target == source).count();
        let succeeded = ended
            .iter()
            .filter(|c| c.record.status() == Status::SUCCESS);
        assert!(succeeded.count() <= copied);
        drop(mover);
    }
}

fn ways() -> [(u16, Options); 3] {
    let options = Options {
        idle: Idle::Park {
            after: Duration::from_micros(50),
        },
        ..Options::default()
    };
    let alone = Options {
        engines: Engines::Dispatcher,
        ..options
    };
    [(1, options), (3, options), (3, alone)]
}

#[test]
fn what_is_aborted_completes_without_a_record() {
    let queue_0 = CommandRegister::queue(0);
    for (engines, options) in ways() {
        for (command, operand) in [
            (Command::AbortWq, queue_0),
            (Command::AbortPasid, 0),
            (Command::AbortAll, 0),
            (Command::ResetWq, queue_0),
            (Command::ResetDevice, 0),
        ] {
            interrupted(engines, options, &[(command, operand)]);
        }
    }
}

#[test]
fn what_is_drained_completes() {
    let queue_0 = CommandRegister::queue(0);
    for (engines, options) in ways() {
        let commands = [(Command::DisableWq, queue_0), (Command::EnableWq, 0)];
        interrupted(engines, options, &commands);
        interrupted(engines, options, &[(Command::DisableDevice, 0)]);
    }
}

#[test]
fn a_mover_is_dropped_while_its_queue_is_disabled() {
    for (engines, options) in ways() {
        let config = device(engines, vec![queue(0, Shared, 64)]);
        let device = VirtualDevice::start(config, options).expect("it can be enabled");
        let mut mover = device.open(0, 8).expect("a queue");
        let disabled = device
            .device()
            .command(Command::DisableWq, CommandRegister::queue(0));
        assert_eq!(disabled, Ok(Ok(0)));
        let (source, mut target) = ([7_u8; 64], [0_u8; 64]);
        let from = source.as_ptr().expose_provenance() as u64;
        let to = target.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: source and target live longer than the mover.
        unsafe { mover.enqueue(&Operation::memmove(from, to, 64)) }.expect("a slot");
        assert_eq!(mover.submit(), Progress::Pending);
        drop(mover);
        assert_eq!(target, [0; 64]);
    }
}
