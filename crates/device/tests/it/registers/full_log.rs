//! What a full event log holds up, and for how long (spec 3.15, 5.9).

use dray_device::{Effect, PciControls};
use dray_spec::Descriptor;
use dray_spec::registers::{self as at, Command, CommandRegister, CommandStatus, DeviceState};

use super::driver::{Driver, config};
use super::log::{ON, code, end, entries, rejection, write64};
use crate::common::manual_runner::noop;

/// A descriptor that goes to the log: it fails a check, and has no record.
fn fail(driver: &mut Driver, wq: u16, pasid: u32) {
    let descriptor = Descriptor {
        pasid_priv: pasid,
        ..Descriptor::memmove(0x1000, 0x2000, 0)
    };
    driver.submit(wq, &descriptor);
    let work = driver.take(0);
    end(driver, work.id, &rejection(&work).outcome());
}

/// As many as the log has room for, and `more`.
fn full(more: usize) -> Driver {
    let mut driver = ON.driver();
    for _ in 0..63 {
        fail(&mut driver, 0, 0);
    }
    assert!(!driver.function.is_blocked());
    let mut works = Vec::new();
    for _ in 0..more {
        driver.submit(0, &Descriptor::memmove(0x1000, 0x2000, 0));
        works.push(driver.take(0));
    }
    for work in works {
        end(&mut driver, work.id, &rejection(&work).outcome());
    }
    assert!(more == 0 || driver.function.is_blocked());
    driver.effects.clear();
    driver
}

fn is_active(driver: &Driver) -> bool {
    CommandStatus::from(driver.read(at::CMDSTATUS)).active()
}

fn head(driver: &mut Driver, head: u64) {
    write64(driver, at::EVLSTATUS, head);
}

#[test]
fn commands_that_wait_for_work_wait_for_what_the_log_has_no_room_for() {
    let queue = CommandRegister::queue(0);
    for (command, operand, state) in [
        (Command::DrainAll, 0, DeviceState::Enabled),
        (Command::DrainWq, queue, DeviceState::Enabled),
        (Command::DrainPasid, 0, DeviceState::Enabled),
        (Command::DisableWq, queue, DeviceState::Enabled),
        (Command::DisableDevice, 0, DeviceState::Draining),
    ] {
        let mut driver = full(2);
        let register = CommandRegister::of(command, operand).with_request_interrupt(true);
        driver.write(at::CMD, register.into_bits());
        assert!(is_active(&driver), "{command:?}");
        assert_eq!(driver.function.state(), state);
        // Room for one of two.
        head(&mut driver, 1);
        assert!(is_active(&driver) && driver.function.is_blocked());
        assert_eq!(entries(&mut driver).len(), 1);
        head(&mut driver, 2);
        assert_eq!(driver.read(at::CMDSTATUS), 0, "{command:?}");
        // The command's interrupt is behind the entry.
        assert_eq!(driver.effects.pop(), Some(Effect::Interrupt { handle: 0 }));
        assert_eq!(entries(&mut driver).len(), 1);
        head(&mut driver, 5);
        assert_eq!(driver.effects, []);
    }
    // What waits is of queue 0 and of PASID 0.
    for (command, operand) in [
        (Command::DrainWq, CommandRegister::queue(1)),
        (Command::DrainPasid, 7),
    ] {
        let mut driver = full(1);
        assert_eq!(driver.command(command, operand), 0, "{command:?}");
    }
}

#[test]
fn what_the_log_has_no_room_for_is_given_up_with_its_descriptors() {
    let queue = CommandRegister::queue(0);
    for (command, operand) in [
        (Command::AbortAll, 0),
        (Command::AbortWq, queue),
        (Command::AbortPasid, 0),
        (Command::ResetWq, queue),
        (Command::ResetDevice, 0),
    ] {
        let mut driver = full(2);
        assert_eq!(driver.command(command, operand), 0, "{command:?}");
        assert!(!driver.function.is_blocked());
        head(&mut driver, 5);
        assert_eq!(driver.effects, [], "{command:?}");
    }
    for (command, operand) in [
        (Command::AbortWq, CommandRegister::queue(1)),
        (Command::AbortPasid, 7),
    ] {
        let mut driver = full(1);
        assert_eq!(driver.command(command, operand), 0, "{command:?}");
        assert!(driver.function.is_blocked());
        head(&mut driver, 5);
        assert_eq!(entries(&mut driver).len(), 1);
    }
}

#[test]
fn a_device_that_a_full_log_has_blocked_works_after_a_reset_and_after_a_disable() {
    let works = |mut driver: Driver| {
        driver.submit(0, &noop(1));
        let work = driver.take(0);
        driver.done(&work);
        assert_eq!(driver.records(), [1]);
    };
    let mut driver = full(1);
    driver.command(Command::DisableDevice, 0);
    head(&mut driver, 1);
    assert_eq!(driver.function.state(), DeviceState::Disabled);
    assert_eq!(driver.command(Command::EnableDevice, 0), 0);
    assert_eq!(driver.command(Command::EnableWq, 0), 0);
    driver.effects.clear();
    works(driver);

    let again = |driver: &mut Driver| {
        driver
            .function
            .set_pci(PciControls::default(), &mut driver.effects);
        driver.configure(&config());
        assert_eq!(driver.command(Command::EnableDevice, 0), 0);
        assert_eq!(driver.command(Command::EnableWq, 0), 0);
        driver.effects.clear();
    };
    let mut driver = full(1);
    assert_eq!(driver.command(Command::ResetDevice, 0), 0);
    again(&mut driver);
    works(driver);

    let mut driver = full(1);
    driver.command(Command::DrainAll, 0);
    driver.function.reset(&mut driver.effects);
    again(&mut driver);
    works(driver);

    // A halt first: nothing is written after it.
    let mut driver = full(1);
    let mut pci = driver.function.pci().clone();
    pci.bus_master = false;
    driver.function.set_pci(pci, &mut driver.effects);
    driver.effects.clear();
    head(&mut driver, 5);
    assert_eq!(driver.effects, []);
    assert_eq!(driver.command(Command::ResetDevice, 0), 0);
    again(&mut driver);
    works(driver);
}

#[test]
fn commands_that_are_refused_without_end_do_not_fill_the_memory() {
    let mut driver = full(1);
    driver.command(Command::DrainAll, 0);
    for _ in 0..1000 {
        driver.command(Command::DrainAll, 0);
    }
    head(&mut driver, 62);
    let codes: Vec<u8> = entries(&mut driver).iter().map(code).collect();
    assert_eq!(codes, [0x13, 0x52]);
    assert_eq!(driver.read(at::CMDSTATUS), 0);
}
