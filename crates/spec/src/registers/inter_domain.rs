//! Who may reach into which address space (spec 9.2.18, 9.2.19, 9.2.29).

use bitfield_struct::bitfield;

/// IDCAP.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct IdCap {
    /// Types of entries, a bit each: 0 single submitter, 1 bitmap.
    #[bits(2)]
    pub types: u8,
    #[bits(6)]
    __: u8,
    /// Entries of the table.
    pub entries: u16,
    /// Windows can be addressed by offset.
    pub offset_mode: bool,
    /// Update window can go without its drain.
    pub suppress_drain: bool,
    /// N, where an entry has 2^(N+5) bytes.
    #[bits(2)]
    pub entry_shift: u8,
    #[bits(36)]
    __: u64,
}

impl IdCap {
    /// Distance between two entries in bytes.
    pub const fn entry_stride_bytes(self) -> u64 {
        32 << self.entry_shift()
    }
}

/// IDBR: how submitter bitmaps are read; writable while the device is disabled.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct IdBr {
    /// With a PASID.
    pub pasid_enable: bool,
    /// With privilege.
    pub privileged: bool,
    /// Traffic class.
    #[bits(3)]
    pub traffic_class: u8,
    #[bits(3)]
    __: u8,
    /// The PASID.
    #[bits(20)]
    pub pasid: u32,
    #[bits(4)]
    __: u8,
}

/// Bytes 0 to 3 of an entry of the inter-domain permissions table.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct IdptControl {
    /// Descriptors may refer to the entry.
    pub usable: bool,
    /// Update Window may change the window.
    pub allow_update: bool,
    /// 0: one submitter; 1: those in a bitmap.
    #[bits(2)]
    pub kind: u8,
    __: u8,
    /// The one submitter.
    #[bits(20)]
    pub submitter_pasid: u32,
}

/// Bytes 4 to 7 of an entry. Window base, window size and bitmap address follow, 8 bytes each.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct IdptAccess {
    /// Reads are allowed.
    pub read: bool,
    /// Writes are allowed.
    pub write: bool,
    /// The privilege of the descriptor is kept; else accesses have none.
    pub keep_privilege: bool,
    /// Accesses stay in the window.
    pub window_enable: bool,
    /// Addresses are offsets into the window.
    pub offset_mode: bool,
    #[bits(7)]
    __: u8,
    /// PASID of the memory that the entry opens.
    #[bits(20)]
    pub access_pasid: u32,
}
