//! Pages that are not there: who asks for them, and what becomes of a descriptor without a record.

use std::sync::{Arc, Mutex};

use crate::common::{EventLog, Records, address, config, insist, portal, queue};
use dray_device::{Access, Function, Hardware, Memory, PciControls, WorkQueueMode};
use dray_realtime::{
    AllAccessible, Engines, Event, Options, ProcessMemory, RealtimeDevice, SharedMemory, Stop, View,
};
use dray_spec::registers::{Command, CommandRegister, ErrorHead};
use dray_spec::{CompletionRecord, Descriptor, Flags, GenCap, Status};
use zerocopy::{FromBytes, IntoBytes};

/// Memory of the process, of which some has to be asked for, and [`NOWHERE`] cannot be had.
#[derive(Clone)]
struct Paged {
    inner: ProcessMemory<AllAccessible>,
    view: View,
    absent: (u64, u64),
}

/// An address that no process has.
const NOWHERE: u64 = 1 << 63;

impl Memory for Paged {
    fn accessible(&self, addr: u64, len: u64, _: Access) -> u64 {
        let (first, end) = self.absent;
        let absent = addr < end && addr + len > first;
        match addr >= NOWHERE || absent && !self.view.blocks {
            true => 0,
            false => len,
        }
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.inner.read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        self.inner.write(addr, from);
    }
}

impl SharedMemory for Paged {
    fn enter(&mut self, view: View) {
        self.view = view;
    }

    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool {
        self.inner.publish(address, record)
    }
}

struct Machine {
    device: RealtimeDevice,
    errors: Arc<Mutex<Vec<(Status, u64)>>>,
}

/// A device whose system brings pages in, or does not.
fn machine(page_requests: bool, absent: &[u8], options: Options) -> Machine {
    let mut config = config(1, vec![queue(0, WorkQueueMode::Dedicated, 16)]);
    let gen_cap = GenCap::from_bits(config.capabilities.gen_cap).with_drain_readback(true);
    config.capabilities.gen_cap = gen_cap.into_bits();
    let pci = PciControls {
        page_requests,
        ..PciControls::default()
    };
    let hardware = Hardware {
        without_driver: true,
        ..Hardware::new(config.capabilities.clone())
    };
    let function = Function::fixed(hardware, pci, &config, true).expect("registers hold it");
    begin(function, absent, options)
}

/// The device of `function`, enabled.
fn begin(function: Function, absent: &[u8], options: Options) -> Machine {
    let first = address(absent);
    let memory = Paged {
        // SAFETY: tests keep what descriptors name until the device has ended.
        inner: unsafe { ProcessMemory::new(AllAccessible) },
        view: View::default(),
        absent: (first, first + absent.len() as u64),
    };
    let errors = Arc::new(Mutex::new(Vec::new()));
    let reported = errors.clone();
    let listener = move |event| {
        if let Event::SoftwareError {
            status, address, ..
        } = event
        {
            let mut reported = reported.lock().expect("no thread panics with it");
            reported.push((status, address));
        }
    };
    let device = RealtimeDevice::start_function(function, memory, options, listener);
    let device = device.expect("a device");
    for (command, operand) in [(Command::EnableDevice, 0), (Command::EnableWq, 0)] {
        assert_eq!(device.command(command, operand).expect("it runs"), Ok(0));
    }
    Machine { device, errors }
}

impl Machine {
    /// What was said that no record holds, once all that has been submitted has ended.
    fn errors(&self) -> Vec<(Status, u64)> {
        let queue = CommandRegister::queue(0);
        let drained = self.device.command(Command::DrainWq, queue);
        assert_eq!(drained.expect("it runs"), Ok(0));
        self.errors
            .lock()
            .expect("no thread panics with it")
            .clone()
    }
}

fn options() -> [Options; 2] {
    [Engines::Threads, Engines::Dispatcher].map(|engines| Options {
        engines,
        ..Options::default()
    })
}

fn copy(from: &[u8; 64], to: &mut [u8; 64]) -> Descriptor {
    let to = to.as_mut_ptr().expose_provenance() as u64;
    Descriptor::memmove(address(from), to, 64)
}

#[test]
fn a_list_and_a_readback_ask_for_their_pages_and_operands_do_so_by_flag_alone() {
    for (requests, options) in [true, false].into_iter().zip(options()) {
        let records = Records::new(3);
        let list = [Descriptor::noop(); 2];
        let absent = list.as_bytes();
        let machine = machine(requests, absent, options);
        let portal = portal(&machine.device, 0, false);
        let from = address(absent);
        let mut into = [0; 64];
        let to = into.as_mut_ptr().expose_provenance() as u64;
        let operations = [
            Descriptor::batch(from, 2),
            Descriptor::drain().with_readback1(from),
            Descriptor::memmove(from, to, 64),
        ];
        for (n, operation) in operations.iter().enumerate() {
            insist(&portal, &operation.with_completion(records.address(n)));
        }
        let ends = [0, 1, 2].map(|n| records.wait(n).status());
        let expected = match requests {
            true => [Status::SUCCESS, Status::SUCCESS, Status::PAGE_FAULT],
            false => [
                Status::BATCH_PAGE_FAULT,
                Status::READBACK_PAGE_FAULT,
                Status::PAGE_FAULT,
            ],
        };
        assert_eq!(ends, expected, "page requests: {requests}");
    }
}

#[test]
fn what_has_no_record_is_discarded_before_it_begins() {
    let unrecorded = Status::COMPLETION_ADDRESS_FAULT.with_write_fault();
    for options in options() {
        let machine = machine(true, &[], options);
        let portal = portal(&machine.device, 0, false);
        let (from, mut to) = ([7; 64], [0; 64]);
        let lost = copy(&from, &mut to).with_completion(NOWHERE);
        insist(&portal, &lost.with_interrupt(1));
        assert_eq!(machine.errors(), [(unrecorded, NOWHERE)]);
        assert_eq!(to, [0; 64]);

        // The same without a record that is asked for: its address counts all the same.
        let quiet = copy(&from, &mut to).with_completion(NOWHERE + 64);
        let quiet = Descriptor {
            flags_opcode: quiet.flags_opcode & !Flags::REQUEST_COMPLETION_RECORD.bits(),
            ..quiet
        };
        insist(&portal, &quiet);
        assert_eq!(machine.errors()[1..], [(unrecorded, NOWHERE + 64)]);
        assert_eq!(to, [0; 64]);
    }
}

#[test]
fn a_member_without_a_record_fails_its_batch_and_stops_it_at_a_fence() {
    let unrecorded = Status::COMPLETION_ADDRESS_FAULT.with_write_fault();
    for options in options() {
        let machine = machine(true, &[], options);
        let portal = portal(&machine.device, 0, false);
        let records = Records::new(2);
        let (from, mut first, mut second) = ([7; 64], [0; 64], [0; 64]);
        let list = [
            copy(&from, &mut first).with_completion(NOWHERE),
            copy(&from, &mut second)
                .with_completion(records.address(1))
                .with_flags(Flags::FENCE),
        ];
        let at = list.as_ptr().expose_provenance() as u64;
        let batch = Descriptor::batch(at, 2).with_completion(records.address(0));
        insist(&portal, &batch);
        let record = records.wait(0);
        assert_eq!(record.status(), Status::BATCH_FAIL);
        assert_eq!(record.descriptors_completed(), 1);
        assert_eq!(machine.errors(), [(unrecorded, NOWHERE)]);
        assert_eq!(
            (records.status(1), first, second),
            (Status::NONE, [0; 64], [0; 64])
        );

        // And a batch without one runs none of its members.
        insist(
            &portal,
            &Descriptor::batch(at, 2).with_completion(NOWHERE + 64),
        );
        assert_eq!(machine.errors()[1..], [(unrecorded, NOWHERE + 64)]);
        assert_eq!((first, second), ([0; 64], [0; 64]));
    }
}

#[test]
fn the_event_log_takes_the_record_that_has_no_page_and_the_descriptor_is_carried_out() {
    for options in options() {
        let log = EventLog::new();
        let function = log.function();
        let machine = begin(function, &[], options);
        let portal = portal(&machine.device, 0, false);
        let (from, mut to) = ([7; 64], [0; 64]);
        insist(&portal, &copy(&from, &mut to).with_completion(NOWHERE));
        assert_eq!(machine.errors(), []);
        assert_eq!(to, from);
        machine.device.stop(Stop::Drain).expect("no failure");
        let entry = log.entry(0);
        let head = ErrorHead::from_bits(entry[0]);
        assert_eq!(head.error(), Status::COMPLETION_ADDRESS_FAULT.0);
        assert_eq!(entry[2], NOWHERE);
        let record = CompletionRecord::read_from_bytes(entry[4..].as_bytes());
        assert_eq!(record.expect("32 bytes").status(), Status::SUCCESS);
    }
}
