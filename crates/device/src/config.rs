//! How a device is configured: what it can do, its work queues, its groups.

/// What a device can do, as its capability registers say (spec 9.2.2 to 9.2.7).
///
/// Nothing of this is hard-coded to one part: it comes from the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// VERSION register: 0x100 is 1.0, 0x200 is 2.0.
    pub version: u32,
    /// GENCAP register, raw.
    pub gen_cap: u64,
    /// OPCAP register: bit n of the 256-bit map says that opcode n is supported;
    /// word 0 holds opcodes 0 to 63.
    pub op_cap: [u64; 4],
    /// Number of groups.
    pub max_groups: u16,
    /// Number of work queues.
    pub max_work_queues: u16,
    /// Number of engines.
    pub max_engines: u16,
    /// Work queue entries of the whole device.
    pub work_queue_size: u16,
    /// Read buffers of the whole device.
    pub max_read_buffers: u16,
    /// Largest batch, in descriptors.
    pub max_batch_size: u32,
    /// Largest transfer, in bytes.
    pub max_transfer_size: u64,
}

/// How a work queue takes descriptors (spec 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkQueueMode {
    /// One client, MOVDIR64B, no answer: a write to a full queue is lost.
    Dedicated,
    /// Many clients, ENQCMD, accepted or retry.
    Shared,
}

/// One work queue (WQCFG, spec 9.2.24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkQueueConfig {
    /// Index on the device.
    pub id: u16,
    /// Group that the queue belongs to.
    pub group: u16,
    /// Dedicated or shared.
    pub mode: WorkQueueMode,
    /// Entries.
    pub size: u16,
    /// Occupancy up to which the limited portal accepts; shared queues only.
    pub threshold: u16,
    /// 1 (low) to 15 (high).
    pub priority: u8,
    /// Whether descriptors may ask to block on a page fault.
    pub block_on_fault: bool,
    /// Largest batch, in descriptors.
    pub max_batch_size: u32,
    /// Largest transfer, in bytes.
    pub max_transfer_size: u64,
}

/// One group (GRPCFG, spec 9.2.23).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupConfig {
    /// Index on the device.
    pub id: u16,
    /// Engines that serve the group.
    pub engines: Vec<u16>,
    /// Read buffers kept for this group alone.
    pub read_buffers_reserved: u16,
    /// Read buffers that the group may hold at most.
    pub read_buffers_allowed: u16,
    /// Whether the device-wide limit applies to the group.
    pub use_read_buffer_limit: bool,
}

/// A device as it is when it is enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceConfig {
    /// What the device can do.
    pub capabilities: Capabilities,
    /// GENCFG global read-buffer limit; 0 is no limit.
    pub read_buffer_limit: u16,
    /// Enabled work queues.
    pub work_queues: Vec<WorkQueueConfig>,
    /// Groups that have engines.
    pub groups: Vec<GroupConfig>,
}
