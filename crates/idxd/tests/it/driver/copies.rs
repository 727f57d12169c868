//! Threads that change the driver's devices at once, each on a copy.

use std::sync::{Arc, Mutex};

use dray_device::{Function, PciControls};
use dray_idxd::driver::{Driver, EntryKind, Errno, Event, Options, Part, Personality, Registers};
use dray_spec::registers::{self, CommandStatus};

use super::common::hardware;

/// Registers that copies of the driver have in common. A command that is held stays in progress.
#[derive(Debug, Clone)]
struct Common(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    function: Function,
    /// The command that was issued last is in progress.
    held: bool,
    hold_next: bool,
    /// Commands that were issued.
    commands: Vec<u32>,
}

impl Registers for Common {
    fn read32(&self, offset: u64) -> u32 {
        let state = self.0.lock().unwrap();
        let value = state.function.read32(offset);
        match offset == registers::CMDSTATUS && state.held {
            true => CommandStatus::from_bits(value)
                .with_active(true)
                .into_bits(),
            false => value,
        }
    }

    fn read64(&self, offset: u64) -> u64 {
        self.0.lock().unwrap().function.read64(offset)
    }

    fn write32(&mut self, offset: u64, value: u32) {
        let mut state = self.0.lock().unwrap();
        if offset == registers::CMD {
            state.commands.push(value);
            state.held = state.hold_next;
        }
        state.function.write32(offset, value, &mut Vec::new());
    }

    fn write64(&mut self, offset: u64, value: u64) {
        let mut state = self.0.lock().unwrap();
        state.function.write64(offset, value, &mut Vec::new());
    }

    fn privileged_mode(&self) -> bool {
        self.0.lock().unwrap().function.pci().config.privileged_mode
    }
}

/// A driver with `dsa0` and `dsa2`, each with two dedicated queues that are configured.
fn driver() -> (Driver<Common>, [Common; 2]) {
    let with_registers = |id| {
        let pci = PciControls {
            pasid: true,
            page_requests: true,
            ..PciControls::default()
        };
        let function = Function::new(hardware(0x100), pci);
        let state = State {
            function,
            held: false,
            hold_next: false,
            commands: Vec::new(),
        };
        let registers = Common(Arc::new(Mutex::new(state)));
        (Part::new(id, hardware(0x100)), registers)
    };
    let parts = [0, 2].map(with_registers);
    let common = parts.each_ref().map(|(_, registers)| registers.clone());
    let mut driver = Driver::over(Options::new(Personality::Linux6_8), parts);
    for device in [0, 2] {
        let mut put = |path: String, value: &str| {
            let path = format!("/sys/bus/dsa/devices/{path}");
            driver.write(&path, value.as_bytes()).unwrap();
        };
        put(format!("engine{device}.0/group_id"), "0");
        for wq in 0..2 {
            for (name, value) in [
                ("group_id", "0"),
                ("mode", "dedicated"),
                ("size", "16"),
                ("priority", "10"),
                ("type", "user"),
                ("name", "app"),
                ("driver_name", "user"),
            ] {
                put(format!("wq{device}.{wq}/{name}"), value);
            }
        }
        bind(&mut driver, "idxd", &format!("dsa{device}")).unwrap();
    }
    driver.take_events();
    (driver, common)
}

fn bind(driver: &mut Driver<Common>, to: &str, name: &str) -> Result<(), Errno> {
    driver.write(&format!("/sys/bus/dsa/drivers/{to}/bind"), name.as_bytes())
}

#[test]
fn a_minor_number_that_two_copies_have_given_is_given_once() {
    let (mut driver, _) = driver();
    let (mut one, mut other) = (driver.copy(), driver.copy());
    for name in ["wq0.0", "wq0.1"] {
        bind(&mut one, "user", name).unwrap();
    }
    for name in ["wq2.0", "wq2.1"] {
        bind(&mut other, "user", name).unwrap();
    }
    driver.adopt(0, one);
    driver.adopt(2, other);
    let nodes: Vec<_> = driver
        .nodes()
        .into_iter()
        .map(|entry| (entry.name, entry.kind))
        .collect();
    let named = |name: &str, minor| (name.to_owned(), EntryKind::Node { major: 237, minor });
    let expected = [
        named("wq0.0", 0),
        named("wq0.1", 1),
        named("wq2.0", 2),
        named("wq2.1", 3),
    ];
    assert_eq!(nodes, expected);
    let appears = |device, wq, minor| Event::NodeAppears { device, wq, minor };
    let events = [
        appears(0, 0, 0),
        appears(0, 1, 1),
        appears(2, 0, 2),
        appears(2, 1, 3),
    ];
    assert_eq!(driver.take_events(), events);
    // Clients of two devices are told apart.
    let (mut one, mut other) = (driver.copy(), driver.copy());
    let clients = (one.open(0, 0, 1).unwrap(), other.open(2, 0, 1).unwrap());
    driver.adopt(0, one);
    driver.adopt(2, other);
    driver.release(clients.0).unwrap();
    let count = |wq: &str| driver.read(&format!("/sys/bus/dsa/devices/{wq}/clients"));
    assert_eq!(count("wq0.0"), Ok(b"0\n".to_vec()));
    assert_eq!(count("wq2.0"), Ok(b"1\n".to_vec()));
}

#[test]
fn the_end_of_a_command_is_its_issuers_also_after_the_next_command() {
    let (mut driver, [registers, _]) = driver();
    bind(&mut driver, "user", "wq0.0").unwrap();
    let issued = |registers: &Common| registers.0.lock().unwrap().commands.len();
    let unbind = |driver: &mut Driver<Common>, name: &str| {
        driver.write("/sys/bus/dsa/drivers/user/unbind", name.as_bytes())
    };
    registers.0.lock().unwrap().hold_next = true;
    assert_eq!(unbind(&mut driver, "wq0.0"), Err(Errno::EAGAIN));
    {
        let mut state = registers.0.lock().unwrap();
        (state.held, state.hold_next) = (false, false);
    }
    // Someone else has another queue enabled before the first comes back.
    bind(&mut driver, "user", "wq0.1").unwrap();
    let before = issued(&registers);
    assert_eq!(unbind(&mut driver, "wq0.0"), Ok(()));
    // The drain is over: what is left is the reset of the queue.
    assert_eq!(issued(&registers), before + 1);
}
