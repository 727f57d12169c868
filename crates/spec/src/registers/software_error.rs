//! SWERROR: the first error that no completion record could carry.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first 8 bytes of SWERROR and of an event log entry (spec 9.2.15, Table 5-9).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct ErrorHead {
    /// An error is recorded; write 1 to clear. Unused in the event log.
    pub valid: bool,
    /// There were more errors; write 1 to clear. Unused in the event log.
    pub overflow: bool,
    /// The fields of the descriptor are valid.
    pub descriptor_valid: bool,
    /// The work queue is valid.
    pub wq_valid: bool,
    /// The descriptor came in a batch.
    pub batch_member: bool,
    /// A page fault: the access was a write.
    pub write: bool,
    /// The descriptor was privileged.
    pub privileged: bool,
    /// The error information is valid.
    pub information_valid: bool,
    /// A status code, see [`Status`](crate::Status).
    pub error: u8,
    /// Work queue.
    pub wq: u8,
    /// What ties members of a batch together; event log only.
    pub batch_id: u8,
    /// Operation code.
    pub operation: u8,
    /// PASID of the descriptor.
    #[bits(20)]
    pub pasid: u32,
    #[bits(4)]
    __: u8,
}

/// SWERROR (spec 9.2.15).
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SoftwareErrorRegister {
    /// See [`ErrorHead`].
    pub head: u64,
    /// Index in its batch in bits 15:0, error information in bits 63:32.
    pub detail: u64,
    /// Fault address.
    pub address: u64,
    /// Not used.
    pub unused: u64,
}

const _: () = assert!(size_of::<SoftwareErrorRegister>() == 32);
