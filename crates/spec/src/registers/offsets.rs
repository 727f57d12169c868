//! Where the tables of BAR0 are.

use bitfield_struct::bitfield;

/// OFFSETS: each field times 0x100 is the offset of a table in bytes (spec 9.2.7).
#[bitfield(u128)]
#[derive(PartialEq, Eq)]
pub struct TableOffsets {
    /// Group configuration.
    pub group_config: u16,
    /// Work queue configuration.
    pub work_queue_config: u16,
    /// MSI-X permissions.
    pub msix_permissions: u16,
    /// Interrupt message storage.
    pub interrupt_message_storage: u16,
    /// Performance monitoring; 0 if there is none.
    pub perfmon: u16,
    /// Inter-domain permissions; 0 if there are none.
    pub inter_domain_permissions: u16,
    __: u32,
}

impl TableOffsets {
    /// What one step of a field is, in bytes.
    pub const UNIT: u64 = 0x100;
}
