//! The virtual device in real time.

use dray::Executor;
use dray::virt::{Options, VirtualDevice};
use dray_device::WorkQueueMode::{self, Dedicated, Shared};
use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig};
use dray_spec::registers::{Command, CommandRegister};
use dray_spec::{GenCap, OpCap, Opcode};

use super::guarded::Guarded;
use crate::movers::{Column, Disrupter, Disruption, ProcessDoor, disruption_row, tabulate};

/// A device of either version: one with a dedicated queue, one with a shared queue, each of 8 entries for 16
/// slots.
pub(super) fn columns() -> Vec<Column> {
    [
        ("virtual v1 dwq", 1, Dedicated),
        ("virtual v2 swq", 2, Shared),
    ]
    .map(|(name, version, mode)| column(name, version, mode))
    .into()
}

/// One queue, and few bytes in a transfer.
pub(super) fn config(version: u32, mode: WorkQueueMode) -> DeviceConfig {
    let queue = WorkQueueConfig {
        max_batch_size: 64,
        max_transfer_size: 1 << 20,
        block_on_fault: true,
        ..WorkQueueConfig::new(0, mode, 8)
    };
    let mut config = DeviceConfig::sapphire_rapids(2, vec![queue]);
    config.capabilities = Capabilities {
        max_batch_size: 64,
        ..config.capabilities
    };
    if version == 2 {
        add_version_2(&mut config.capabilities);
    }
    config
}

/// The operations of version 2 that need no second address space.
fn add_version_2(capabilities: &mut Capabilities) {
    capabilities.version = 0x200;
    let general = GenCap::from_bits(capabilities.gen_cap);
    let general = general.with_fill_pattern_16(true).with_crc64(true);
    capabilities.gen_cap = general.into_bits();
    let operations = OpCap(capabilities.op_cap)
        .with(Opcode::TranslationFetch)
        .with(Opcode::DixGenerate);
    capabilities.op_cap = operations.0;
}

fn column(name: &str, version: u32, mode: WorkQueueMode) -> Column {
    let open = || {
        let guarded = Guarded::default();
        let config = config(version, mode);
        let device = VirtualDevice::start_in(config, Options::default(), guarded.clone(), |_| {})
            .expect("a device that can be enabled");
        let mover = device.open(0, 16).expect("the only queue");
        let (guard, holding) = (guarded.clone(), guarded);
        let door = ProcessDoor::new(name, Executor::Virtual, mover)
            .with_faults(move |page| guard.set(&page))
            .with_held(move || holding.hold());
        (device, door)
    };
    let (_device, mut door) = open();
    let mut column = tabulate(&mut door);
    for disruption in Disruption::ALL {
        let (device, door) = open();
        let mut door = door.with_disrupter(disrupter(device));
        column.complete_with(&disruption_row(&mut door, disruption));
    }
    column
}

fn disrupter(device: VirtualDevice) -> Disrupter {
    Box::new(move |disruption| {
        let command = match disruption {
            Disruption::Disabled => Command::DisableWq,
            Disruption::QueueReset => Command::ResetWq,
            Disruption::DeviceReset => Command::ResetDevice,
        };
        let operand = match disruption {
            Disruption::DeviceReset => 0,
            _ => CommandRegister::queues(0, 1),
        };
        device.device().command(command, operand) == Ok(Ok(0))
    })
}
