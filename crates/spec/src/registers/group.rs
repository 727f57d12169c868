//! GRPCFG: which queues and engines belong together (spec 9.2.23).

use bitfield_struct::bitfield;

/// Layout of one GRPCFG register.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GroupRegister;

impl GroupRegister {
    /// Distance between two groups in bytes.
    pub const STRIDE: u64 = 64;
    /// GRPWQCFG, 32 bytes: a bit for each work queue.
    pub const WORK_QUEUES: u64 = 0;
    /// GRPENGCFG, 8 bytes: a bit for each engine.
    pub const ENGINES: u64 = 32;
    /// GRPFLAGS, 8 bytes: see [`GroupFlags`].
    pub const FLAGS: u64 = 40;
}

/// GRPFLAGS.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct GroupFlags {
    /// Traffic class where the selector is 0.
    #[bits(3)]
    pub traffic_class_a: u8,
    /// Traffic class where the selector is 1.
    #[bits(3)]
    pub traffic_class_b: u8,
    __: bool,
    /// The global read buffer limit applies.
    pub use_global_read_buffer_limit: bool,
    /// Read buffers for this group alone.
    pub read_buffers_reserved: u8,
    #[bits(4)]
    __: u8,
    /// Most read buffers in use at a time.
    pub read_buffers_allowed: u8,
    #[bits(4)]
    __: u8,
    /// n, where an engine has 1/2^n of its work descriptors in progress; version 2.
    #[bits(2)]
    pub work_descriptor_limit: u8,
    #[bits(2)]
    __: u8,
    /// The same for batch descriptors; version 2.
    #[bits(2)]
    pub batch_descriptor_limit: u8,
    #[bits(2)]
    __: u8,
    /// n, where the group reads with 1/2^n of the bandwidth; 0 to 3, version 3.
    #[bits(4)]
    pub read_bandwidth_limit: u8,
    /// The same for writes; version 3.
    #[bits(4)]
    pub write_bandwidth_limit: u8,
    __: u16,
}
