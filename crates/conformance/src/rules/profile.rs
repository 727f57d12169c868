//! The devices that cases are put to.

use dray_spec::registers::{IdBr, IdCap, IdptAccess, IdptControl};
use dray_spec::{Descriptor, GenCap, OpCap, Opcode};

use super::layout::{BITMAP, BITMAP_PASID, OTHER_PASID, OWN_PASID, SRC};
use super::{PAGE, layout};
use dray_device::{DeviceConfig, IdptConfig, IdptEntry, WorkQueueConfig, WorkQueueMode};

/// The entries of the inter-domain permissions table.
pub(super) mod handle {
    /// Everything of the other PASID.
    pub(crate) const WHOLE: u16 = 0;
    /// The four pages at SRC, by address.
    pub(crate) const WINDOW: u16 = 1;
    /// The four pages at SRC, by offset.
    pub(crate) const OFFSET: u16 = 2;
    /// Submitters are in a bitmap, the queue's PASID among them.
    pub(crate) const MANY: u16 = 3;
    /// The queue's PASID is not in the bitmap.
    pub(crate) const EXCLUDED: u16 = 4;
    /// The bitmap is not there.
    pub(crate) const NO_BITMAP: u16 = 5;
    /// Reads only.
    pub(crate) const READ: u16 = 6;
    /// Writes only.
    pub(crate) const WRITE: u16 = 7;
    /// Belongs to the queue's PASID, which may change its window.
    pub(crate) const OWN: u16 = 8;
    /// As that, but may not be changed.
    pub(crate) const FIXED: u16 = 9;
    /// Belongs to another, and may be changed.
    pub(crate) const FOREIGN: u16 = 10;
    /// Not usable.
    pub(crate) const UNUSABLE: u16 = 11;
    /// For another submitter.
    pub(crate) const REFUSED: u16 = 12;
    /// The window starts one page before the hole and ends one page behind it, by offset.
    pub(crate) const HIDDEN: u16 = 13;
    /// Entries of the table.
    pub(crate) const COUNT: u16 = 14;
}

/// DSA 1.0, as a fourth generation Xeon has it.
pub(super) fn version_1() -> DeviceConfig {
    let queue = WorkQueueConfig {
        pasid: Some(OWN_PASID),
        ..WorkQueueConfig::new(0, WorkQueueMode::Dedicated, 16)
    };
    DeviceConfig::sapphire_rapids(1, vec![queue])
}

/// DSA 2.0 with everything.
pub(super) fn version_2() -> DeviceConfig {
    let mut device = version_1();
    let capabilities = &mut device.capabilities;
    capabilities.version = 0x200;
    capabilities.gen_cap = GenCap::from_bits(capabilities.gen_cap)
        .with_inter_domain(true)
        .with_translation_fetch_stride(true)
        .with_drain_readback(true)
        .with_fill_pattern_16(true)
        .with_crc64(true)
        .with_fault_info(true)
        .with_batch_continuation(true)
        .into_bits();
    let all = Opcode::ALL
        .iter()
        .fold(OpCap::default(), |all, o| all.with(*o));
    capabilities.op_cap = all.0;
    capabilities.id_cap = IdCap::new()
        .with_types(3)
        .with_entries(handle::COUNT)
        .with_offset_mode(true)
        .with_suppress_drain(true)
        .into_bits();
    device.idpt = IdptConfig {
        entries: entries(),
        bitmaps: IdBr::new().with_pasid_enable(true).with_pasid(BITMAP_PASID),
    };
    device
}

/// The version that has the operation; version 1 for what neither has.
pub(super) fn profile_of(descriptor: &Descriptor) -> DeviceConfig {
    let one = version_1();
    let two = version_2();
    let code = descriptor.opcode_byte();
    let newer = !OpCap(one.capabilities.op_cap).supports(code)
        && OpCap(two.capabilities.op_cap).supports(code);
    if newer { two } else { one }
}

fn entries() -> Vec<IdptEntry> {
    let control = IdptControl::new()
        .with_usable(true)
        .with_submitter_pasid(OWN_PASID);
    let access = IdptAccess::new()
        .with_read(true)
        .with_write(true)
        .with_access_pasid(OTHER_PASID);
    let whole = IdptEntry {
        control,
        access,
        ..IdptEntry::default()
    };
    let window = IdptEntry {
        access: access.with_window_enable(true),
        window_base: SRC,
        window_size: 4 * PAGE,
        ..whole
    };
    let offset = IdptEntry {
        access: window.access.with_offset_mode(true),
        ..window
    };
    let many = |bitmap| IdptEntry {
        control: control.with_kind(1).with_submitter_pasid(0),
        bitmap,
        ..whole
    };
    let with_access = |access| IdptEntry { access, ..whole };
    let own = IdptEntry {
        control: control.with_allow_update(true),
        access: access.with_access_pasid(OWN_PASID),
        ..whole
    };
    let with_control = |control| IdptEntry { control, ..whole };
    vec![
        whole,
        window,
        offset,
        many(BITMAP),
        many(BITMAP + PAGE),
        many(BITMAP + 2 * PAGE),
        with_access(access.with_write(false)),
        with_access(access.with_read(false)),
        own,
        IdptEntry { control, ..own },
        with_control(control.with_allow_update(true)),
        with_control(control.with_usable(false)),
        with_control(control.with_submitter_pasid(OWN_PASID + 1)),
        IdptEntry {
            window_base: layout::HOLE - PAGE,
            window_size: 2 * PAGE,
            ..offset
        },
    ]
}
