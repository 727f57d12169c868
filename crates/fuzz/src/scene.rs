//! What lies in memory for descriptors to find: lists, fields that fit their blocks, a delta record.

use dray_device::{IdptConfig, IdptEntry};
use dray_ops::{DIF_BYTES, DestinationDifFlags, DifFlags, Tags};
use dray_spec::registers::{IdBr, IdptAccess, IdptControl};
use zerocopy::IntoBytes;

use crate::descriptor::descriptor;
use crate::draw::Draw;
use crate::image::{BYTES, Image, PAGE};

/// Where three blocks of 512 bytes with their fields lie.
const PROTECTED: u64 = PAGE;

/// Where a delta record lies: its offsets ascend twice.
const DELTA: u64 = 2 * PAGE;

/// Entries of each of the two parts of the record.
const ENTRIES: u64 = 16;

/// Where the bitmap of submitters lies.
const BITMAP: u64 = 3 * PAGE;

/// Bytes of the windows of the inter-domain permissions table, which start behind the first page.
pub(crate) const WINDOW: u64 = 2 * PAGE;

/// First address of a submitter's in the window of a handle, if that has one at first.
pub(crate) fn window(base: u64, handle: u16) -> Option<u64> {
    match handle {
        1 => Some(base.wrapping_add(PAGE)),
        2 => Some(0),
        _ => None,
    }
}

/// Where things are.
pub(crate) struct Scene {
    /// Where memory starts.
    pub(crate) base: u64,
    /// A page for completion records.
    pub(crate) records: u64,
    /// Lists of descriptors, with their lengths.
    pub(crate) lists: Vec<(u64, u64)>,
}

impl Scene {
    /// No memory is looked at.
    pub(crate) fn bare() -> Scene {
        Scene {
            base: 0,
            records: 0,
            lists: Vec::new(),
        }
    }

    /// Furnishes the memory.
    pub(crate) fn lay(draw: &mut Draw<'_>, memory: &mut Image) -> Scene {
        let mut scene = Scene {
            base: memory.base(),
            records: memory.writable_page().unwrap_or(memory.base()),
            lists: Vec::new(),
        };
        lay_blocks(memory);
        for n in 0..2 * ENTRIES {
            let offset = (n % ENTRIES * 2) as u16;
            memory.poke(DELTA + 10 * n, &offset.to_le_bytes());
        }
        memory.poke(BITMAP, &[0xff; 4]);
        for _ in 0..draw.below(4) {
            let at = draw.below(BYTES / 64 - 8) * 64;
            let count = 2 + draw.below(6);
            for n in 0..count {
                let member = descriptor(draw, &scene, true);
                memory.poke(at + 64 * n, member.as_bytes());
            }
            scene.lists.push((scene.base.wrapping_add(at), count));
        }
        scene
    }

    /// Blocks with fields that are right if no tag is given.
    pub(crate) fn protected(&self) -> u64 {
        self.base.wrapping_add(PROTECTED)
    }

    /// A delta record, or what is behind its start, and how many entries of it.
    pub(crate) fn delta(&self, draw: &mut Draw<'_>) -> (u64, u32) {
        let start = draw.below(8);
        let skipped = if start > 5 { start } else { 0 };
        let entries = match draw.below(4) {
            0 => 1 + draw.below(2 * ENTRIES),
            _ => 1 + draw.below(4),
        };
        let at = self.base.wrapping_add(DELTA + 10 * skipped);
        (at, entries as u32)
    }

    /// What memory may be full of, or anything.
    pub(crate) fn pattern(&self, draw: &mut Draw<'_>) -> u64 {
        match draw.any() {
            true => 0,
            false => draw.any(),
        }
    }
}

fn lay_blocks(memory: &mut Image) {
    let data = memory.peek(0, 3 * 512).to_vec();
    let mut blocks = vec![0; 3 * (512 + DIF_BYTES)];
    let (flags, destination) = (DifFlags::new(), DestinationDifFlags::new());
    let made = dray_ops::dif_insert(&data, &mut blocks, flags, destination, Tags::default());
    assert!(made.is_ok(), "three whole blocks");
    memory.poke(PROTECTED, &blocks);
}

/// Entry 0 opens everything, 1 and 2 have windows, 3 has something against most accesses.
pub(crate) fn permissions(draw: &mut Draw<'_>, base: u64) -> IdptConfig {
    let control = IdptControl::new().with_usable(true).with_allow_update(true);
    let access = IdptAccess::new().with_read(true).with_write(true);
    let whole = IdptEntry {
        control,
        access,
        ..IdptEntry::default()
    };
    let window = |offset_mode| IdptEntry {
        access: access
            .with_window_enable(true)
            .with_offset_mode(offset_mode),
        window_base: base.wrapping_add(PAGE),
        window_size: WINDOW,
        ..whole
    };
    let last = match draw.below(7) {
        0 => IdptEntry {
            access: access.with_read(false),
            ..whole
        },
        1 => IdptEntry {
            access: access.with_write(false),
            ..whole
        },
        2 => IdptEntry {
            control: control.with_usable(false),
            ..whole
        },
        3 => IdptEntry {
            control: control.with_allow_update(false),
            ..whole
        },
        4 => IdptEntry {
            control: control.with_submitter_pasid(1),
            ..whole
        },
        5 => IdptEntry {
            access: access.with_access_pasid(1),
            ..whole
        },
        _ => IdptEntry {
            control: control.with_kind(1),
            bitmap: base.wrapping_add(BITMAP),
            ..whole
        },
    };
    IdptConfig {
        entries: vec![whole, window(false), window(true), last],
        bitmaps: IdBr::new().with_pasid_enable(true),
    }
}
