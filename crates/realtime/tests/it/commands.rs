//! Commands while clients submit and engines work: each descriptor that was accepted has one end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::common::{Records, config, hold, insist, portal, queue, start, ways};
use dray_device::{Bar, Function, Hardware, PciControls, RegisterWrite, Submission, WorkQueueMode};
use dray_realtime::{Event, MappedPortal, RealtimeDevice, Stop};
use dray_spec::registers::{
    self, Command, CommandError, CommandRegister, DeviceState, ErrorHead, GenCfg, GenCtrl,
};
use dray_spec::{Descriptor, Status};

use WorkQueueMode::{Dedicated, Shared};

/// Completion addresses of what aborts have ended.
fn abandoned(witness: &crate::common::Witness) -> Vec<u64> {
    let events = witness.events.lock().expect("no panic while it is held");
    let address = |event: &Event| match event {
        Event::Abandoned { completion, .. } => *completion,
        _ => None,
    };
    events.iter().filter_map(address).collect()
}

/// Each of `accepted` has a record or was aborted, and never both.
fn assert_one_end(accepted: &[usize], records: &Records, witness: &crate::common::Witness) {
    let mut ends = witness.records.lock().expect("no panic").clone();
    ends.extend(abandoned(witness));
    ends.sort_unstable();
    let mut expected: Vec<u64> = accepted.iter().map(|n| records.address(*n)).collect();
    expected.sort_unstable();
    assert_eq!(ends, expected);
}

fn command(device: &RealtimeDevice, command: Command, operand: u32) {
    let result = device
        .command(command, operand)
        .expect("a device that runs");
    assert_eq!(result, Ok(0), "{command:?}");
}

#[test]
fn an_abort_ends_what_is_in_flight_once_and_waits_for_the_engines() {
    let queue_0 = CommandRegister::queue(0);
    for (engines, options) in ways() {
        for (abort, operand) in [
            (Command::AbortWq, queue_0),
            (Command::AbortPasid, 0),
            (Command::AbortAll, 0),
            (Command::ResetWq, queue_0),
            (Command::ResetDevice, 0),
        ] {
            let queues = vec![queue(0, Dedicated, 32)];
            let (device, witness) = start(config(engines, queues), options);
            let records = Records::new(20);
            let mut sink = [0; 64];
            let portal = portal(&device, 0, true);
            hold(&portal, &witness, &mut sink, 1);
            for n in 0..20 {
                insist(&portal, &held_copy(n, &records, &mut sink));
            }
            thread::scope(|scope| {
                let waits = scope.spawn(|| command(&device, abort, operand));
                // The engine that is held up may be the dispatcher, which then cannot report.
                witness.open_gate();
                waits.join().expect("the command ends");
            });
            assert_eq!(device.occupancy(0), Some(0));
            let enabled = matches!(
                abort,
                Command::AbortWq | Command::AbortPasid | Command::AbortAll
            );
            let answer = portal.submit(&Descriptor::noop());
            assert_eq!(answer == Submission::Accepted, enabled, "{abort:?}");
            device.stop(Stop::Drain).expect("no failure");
            assert_one_end(&(0..20).collect::<Vec<_>>(), &records, &witness);
        }
    }
}

/// A copy that the gate holds up.
fn held_copy(n: usize, records: &Records, sink: &mut [u8]) -> Descriptor {
    let dst = sink.as_mut_ptr().expose_provenance() as u64;
    let copy = Descriptor::memmove(crate::common::address(&crate::common::HELD), dst, 64);
    copy.with_completion(records.address(n))
}

#[test]
fn a_queue_is_disabled_and_enabled_while_clients_submit() {
    for (engines, options) in ways() {
        for mode in [Dedicated, Shared] {
            let queues = vec![queue(0, mode, 16), queue(1, Shared, 16)];
            let (device, witness) = start(config(engines, queues), options);
            storm(
                &device,
                &witness,
                &[
                    (Command::DisableWq, CommandRegister::queue(0)),
                    (Command::EnableWq, 0),
                ],
            );
            assert_eq!(abandoned(&witness), []);
        }
    }
}

#[test]
fn commands_of_all_kinds_in_turn_while_clients_submit() {
    for (engines, options) in ways() {
        let queues = vec![queue(0, Dedicated, 16), queue(1, Shared, 16)];
        let (device, witness) = start(config(engines, queues), options);
        storm(
            &device,
            &witness,
            &[
                (Command::AbortWq, CommandRegister::queue(0)),
                (Command::DrainAll, 0),
                (Command::AbortPasid, 0),
                (Command::DisableWq, CommandRegister::queue(1)),
                (Command::DrainPasid, 0),
                (Command::EnableWq, 1),
                (Command::AbortAll, 0),
                (Command::DrainWq, CommandRegister::queue(0)),
                (Command::DisableDevice, 0),
                (Command::EnableDevice, 0),
                (Command::EnableWq, 0),
                (Command::EnableWq, 1),
            ],
        );
    }
}

/// Two clients submit to both queues as long as another thread gives the commands, again and again.
/// Each descriptor that was accepted has one end.
fn storm(device: &RealtimeDevice, witness: &crate::common::Witness, commands: &[(Command, u32)]) {
    const EACH: usize = 20_000;
    let records = Records::new(2 * EACH);
    let stop = AtomicBool::new(false);
    let taken = AtomicUsize::new(0);
    let client = |wq: u16, portal: MappedPortal| {
        let mut accepted = Vec::new();
        for n in usize::from(wq) * EACH..(usize::from(wq) + 1) * EACH {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let noop = Descriptor::noop().with_completion(records.address(n));
            match portal.submit(&noop) {
                Submission::Accepted => {
                    accepted.push(n);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
                _ => thread::yield_now(),
            }
        }
        accepted
    };
    let accepted: Vec<usize> = thread::scope(|scope| {
        let clients = [0, 1].map(|wq| {
            let portal = portal(device, wq, true);
            let client = &client;
            scope.spawn(move || client(wq, portal))
        });
        for _ in 0..8 {
            for (issued, operand) in commands {
                command(device, *issued, *operand);
            }
            // Both queues are enabled now: some come through.
            let before = taken.load(Ordering::Relaxed);
            while taken.load(Ordering::Relaxed) == before
                && !clients.iter().all(|client| client.is_finished())
            {
                thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        let ended = clients.into_iter().map(|c| c.join().expect("no panic"));
        ended.flatten().collect()
    });
    command(device, Command::DrainAll, 0);
    assert!(!accepted.is_empty());
    assert_one_end(&accepted, &records, witness);
}

#[test]
fn a_driver_finds_a_disabled_device_enables_it_and_resets_it() {
    for (engines, options) in ways() {
        let config = config(engines, vec![queue(0, Dedicated, 8)]);
        let mut hardware = Hardware::new(config.capabilities.clone());
        hardware.gen_cap.set_configurable(true);
        let writes = config.register_writes(&hardware).expect("registers");
        let function = Function::new(hardware, PciControls::default());
        let (device, witness) = crate::common::start_function(function, options);
        let portal = portal(&device, 0, true);
        let records = Records::new(3);
        let noop = |n| Descriptor::noop().with_completion(records.address(n));
        let mut sink = [0; 64];
        for round in 0..2 {
            assert_eq!(portal.enqueue(&noop(0)), Submission::Retry, "not enabled");
            assert_eq!(portal.write_posted(&noop(0)), Submission::Ignored);
            let writes = writes.clone();
            let configured = device.control(move |function, effects| {
                function.set_pci(PciControls::default(), effects);
                for write in writes {
                    let bytes = &write.value.to_le_bytes()[..usize::from(write.size)];
                    function.write(Bar::Registers, write.offset, bytes, effects);
                }
                function.state()
            });
            assert_eq!(configured, Ok(DeviceState::Disabled));
            command(&device, Command::EnableDevice, 0);
            let twice = device.command(Command::EnableDevice, 0).expect("it runs");
            assert_eq!(twice, Err(CommandError::DEVICE_NOT_DISABLED));
            command(&device, Command::EnableWq, 0);
            assert_eq!(portal.mode(), Dedicated);
            insist(&portal, &noop(round));
            assert_eq!(records.wait(round).status(), Status::SUCCESS);
            hold(&portal, &witness, &mut sink, 1);
            insist(&portal, &held_copy(2, &records, &mut sink));
            thread::scope(|scope| {
                let waits = scope.spawn(|| device.reset());
                witness.open_gate();
                waits.join().expect("no panic").expect("the device runs");
            });
            let state = device.control(|function, _| function.read32(registers::GENSTS));
            assert_eq!(state, Ok(0), "disabled");
        }
        device.stop(Stop::Abort).expect("no failure");
    }
}

#[test]
fn errors_go_to_the_event_log_in_memory_and_a_full_one_holds_nobody_up_for_ever() {
    const PAGE: u64 = 4096;
    for (engines, options) in ways() {
        let mut config = config(engines, vec![queue(0, Dedicated, 100)]);
        config.capabilities.version = 0x200;
        config.capabilities.gen_cap |= 1 << 13;
        let mut hardware = Hardware::new(config.capabilities.clone());
        hardware.gen_cap.set_configurable(true);
        hardware.masks_vectors = false;
        let entry = u64::from(hardware.gen_cap.event_log_entry_bytes());
        let mut writes = config.register_writes(&hardware).expect("registers");
        // Room for a log of 64 entries from a page on, of which one stays free (spec 5.9).
        let log = vec![0_u64; 3 * PAGE as usize];
        let base = (log.as_ptr().expose_provenance() as u64).next_multiple_of(PAGE);
        let enabled = GenCfg::from(writes[0].value as u32).with_event_log_enable(true);
        writes[0].value = enabled.into_bits().into();
        let control = GenCtrl::new().with_event_log_interrupt(true);
        let write = |offset, value| RegisterWrite {
            offset,
            size: 8,
            value,
        };
        writes.extend([
            write(registers::EVLCFG, base),
            write(registers::EVLCFG + 8, 64),
            write(registers::GENCTRL, control.into_bits().into()),
        ]);
        let function = Function::new(hardware, PciControls::default());
        let (device, witness) = crate::common::start_function(function, options);
        let configured = device.control(move |function, effects| {
            for write in writes {
                let bytes = &write.value.to_le_bytes()[..usize::from(write.size)];
                function.write(Bar::Registers, write.offset, bytes, effects);
            }
        });
        assert_eq!(configured, Ok(()));
        command(&device, Command::EnableDevice, 0);
        command(&device, Command::EnableWq, 0);
        let portal = portal(&device, 0, true);
        let wrong = Descriptor {
            flags_opcode: 0x3f << 24,
            ..Descriptor::noop()
        };
        for _ in 0..70 {
            insist(&portal, &wrong);
        }
        device.stop(Stop::Drain).expect("no failure");
        let head = |n: u64| {
            let at = (base + n * entry) as *const u64;
            // SAFETY: the log is there, and the device that wrote to it has ended.
            ErrorHead::from_bits(unsafe { at.read() }).error()
        };
        assert!((0..63).all(|n| head(n) == Status::BAD_OPCODE.0));
        assert_eq!(head(63), 0);
        let events = witness.events.lock().expect("not poisoned");
        assert_eq!(*events, [Event::Interrupt { handle: 0 }]);
        drop(log);
    }
}
