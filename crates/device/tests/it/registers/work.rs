//! Commands with work in flight.

use dray_device::{Effect, ListRead, Member, Submission, WorkKind};
use dray_spec::registers::{
    self as at, Command, CommandError, CommandRegister, CommandStatus, DeviceState, ResetType,
    WorkQueueState,
};
use dray_spec::{Descriptor, Status};

use super::driver::Driver;
use crate::common::manual_runner::{batch, drain, noop};

fn is_active(driver: &Driver) -> bool {
    CommandStatus::from(driver.read(at::CMDSTATUS)).active()
}

#[test]
fn a_drain_command_ends_with_the_last_work_that_was_there() {
    for (command, operand) in [
        (Command::DrainWq, CommandRegister::queue(0)),
        (Command::DrainAll, 0),
        (Command::DrainPasid, 0),
    ] {
        let mut driver = Driver::ready();
        driver.submit(0, &noop(1));
        driver.submit(0, &noop(2));
        let first = driver.take(0);
        driver.command(command, operand);
        assert!(is_active(&driver), "{command:?}");
        // What comes later is not waited for.
        driver.submit(0, &noop(3));
        let second = driver.take(1);
        let third = driver.take(1);
        driver.done(&third);
        driver.done(&second);
        assert!(is_active(&driver));
        driver.done(&first);
        assert_eq!(driver.read(at::CMDSTATUS), 0);
        assert_eq!(driver.records(), [3, 2, 1]);
    }
}

#[test]
fn a_queue_that_is_disabled_takes_nothing_and_ends_what_it_has() {
    let mut driver = Driver::ready();
    driver.submit(0, &noop(1));
    driver.submit(0, &noop(2));
    let first = driver.take(0);
    driver.command(Command::DisableWq, CommandRegister::queue(0));
    assert_eq!(
        driver.function.queue_state(0),
        Some(WorkQueueState::Draining)
    );
    assert_eq!(driver.submit(0, &noop(3)), Submission::Ignored);
    let second = driver.take(0);
    driver.done(&first);
    assert!(is_active(&driver));
    driver.done(&second);
    assert_eq!(driver.read(at::CMDSTATUS), 0);
    assert_eq!(
        driver.function.queue_state(0),
        Some(WorkQueueState::Disabled)
    );
    assert_eq!(driver.records(), [1, 2]);
    // The other queue never noticed, and this one comes back.
    assert_eq!(driver.submit(1, &noop(4)), Submission::Accepted);
    assert_eq!(driver.command(Command::EnableWq, 0), 0);
    assert_eq!(driver.submit(0, &noop(5)), Submission::Accepted);
}

#[test]
fn what_is_aborted_is_never_told_and_its_end_is_waited_for() {
    for (command, operand) in [
        (Command::AbortWq, CommandRegister::queue(0)),
        (Command::ResetWq, CommandRegister::queue(0)),
        (Command::AbortAll, 0),
        (Command::ResetDevice, 0),
    ] {
        let mut driver = Driver::ready();
        for descriptor in [noop(1), batch(2, 2), drain(3), noop(4)] {
            driver.submit(0, &descriptor);
        }
        let first = driver.take(0);
        let list = driver.take(1);
        assert!(matches!(list.kind, WorkKind::FetchList { .. }));
        driver.command(command, operand);
        assert!(is_active(&driver), "{command:?}");
        assert!(driver.function.device().is_abandoned(first.id));
        assert_eq!(driver.function.take(0, &mut driver.effects), None);
        let members = [noop(11), noop(12)];
        driver.list_read(list.id, &members, ListRead::default());
        assert_eq!(driver.function.next_member(list.id), Member::None);
        driver.done(&first);
        assert_eq!(driver.read(at::CMDSTATUS), 0, "{command:?}");
        // Said twice, it is swallowed as well.
        driver.done(&first);
        driver.done(&list);
        let reported = |effect: &Effect| !matches!(effect, Effect::Abandoned { .. });
        assert!(!driver.effects.iter().any(reported), "{:?}", driver.effects);
        assert_eq!(driver.abandoned(), [1, 2, 3, 4]);
    }
}

#[test]
fn a_batch_in_the_middle_is_given_up_with_the_members_that_have_started() {
    let mut driver = Driver::ready();
    driver.submit(0, &batch(1, 3));
    let list = driver.take(0);
    let members = [noop(11), noop(12), noop(13)];
    driver.list_read(list.id, &members, ListRead::default());
    let Member::Work(member) = driver.function.next_member(list.id) else {
        panic!("a member may start");
    };
    driver.command(Command::AbortPasid, 0);
    assert!(is_active(&driver));
    assert_eq!(driver.function.next_member(list.id), Member::None);
    driver.done(&member);
    assert_eq!(driver.read(at::CMDSTATUS), 0);
    // The others never started.
    assert_eq!(driver.abandoned(), [1, 11]);
}

#[test]
fn the_abort_of_a_pasid_leaves_the_others() {
    let mut driver = Driver::ready();
    let of = |n, pasid| Descriptor {
        pasid_priv: pasid,
        ..noop(n)
    };
    driver.submit(1, &of(1, 5));
    driver.submit(1, &of(2, 6));
    driver.submit(1, &of(3, 5));
    let (five, six) = (driver.take(0), driver.take(0));
    driver.command(Command::AbortPasid, 5);
    assert!(is_active(&driver));
    driver.done(&six);
    assert!(is_active(&driver));
    driver.done(&five);
    assert_eq!(driver.read(at::CMDSTATUS), 0);
    assert_eq!(driver.records(), [2]);
    assert_eq!(driver.function.take(0, &mut driver.effects), None);
}

#[test]
fn a_command_while_one_waits_is_discarded_and_told() {
    let mut driver = Driver::ready();
    driver.submit(0, &noop(1));
    let work = driver.take(0);
    driver.command(Command::DrainAll, 0);
    driver.command(Command::DisableDevice, 0);
    assert!(is_active(&driver));
    assert_eq!(driver.read(at::SWERROR), 0x5201);
    driver.done(&work);
    assert_eq!(driver.read(at::CMDSTATUS), 0);
    assert_eq!(driver.function.state(), DeviceState::Enabled);
}

#[test]
fn a_halt_gives_everything_up_until_the_reset() {
    let mut driver = Driver::ready();
    driver.write(at::GENCTRL, 3);
    driver.submit(0, &noop(1));
    let work = driver.take(0);
    driver.command(Command::DrainAll, 0);
    let mut pci = driver.function.pci().clone();
    pci.bus_master = false;
    driver.function.set_pci(pci.clone(), &mut driver.effects);
    // Why, that, and what became of the command.
    assert_eq!(driver.read(at::SWERROR), 0x5101);
    assert_eq!(driver.read(at::GENSTS), 3);
    assert_eq!(driver.read(at::CMDSTATUS), 3);
    assert_eq!(driver.read(at::INTCAUSE), 0b1_0001);
    assert_eq!(driver.vectors(), [0, 0]);
    assert_eq!(driver.submit(1, &noop(2)), Submission::Retry);
    assert_eq!(driver.command(Command::DrainAll, 0), 5);
    driver.command(Command::ResetDevice, 0);
    assert!(is_active(&driver));
    driver.done(&work);
    assert_eq!(
        (driver.read(at::CMDSTATUS), driver.read(at::GENSTS)),
        (0, 0)
    );
    assert_eq!(driver.abandoned(), [1]);
    // What the reset does not clear (spec 3.15).
    assert_eq!(driver.read(at::SWERROR), 0x5101);
}

#[test]
fn a_device_that_was_reset_is_configured_as_it_was() {
    let mut driver = Driver::ready();
    driver.write(at::GENCTRL, 3);
    driver.command(Command::DisableWq, CommandRegister::queue(1));
    driver.submit(0, &noop(1));
    let work = driver.take(0);
    let registers = |driver: &Driver| {
        let all = (0..0x4000).step_by(4).map(|offset| driver.read(offset));
        all.collect::<Vec<_>>()
    };
    let kept = driver.function.configuration();
    let refused = driver.function.configure_again(&kept, &mut driver.effects);
    assert_eq!(refused, Err(CommandError::DEVICE_NOT_DISABLED));
    let before = registers(&driver);
    driver
        .function
        .halt(ResetType::Command, &mut driver.effects);
    assert_eq!(driver.read(at::GENSTS), 3);
    driver.command(Command::ResetDevice, 0);
    driver.done(&work);
    assert_ne!(registers(&driver), before);
    let again = driver.function.configure_again(&kept, &mut driver.effects);
    assert_eq!(again, Ok(()));
    // The halt is what software still has to see.
    driver.write(at::INTCAUSE, 1 << 4);
    assert_eq!(registers(&driver), before);
    assert_eq!(driver.submit(0, &noop(2)), Submission::Accepted);
    assert_eq!(driver.submit(1, &noop(3)), Submission::Retry);
    let work = driver.take(0);
    driver.records();
    driver.done(&work);
    assert_eq!(driver.records(), [2]);
}

#[test]
fn a_function_level_reset_forgets_everything() {
    let mut driver = Driver::ready();
    driver.submit(0, &noop(1));
    let work = driver.take(0);
    driver.command(Command::DrainAll, 0);
    driver
        .function
        .halt(ResetType::FunctionLevel, &mut driver.effects);
    assert_eq!(driver.read(at::GENSTS), 7);
    assert_eq!(driver.command(Command::ResetDevice, 0), 5);
    driver.function.reset(&mut driver.effects);
    assert_eq!(driver.abandoned(), [1]);
    assert_eq!(
        (driver.read(at::GENSTS), driver.read(at::CMDSTATUS)),
        (0, 0)
    );
    driver.done(&work);
    assert_eq!(driver.effects, []);
    // Software turns bus mastering on again, and goes on.
    assert_eq!(driver.command(Command::EnableDevice, 0), 0x12);
    driver
        .function
        .set_pci(Default::default(), &mut driver.effects);
    assert_eq!(driver.command(Command::EnableDevice, 0), 0);
}

// Spec 5.7, 9.2.9: the interrupt is that of a transition to the halt state.
#[test]
fn a_function_level_reset_interrupts_nobody() {
    let mut driver = Driver::ready();
    driver.write(at::GENCTRL, 3);
    driver.submit(0, &noop(1));
    let work = driver.take(0);
    let drain = CommandRegister::of(Command::DrainAll, 0).with_request_interrupt(true);
    driver.write(at::CMD, drain.into_bits());
    driver.function.begin_reset(&mut driver.effects);
    assert!(!is_active(&driver));
    assert_eq!(driver.submit(1, &noop(2)), Submission::Retry);
    assert_eq!(driver.function.take(1, &mut driver.effects), None);
    driver.done(&work);
    driver.function.reset(&mut driver.effects);
    let interrupt = |effect: &Effect| matches!(effect, Effect::Interrupt { .. });
    assert!(
        !driver.effects.iter().any(interrupt),
        "{:?}",
        driver.effects
    );
    assert_eq!(driver.read(at::INTCAUSE), 0);
    assert_eq!(driver.abandoned(), [1]);
    // A device that halts for want of such a reset does interrupt.
    driver.write(at::GENCTRL, 2);
    driver
        .function
        .halt(ResetType::FunctionLevel, &mut driver.effects);
    assert_eq!((driver.vectors(), driver.read(at::INTCAUSE)), (vec![0], 16));
}

// Spec 5.4: the map is looked at for each descriptor when it is processed.
#[test]
fn traffic_classes_follow_the_map_while_the_device_is_enabled() {
    let mut driver = Driver::ready();
    let carry = |driver: &mut Driver, classes: u8| {
        let mut pci = driver.function.pci().clone();
        pci.config.traffic_classes = classes;
        driver.function.set_pci(pci, &mut driver.effects);
    };
    let refused = |driver: &mut Driver| {
        let work = driver.take(0);
        let status = match work.kind {
            WorkKind::Reject(rejection) => Some(rejection.status),
            _ => None,
        };
        driver.done(&work);
        status
    };
    driver.submit(0, &noop(1));
    driver.submit(0, &noop(2));
    assert_eq!(refused(&mut driver), None);
    // Class 0, of this group, is no longer carried; what waits in the queue meets that.
    carry(&mut driver, 0xfe);
    assert_eq!(refused(&mut driver), Some(Status::TRAFFIC_CLASS));
    assert_eq!(driver.function.state(), DeviceState::Enabled);
    // A queue that is enabled now follows the same map.
    driver.command(Command::DisableWq, CommandRegister::queue(0));
    assert_eq!(driver.command(Command::EnableWq, 0), 0);
    driver.submit(0, &noop(3));
    assert_eq!(refused(&mut driver), Some(Status::TRAFFIC_CLASS));
    carry(&mut driver, 1);
    driver.submit(0, &noop(4));
    assert_eq!(refused(&mut driver), None);
}

#[test]
fn an_occupancy_interrupt_comes_when_the_queue_is_as_empty_as_asked() {
    let mut driver = Driver::ready();
    for n in 1..=3 {
        driver.submit(0, &noop(n));
    }
    let base = u64::from(driver.read(at::OFFSETS) >> 16) * 0x100;
    driver.write(base + 20, 1 << 16 | 1);
    assert_eq!(driver.vectors(), []);
    driver.take(0);
    assert_eq!(driver.vectors(), []);
    driver.take(0);
    assert_eq!(driver.vectors(), [0]);
    assert_eq!(
        (driver.read(at::INTCAUSE), driver.read(base + 24) & 0x1_ffff),
        (4, 0x1_0001)
    );
    // Once, until software has seen it.
    driver.take(0);
    assert_eq!(driver.vectors(), []);
    driver.write(base + 24, 1 << 16);
    assert_eq!(driver.vectors(), [0]);
}

#[test]
fn errors_are_kept_first_come_with_what_is_known_of_them() {
    let mut driver = Driver::ready();
    driver.write(at::GENCTRL, 1);
    // No record to report it in: a fill of nothing.
    driver.submit(0, &Descriptor::fill(0, 0, 0));
    let work = driver.take(0);
    let WorkKind::Reject(rejection) = work.kind else {
        panic!("a fill of nothing is refused");
    };
    driver
        .function
        .done(work.id, &rejection.outcome(), &mut driver.effects);
    assert_eq!(driver.function.read64(at::SWERROR), 0x04_0000_130d);
    assert_eq!((driver.vectors(), driver.read(at::INTCAUSE)), (vec![0], 1));
    for n in 0..9 {
        driver.submit(0, &noop(n));
    }
    assert_eq!(driver.function.read64(at::SWERROR), 0x04_0000_130f);
    driver.write(at::SWERROR, 3);
    assert_eq!(driver.read(at::SWERROR) & 3, 0);
    driver.submit(0, &noop(9));
    assert_eq!(driver.read(at::SWERROR), 0x5309);
    assert!(
        !driver
            .effects
            .iter()
            .any(|e| matches!(e, Effect::SoftwareError { .. }))
    );
}
