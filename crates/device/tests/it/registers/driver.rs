//! Software that writes the registers, and the engines behind them.

use dray_device::{
    Bar, DescriptorResult, DeviceConfig, Effect, Function, Hardware, ListRead, PciControls,
    Submission, Work, WorkId, WorkQueueMode,
};
use dray_spec::registers::{CMD, CMDSTATUS, Command, CommandRegister, PortalAddress};
use dray_spec::{Descriptor, Status};
use zerocopy::IntoBytes;

use crate::common::profile::{capabilities, one_group, queue};

pub(crate) struct Driver {
    pub(crate) function: Function,
    pub(crate) effects: Vec<Effect>,
}

/// Two queues on two engines: 0 is dedicated, 1 is shared.
pub(crate) fn config() -> DeviceConfig {
    one_group(
        2,
        vec![
            queue(0, WorkQueueMode::Dedicated, 8),
            queue(1, WorkQueueMode::Shared, 8),
        ],
    )
}

/// Interrupts as they come, whatever the mask of the MSI-X table.
pub(crate) fn hardware() -> Hardware {
    Hardware {
        masks_vectors: false,
        ..Hardware::new(capabilities())
    }
}

impl Driver {
    pub(crate) fn new(hardware: Hardware) -> Driver {
        Driver {
            function: Function::new(hardware, PciControls::default()),
            effects: Vec::new(),
        }
    }

    /// Enabled, with both queues.
    pub(crate) fn ready() -> Driver {
        let mut driver = Driver::new(hardware());
        driver.configure(&config());
        assert_eq!(driver.command(Command::EnableDevice, 0), 0);
        for wq in [0, 1] {
            assert_eq!(driver.command(Command::EnableWq, wq), 0);
        }
        driver.effects.clear();
        driver
    }

    pub(crate) fn configure(&mut self, config: &DeviceConfig) {
        let writes = config
            .register_writes(self.function.hardware())
            .expect("registers");
        for write in writes {
            let bytes = &write.value.to_le_bytes()[..usize::from(write.size)];
            self.function
                .write(Bar::Registers, write.offset, bytes, &mut self.effects);
        }
    }

    pub(crate) fn read(&self, offset: u64) -> u32 {
        self.function.read32(offset)
    }

    pub(crate) fn write(&mut self, offset: u64, value: u32) {
        self.function.write32(offset, value, &mut self.effects);
    }

    /// Issues a command; CMDSTATUS right after it.
    pub(crate) fn command(&mut self, command: Command, operand: u32) -> u32 {
        self.write(CMD, CommandRegister::of(command, operand).into_bits());
        self.read(CMDSTATUS)
    }

    /// Submits as the queue wants it; the number is that of the record.
    pub(crate) fn submit(&mut self, wq: u16, descriptor: &Descriptor) -> Submission {
        let portal = PortalAddress {
            wq,
            limited: true,
            message_storage: false,
        };
        let bytes: &[u8; 64] = descriptor.as_bytes().try_into().expect("64 bytes");
        match wq {
            0 => self
                .function
                .post(portal.offset(), bytes, &mut self.effects),
            _ => self.function.enqueue(Bar::Portals, portal.offset(), bytes),
        }
    }

    pub(crate) fn take(&mut self, engine: u16) -> Work {
        let work = self.function.take(engine, &mut self.effects);
        work.expect("work for the engine")
    }

    /// The list of a batch has been read.
    pub(crate) fn list_read(&mut self, id: WorkId, list: &[Descriptor], read: ListRead) {
        self.function.list_read(id, list, read, &mut self.effects);
    }

    pub(crate) fn done(&mut self, work: &Work) {
        let outcome = DescriptorResult::status(Status::SUCCESS);
        self.function.done(work.id, &outcome, &mut self.effects);
    }

    /// Numbers of the records that have been written since the last call.
    pub(crate) fn records(&mut self) -> Vec<u64> {
        let record = |effect: Effect| match effect {
            Effect::Record { address, .. } => Some(address / 32),
            _ => None,
        };
        self.effects.drain(..).filter_map(record).collect()
    }

    /// Numbers of those that an abort has ended since the last call, in order of their numbers.
    pub(crate) fn abandoned(&mut self) -> Vec<u64> {
        let abandoned = |effect: Effect| match effect {
            Effect::Abandoned { completion, .. } => completion.map(|address| address / 32),
            _ => None,
        };
        let mut numbers: Vec<u64> = self.effects.drain(..).filter_map(abandoned).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Vectors that have interrupted since the last call.
    pub(crate) fn vectors(&mut self) -> Vec<u16> {
        let vector = |effect: Effect| match effect {
            Effect::Interrupt { handle } => Some(handle),
            _ => None,
        };
        self.effects.drain(..).filter_map(vector).collect()
    }
}
