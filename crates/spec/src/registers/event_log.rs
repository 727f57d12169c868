//! The event log: errors in memory instead of a register (spec 5.9).

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::CompletionRecord;

/// EVLCFG: writable while the device is disabled (spec 9.2.16).
#[bitfield(u128)]
#[derive(PartialEq, Eq)]
pub struct EvlCfg {
    /// The log is written with a PASID.
    pub pasid_enable: bool,
    /// The log is written with privilege.
    pub privileged: bool,
    #[bits(10)]
    __: u16,
    /// Bits 63:12 of the address.
    #[bits(52)]
    pub base_page: u64,
    /// Number of entries.
    pub entries: u16,
    /// PASID that the log is written with.
    #[bits(20)]
    pub pasid: u32,
    #[bits(28)]
    __: u32,
}

impl EvlCfg {
    /// Address of the log.
    pub const fn base(self) -> u64 {
        self.base_page() << 12
    }
}

/// EVLSTATUS (spec 9.2.17).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct EvlStatus {
    /// Index of the entry that software processes next.
    pub head: u16,
    __: u16,
    /// Index of the entry that the device writes next; read only.
    pub tail: u16,
    #[bits(14)]
    __: u16,
    /// An interrupt was sent; write 1 to clear.
    pub interrupt_pending: bool,
    __: bool,
}

/// The first 64 bytes of an entry (spec Table 5-9).
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct EventLogEntry {
    /// See [`ErrorHead`](super::ErrorHead).
    pub head: u64,
    /// Index in its batch in bits 15:0, error information in bits 63:32.
    pub detail: u64,
    /// Fault address, or address of the completion record.
    pub address: u64,
    /// Not used.
    pub unused: u64,
    /// What the completion record would say.
    pub record: CompletionRecord,
}

const _: () = assert!(size_of::<EventLogEntry>() == 64);

impl EventLogEntry {
    // Bits of the error information of codes 0x19, 0x1a, 0x26 and 0x27, within `detail`.
    /// A completion interrupt is due, with the handle in bits 47:32.
    pub const INTERRUPT_REQUIRED: u64 = 1 << 48;
    /// The interrupt is one of the interrupt message storage.
    pub const MESSAGE_STORAGE: u64 = 1 << 49;
    /// A completion record is due.
    pub const RECORD_REQUIRED: u64 = 1 << 50;
    /// The first entry of its batch.
    pub const FIRST_IN_BATCH: u64 = 1 << 51;
}
