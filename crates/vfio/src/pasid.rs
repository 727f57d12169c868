//! Addresses of processes in the guest: the walk of the guest's IOMMU tables.
//!
//! QEMU does not inform a vfio-user device how addresses with a PASID are translated. The tables lie in
//! the guest's memory, which the device has: root table, context table, PASID directory, PASID table,
//! then first-stage or second-stage tables (VT-d specification 9.1 to 9.8). Where the root table is, the
//! guest's helper module says in the function's vendor-specific capability.
//!
//! Scalable mode only. The tables are at guest physical addresses, so requests without PASID must be
//! passed through (`iommu=pt`): the helper module says nothing otherwise.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use dray_device::Access;

use crate::dma::DmaTable;

/// Bytes of a page of the tables.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Address bits of an entry.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const PRESENT: u64 = 1;

/// What the guest has said of its IOMMU.
#[derive(Debug, Default)]
pub(crate) struct Root {
    /// RTADDR: address of the root table, and the mode in bits 11:10.
    table: AtomicU64,
    /// Bus, device and function; bit 31 says that all of this counts.
    requester: AtomicU32,
}

impl Root {
    const VALID: u32 = 1 << 31;
    /// RTADDR bits 11:10.
    const SCALABLE: u64 = 1;

    pub(crate) fn set(&self, table: u64, requester: u32) {
        self.table.store(table, Ordering::Relaxed);
        self.requester.store(requester, Ordering::Release);
    }

    /// Address of the root table, bus, device and function; `None` as long as the guest says nothing.
    fn get(&self) -> Option<(u64, u64, u64)> {
        let requester = self.requester.load(Ordering::Acquire);
        let table = self.table.load(Ordering::Relaxed);
        let counts = requester & Root::VALID != 0 && table >> 10 & 3 == Root::SCALABLE;
        let (bus, function) = (requester >> 8 & 0xff, requester & 0xff);
        counts.then_some((table & ADDRESS, bus.into(), function.into()))
    }

    /// Whether PASIDs can be translated at all.
    pub(crate) fn is_known(&self) -> bool {
        self.get().is_some()
    }
}

/// Where a page is, and what may be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    /// Guest physical address of its first byte.
    pub(crate) address: u64,
    pub(crate) writable: bool,
}

impl Page {
    pub(crate) fn allows(&self, access: Access) -> bool {
        access == Access::Read || self.writable
    }
}

/// Translates the page at an address of a process; `None` is a page fault.
pub(crate) fn translate(memory: &DmaTable, root: &Root, pasid: u32, addr: u64) -> Option<Page> {
    let [low, _, first_stage, ..] = entry(memory, root, pasid)?;
    let granularity = low >> 6 & 7;
    let pass_through = Page {
        address: addr & !(PAGE_BYTES - 1),
        writable: true,
    };
    match granularity {
        // First stage: 4 levels, or 5.
        1 => {
            let levels = 4 + (first_stage >> 2 & 3);
            let bits = 12 + 9 * levels;
            // Canonical addresses only.
            let upper = (addr as i64) >> (bits - 1);
            (levels <= 5 && (upper == 0 || upper == -1)).then_some(())?;
            walk(memory, first_stage & ADDRESS, levels, addr, &FIRST_STAGE)
        }
        // Second stage: the width is that of the guest's address.
        2 => {
            let levels = 2 + (low >> 2 & 7);
            ((3..=5).contains(&levels) && addr >> (12 + 9 * levels) == 0).then_some(())?;
            walk(memory, low & ADDRESS, levels, addr, &SECOND_STAGE)
        }
        4 => Some(pass_through),
        _ => None,
    }
}

/// The entry of the PASID table.
fn entry(memory: &DmaTable, root: &Root, pasid: u32) -> Option<[u64; 8]> {
    let (table, bus, function) = root.get()?;
    // Functions 0 to 127 of a bus have one context table, those from 128 on another.
    let [context] = read(memory, table + 16 * bus + 8 * (function >> 7))?;
    let [context, ..] = read::<4>(memory, present(context)? + 32 * (function & 0x7f))?;
    let directory = present(context)?;
    // PASIDs that a directory of its size holds (context entry bits 11:9).
    let entries = 1_u64 << ((context >> 9 & 7) + 7);
    let index = u64::from(pasid) >> 6;
    (index < entries).then_some(())?;
    let [directory] = read(memory, directory + 8 * index)?;
    let entry: [u64; 8] = read(memory, present(directory)? + 64 * u64::from(pasid & 63))?;
    (entry[0] & PRESENT != 0).then_some(entry)
}

fn present(entry: u64) -> Option<u64> {
    (entry & PRESENT != 0).then_some(entry & ADDRESS)
}

/// What the bits of a page table's entry are.
struct Stage {
    /// All of these are set where there is something.
    present: u64,
    writable: u64,
    large: u64,
}

/// As the processor's. Requests are those of user processes: all entries allow user access.
const FIRST_STAGE: Stage = Stage {
    present: 1 | 1 << 2,
    writable: 1 << 1,
    large: 1 << 7,
};
const SECOND_STAGE: Stage = Stage {
    present: 1,
    writable: 1 << 1,
    large: 1 << 7,
};

fn walk(memory: &DmaTable, table: u64, levels: u64, addr: u64, stage: &Stage) -> Option<Page> {
    let (mut table, mut writable) = (table, true);
    for level in (0..levels).rev() {
        let shift = 12 + 9 * level;
        let [entry] = read(memory, table + 8 * (addr >> shift & 0x1ff))?;
        (entry & stage.present == stage.present).then_some(())?;
        writable &= entry & stage.writable != 0;
        let last = level == 0 || level <= 2 && entry & stage.large != 0;
        if last {
            let inside = (1 << shift) - 1;
            let address = entry & ADDRESS & !inside | addr & inside & !(PAGE_BYTES - 1);
            return Some(Page { address, writable });
        }
        table = entry & ADDRESS;
    }
    None
}

fn read<const N: usize>(memory: &DmaTable, address: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (n, word) in (0..).zip(&mut words) {
        let mut bytes = [0; 8];
        memory.read(address + 8 * n, &mut bytes).ok()?;
        *word = u64::from_le_bytes(bytes);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;
    use crate::protocol::DmaMap;

    const BYTES: u64 = 1 << 20;
    const PASID: u32 = 0x43;

    /// Guest memory with the tables of bus 0, device 3: PASID 0x43 has a first stage.
    fn guest() -> (DmaTable, Root) {
        let table = DmaTable::default();
        let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, BYTES).expect("a length");
        let map = DmaMap {
            argsz: 32,
            flags: 3,
            offset: 0,
            address: 0,
            size: BYTES,
        };
        table.map(&map, Some(file)).expect("mapped");
        let function = 3 << 3;
        for (address, value) in [
            (0x1000, 0x2000 | 1),
            (0x2000 + 32 * function, 0x3000 | 7 << 9 | 1),
            (0x3000 + 8, 0x4000 | 1),
            (0x4000 + 64 * 3, 1 << 6 | 1),
            (0x4000 + 64 * 3 + 16, 0x5000),
            // Address 0x7f12_3456_7000: 4 KiB, writable; the page before it read-only.
            (0x5000 + 8 * 0xfe, 0x6000 | 7),
            (0x6000 + 8 * 0x48, 0x7000 | 7),
            (0x7000 + 8 * 0x1a2, 0x8000 | 7),
            (0x8000 + 8 * 0x167, 0x9000 | 7),
            (0x8000 + 8 * 0x166, 0xa000 | 5),
            // A page of the kernel, and one of 2 MiB.
            (0x8000 + 8 * 0x165, 0xb000 | 3),
            (0x7000 + 8 * 0x1a3, 0x4000_0000 | 1 << 7 | 7),
        ] {
            table
                .write(address, &u64::to_le_bytes(value))
                .expect("written");
        }
        let root = Root::default();
        root.set(0x1000 | 1 << 10, Root::VALID | function as u32);
        (table, root)
    }

    #[test]
    fn first_stage_tables_are_walked() {
        let (memory, root) = guest();
        let at = |addr| translate(&memory, &root, PASID, addr);
        let page = |address, writable| Some(Page { address, writable });
        assert_eq!(at(0x7f12_3456_7123), page(0x9000, true));
        assert_eq!(at(0x7f12_3456_6fff), page(0xa000, false));
        assert_eq!(at(0x7f12_3456_5000), None, "no user page");
        assert_eq!(at(0x7f12_3456_8000), None, "not present");
        assert_eq!(
            at(0x7f12_3460_1000),
            page(0x4000_1000, true),
            "of a large page"
        );
        assert_eq!(at(0xffff_7f12_3456_7000), None, "not canonical");
        assert_eq!(translate(&memory, &root, 0x44, 0x7f12_3456_7000), None);
        assert_eq!(translate(&memory, &root, 0xf_ffff, 0x7f12_3456_7000), None);
    }

    #[test]
    fn without_a_root_from_the_guest_translation_fails() {
        let (memory, _) = guest();
        let root = Root::default();
        assert!(!root.is_known());
        assert_eq!(translate(&memory, &root, PASID, 0x7f12_3456_7000), None);
        root.set(0x1000, Root::VALID | 24);
        assert!(!root.is_known(), "legacy mode");
    }

    #[test]
    fn tables_outside_guest_memory_are_faults() {
        let (memory, root) = guest();
        memory
            .write(0x5000 + 8 * 0xfe, &(!0_u64).to_le_bytes())
            .expect("written");
        assert_eq!(translate(&memory, &root, PASID, 0x7f12_3456_7000), None);
        memory
            .write(0x1000, &(!0_u64).to_le_bytes())
            .expect("written");
        assert_eq!(translate(&memory, &root, PASID, 0x7f12_3456_7000), None);
    }
}
