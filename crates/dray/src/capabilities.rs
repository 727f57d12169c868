//! What a mover can do, known before anything is submitted.

use dray_device::{DeviceConfig, SOFTWARE_OPERATIONS, WorkQueueConfig};
use dray_spec::{Flags, GenCap, OpCap, Opcode};

use crate::Operation;
use crate::parts::has_parts;

/// Operations and limits of a mover: those of its device and its work queue.
///
/// ```
/// use dray::{CpuMover, Mover, Operation};
/// use dray_spec::{Descriptor, Opcode};
///
/// let mover = CpuMover::new(16);
/// assert!(mover.capabilities().supports(&Operation::crc(0x1000, 64, 0)));
/// let fetch = Operation::try_from(Descriptor::translation_fetch(0x1000, 4096))?;
/// assert!(!mover.capabilities().supports(&fetch));
/// # Ok::<(), dray::NotAnOperation>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Opcodes that it executes (spec 9.2.6).
    pub operations: OpCap,
    /// General capabilities (spec 9.2.2). Sizes: see the fields below, which a queue may limit.
    pub general: GenCap,
    /// Bytes of one operation at most.
    pub max_transfer_bytes: u64,
    /// A single operation that is larger travels in parts, if it can.
    pub divides: bool,
    /// Operations in one batch descriptor at most; 1 if the mover has no batches.
    pub max_batch: u32,
    /// The queue lets descriptors wait for pages that are not present.
    pub block_on_fault: bool,
}

impl Capabilities {
    /// What software does on a core: the operations on memory, without limits of size.
    pub fn software() -> Capabilities {
        Capabilities {
            operations: SOFTWARE_OPERATIONS,
            general: GenCap::new()
                .with_overlapping_copy(true)
                .with_cache_control_memory(true)
                .with_fill_pattern_16(true)
                .with_crc64(true),
            max_transfer_bytes: u32::MAX.into(),
            divides: false,
            max_batch: 1,
            block_on_fault: false,
        }
    }

    /// What a device does through one of its work queues.
    pub fn of_queue(device: &DeviceConfig, queue: &WorkQueueConfig) -> Capabilities {
        let has = &device.capabilities;
        let mut operations = has.op_cap;
        for (word, allowed) in operations.iter_mut().zip(queue.op_config) {
            *word &= allowed;
        }
        Capabilities {
            operations: OpCap(operations),
            general: GenCap::from_bits(has.gen_cap),
            max_transfer_bytes: has.max_transfer_size.min(queue.max_transfer_size),
            divides: false,
            max_batch: has.max_batch_size.min(queue.max_batch_size).max(1),
            block_on_fault: queue.block_on_fault,
        }
    }

    /// Whether the mover executes this operation: its opcode is there, its size within the limit,
    /// and what its flags ask for is implemented. Alignment and overlap of its operands are not
    /// looked at.
    pub fn supports(&self, operation: &Operation) -> bool {
        let d = operation.descriptor();
        let flags = d.flags();
        let opcode = operation.opcode();
        let crc = matches!(opcode, Opcode::CrcGenerate | Opcode::CopyCrc);
        self.operations.supports(opcode as u8)
            && (u64::from(d.size) <= self.max_transfer_bytes
                || self.divides && has_parts(operation, self.max_transfer_bytes))
            && (self.general.crc64() || !crc || !flags.contains(Flags::CRC_64))
            && (self.general.fill_pattern_16()
                || opcode != Opcode::Fill
                || !flags.contains(Flags::FILL_PATTERN_16))
    }

    /// Whether it executes operations with this code.
    pub fn has(&self, opcode: Opcode) -> bool {
        self.operations.supports(opcode as u8)
    }
}
