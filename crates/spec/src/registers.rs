//! Registers of BAR0: where they are and what their bits mean (spec 9.2).
//!
//! Names are the specification's; where the kernel's `registers.h` has another one, the comment says
//! it. Capability registers are in [`capability`](crate::capability).

mod command;
mod control;
mod dsa;
mod event_log;
mod group;
mod inter_domain;
mod interrupt;
mod offsets;
mod portal;
mod software_error;
mod work_queue;

pub use command::{Command, CommandError, CommandRegister, CommandStatus};
pub use control::{DeviceState, GenCfg, GenCtrl, GenSts, IntCause, ResetType};
pub use dsa::{DsaCap0, DsaCap1, DsaCap2, PerfCap};
pub use event_log::{EventLogEntry, EvlCfg, EvlStatus};
pub use group::{GroupFlags, GroupRegister};
pub use inter_domain::{IdBr, IdCap, IdptAccess, IdptControl};
pub use interrupt::{
    IMS_ENTRY_BYTES, ImsControl, MSIX_ENTRY_BYTES, MSIX_PERMISSION_STRIDE, MsixPermission,
};
pub use offsets::TableOffsets;
pub use portal::{PORTAL_PAGE_BYTES, PORTALS_PER_QUEUE, PortalAddress};
pub use software_error::{ErrorHead, SoftwareErrorRegister};
pub use work_queue::{
    WorkQueueInterrupt, WorkQueueLimits, WorkQueueOccupancy, WorkQueuePolicy, WorkQueueRegister,
    WorkQueueState, WorkQueueStatus,
};

/// Smallest size of BAR0 in bytes (spec 9.1.1.1).
pub const BAR0_BYTES: u64 = 0x1_0000;

/// VERSION: major in bits 15:8, minor in 7:0; 4 bytes (spec 9.2.1).
pub const VERSION: u64 = 0x00;
/// GENCAP, 8 bytes (spec 9.2.2).
pub const GENCAP: u64 = 0x10;
/// WQCAP, 8 bytes (spec 9.2.3).
pub const WQCAP: u64 = 0x20;
/// GRPCAP, 8 bytes (spec 9.2.4).
pub const GRPCAP: u64 = 0x30;
/// ENGCAP, 8 bytes (spec 9.2.5).
pub const ENGCAP: u64 = 0x38;
/// OPCAP, 32 bytes (spec 9.2.6).
pub const OPCAP: u64 = 0x40;
/// OFFSETS, 16 bytes (spec 9.2.7).
pub const OFFSETS: u64 = 0x60;
/// GENCFG, 4 bytes (spec 9.2.8).
pub const GENCFG: u64 = 0x80;
/// GENCTRL, 4 bytes (spec 9.2.9).
pub const GENCTRL: u64 = 0x88;
/// GENSTS, 4 bytes (spec 9.2.10). The kernel's `IDXD_GENSTATS_OFFSET`.
pub const GENSTS: u64 = 0x90;
/// INTCAUSE, 4 bytes (spec 9.2.11).
pub const INTCAUSE: u64 = 0x98;
/// CMD, 4 bytes (spec 9.2.12).
pub const CMD: u64 = 0xa0;
/// CMDSTATUS, 4 bytes (spec 9.2.13).
pub const CMDSTATUS: u64 = 0xa8;
/// CMDCAP, 8 bytes; there if GENCAP bit 4 says so (spec 9.2.14).
pub const CMDCAP: u64 = 0xb0;
/// SWERROR, 32 bytes (spec 9.2.15).
pub const SWERROR: u64 = 0xc0;
/// EVLCFG, 16 bytes (spec 9.2.16).
pub const EVLCFG: u64 = 0xe0;
/// EVLSTATUS, 8 bytes (spec 9.2.17).
pub const EVLSTATUS: u64 = 0xf0;
/// IDCAP, 8 bytes; there if GENCAP bit 6 says so (spec 9.2.18). The kernel's `IDXD_IAACAP_OFFSET`
/// is another register, of another device.
pub const IDCAP: u64 = 0x100;
/// IDBR, 4 bytes (spec 9.2.19).
pub const IDBR: u64 = 0x108;
/// DSACAP0, 8 bytes; version 3 (spec 9.2.30).
pub const DSACAP0: u64 = 0x180;
/// DSACAP1, 8 bytes; version 3 (spec 9.2.31).
pub const DSACAP1: u64 = 0x188;
/// DSACAP2, 8 bytes; version 3 (spec 9.2.32).
pub const DSACAP2: u64 = 0x190;
/// CMDPARAM, 8 bytes (spec 9.2.20).
pub const CMDPARAM: u64 = 0xe000;
/// A page that behaves like the portal of a queue that is not enabled (spec 9.2.21).
pub const DUMMY_PORTAL: u64 = 0xf000;
/// Bytes of the dummy portal.
pub const DUMMY_PORTAL_BYTES: u64 = 0x1000;

#[cfg(test)]
mod tests;
