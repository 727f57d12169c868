//! Interrupt tables and what may use them.

use bitfield_struct::bitfield;

/// Distance between two MSI-X permission registers in bytes; each has 4 (spec 9.2.22).
pub const MSIX_PERMISSION_STRIDE: u64 = 8;
/// Bytes of an entry of the MSI-X table: address, data, vector control with its mask in bit 0.
pub const MSIX_ENTRY_BYTES: u64 = 16;
/// Bytes of an entry of the interrupt message storage (spec 9.2.28).
pub const IMS_ENTRY_BYTES: u64 = 16;

/// MSIXPERM: which descriptors may use an entry of the MSI-X table (spec 9.2.22).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct MsixPermission {
    #[bits(2)]
    __: u8,
    /// Completions do not interrupt.
    pub ignore: bool,
    /// Must be the PASID enable of the descriptor's queue.
    pub pasid_enable: bool,
    __: u8,
    /// With PASID enable: must be the PASID of the descriptor.
    #[bits(20)]
    pub pasid: u32,
}

/// Control word of an entry of the interrupt message storage (spec 9.2.28).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct ImsControl {
    /// No interrupt is sent, it becomes pending.
    pub mask: bool,
    /// An interrupt waits for the mask to go; read only.
    pub pending: bool,
    /// Completions do not interrupt.
    pub ignore: bool,
    /// Must be the PASID enable of the descriptor's queue.
    pub pasid_enable: bool,
    __: u8,
    /// With PASID enable: must be the PASID of the descriptor.
    #[bits(20)]
    pub pasid: u32,
}

impl ImsControl {
    /// The part that decides who may use the entry, as the MSI-X table has it.
    pub const fn permission(self) -> MsixPermission {
        MsixPermission::new()
            .with_ignore(self.ignore())
            .with_pasid_enable(self.pasid_enable())
            .with_pasid(self.pasid())
    }
}
