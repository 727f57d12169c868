//! WQCFG: one work queue (spec 9.2.24).

use bitfield_struct::bitfield;

/// Layout of one WQCFG register, in bytes. Double words are those of the kernel's `union wqcfg`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WorkQueueRegister;

impl WorkQueueRegister {
    /// Size in entries, bits 15:0; writable while the device is disabled.
    pub const SIZE: u64 = 0;
    /// Threshold in entries, bits 15:0; always writable.
    pub const THRESHOLD: u64 = 4;
    /// See [`WorkQueuePolicy`].
    pub const POLICY: u64 = 8;
    /// See [`WorkQueueLimits`].
    pub const LIMITS: u64 = 12;
    /// See [`WorkQueueInterrupt`].
    pub const INTERRUPT: u64 = 16;
    /// See [`WorkQueueOccupancy`].
    pub const OCCUPANCY: u64 = 20;
    /// See [`WorkQueueStatus`].
    pub const STATUS: u64 = 24;
    /// Operations, 32 bytes; where the stride has room for them.
    pub const OPERATIONS: u64 = 32;
    /// Stride with room for the operations.
    pub const STRIDE_WITH_OPERATIONS: u64 = 64;
}

/// Bytes 8 to 11: writable while the queue is disabled.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct WorkQueuePolicy {
    /// Dedicated; else shared.
    pub dedicated: bool,
    /// Descriptors may ask to block on faults.
    pub block_on_fault: bool,
    /// No address translation service.
    pub ats_disable: bool,
    /// No page request service.
    pub prs_disable: bool,
    /// 1 to 15.
    #[bits(4)]
    pub priority: u8,
    /// PASID of a dedicated queue.
    #[bits(20)]
    pub pasid: u32,
    /// Descriptors have a PASID.
    pub pasid_enable: bool,
    /// Descriptors of a dedicated queue are privileged.
    pub privileged: bool,
    #[bits(2)]
    __: u8,
}

/// Bytes 12 to 15: writable while the queue is disabled.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct WorkQueueLimits {
    /// Base-2 logarithm of the largest transfer in bytes.
    #[bits(5)]
    pub max_transfer_shift: u8,
    /// Base-2 logarithm of the largest batch in descriptors.
    #[bits(4)]
    pub max_batch_shift: u8,
    /// Base-2 logarithm of the longest scatter-gather list; version 3.
    #[bits(4)]
    pub max_scatter_gather_shift: u8,
    #[bits(19)]
    __: u32,
}

/// Bytes 16 to 19: writable while the queue is disabled.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct WorkQueueInterrupt {
    /// Handle of the occupancy interrupt.
    pub handle: u16,
    /// The handle is one of the interrupt message storage; else of the MSI-X table.
    pub message_storage: bool,
    #[bits(15)]
    __: u16,
}

/// Bytes 20 to 23: always writable, the limit while enable is 0 or becomes 1.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct WorkQueueOccupancy {
    /// Occupancy at which, or below which, the queue interrupts.
    pub limit: u16,
    /// The queue interrupts.
    pub interrupt_enable: bool,
    #[bits(15)]
    __: u16,
}

/// Bytes 24 to 27: read only but for the generated bit.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct WorkQueueStatus {
    /// Entries in use.
    pub occupancy: u16,
    /// The occupancy interrupt was sent; write 1 to clear.
    pub interrupt_generated: bool,
    #[bits(12)]
    __: u16,
    /// The mode can be written on a device that is not configurable.
    pub mode_support: bool,
    /// State of the queue.
    #[bits(2)]
    pub state: WorkQueueState,
}

/// State of a work queue.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WorkQueueState {
    /// Takes no descriptors.
    #[default]
    Disabled = 0,
    /// Takes descriptors.
    Enabled = 1,
    /// A disable or a reset waits for its descriptors; it takes none.
    Draining = 2,
    /// Not defined.
    Reserved = 3,
}

impl WorkQueueState {
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Disabled,
            1 => Self::Enabled,
            2 => Self::Draining,
            _ => Self::Reserved,
        }
    }

    const fn into_bits(self) -> u8 {
        self as u8
    }
}
