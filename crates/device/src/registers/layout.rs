//! Where the tables of BAR0 are.

use dray_spec::registers::{
    BAR0_BYTES, CMDPARAM, GroupRegister, IMS_ENTRY_BYTES, IdCap, MSIX_ENTRY_BYTES,
    MSIX_PERMISSION_STRIDE, TableOffsets,
};

use super::Hardware;

/// A table: where it begins and how it goes on, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Table {
    pub(crate) base: u64,
    pub(crate) stride: u64,
    pub(crate) entries: u64,
}

impl Table {
    fn end(self) -> u64 {
        self.base + self.stride * self.entries
    }

    /// Entry and offset in it of an address; `None` outside the table.
    fn find(self, at: u64) -> Option<(usize, u64)> {
        let offset = at.checked_sub(self.base).filter(|_| at < self.end())?;
        Some(((offset / self.stride) as usize, offset % self.stride))
    }

    fn offset(self) -> u16 {
        match self.entries {
            0 => 0,
            _ => (self.base / TableOffsets::UNIT) as u16,
        }
    }
}

/// What an address of BAR0 is part of: table, entry, offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A register that has its address for itself, or nothing.
    Fixed,
    Group(usize, u64),
    Queue(usize, u64),
    Permission(usize, u64),
    Vector(usize, u64),
    /// Qword of the pending bits.
    Pending(usize),
    Message(usize, u64),
    Domain(usize, u64),
}

/// The places of the tables. Where they fit, they are those of the specification's example (Figure
/// 9-1), the MSI-X table that of appendix C; OFFSETS says them, and so no driver depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub(crate) permissions: Table,
    pub(crate) groups: Table,
    pub(crate) queues: Table,
    pub(crate) vectors: Table,
    pub(crate) pending: Table,
    pub(crate) messages: Table,
    pub(crate) domains: Table,
}

impl Layout {
    pub(crate) fn new(hardware: &Hardware) -> Layout {
        let table = |after: u64, align: u64, stride: u64, entries: u64| Table {
            base: after.next_multiple_of(align),
            stride,
            entries,
        };
        let vectors = u64::from(hardware.interrupt_vectors.clamp(1, 2048));
        let permissions = table(0x400, 0x100, MSIX_PERMISSION_STRIDE, vectors);
        let count = hardware.groups() as u64;
        let groups = table(
            permissions.end().max(0x600),
            0x100,
            GroupRegister::STRIDE,
            count,
        );
        let stride = hardware.wq_cap.config_stride_bytes().into();
        let count = hardware.queues() as u64;
        let queues = table(groups.end().max(0x800), 0x100, stride, count);
        // Tables that may be large lie behind the registers with fixed places.
        let after = match queues.end() + vectors * 16 + 0x2000 < CMDPARAM {
            true => queues.end().max(0x2000),
            false => queues.end().max(BAR0_BYTES),
        };
        let vectors = table(after, 0x1000, MSIX_ENTRY_BYTES, vectors);
        let pending = table(vectors.end(), 0x1000, 8, vectors.entries.div_ceil(64));
        let after = pending.end().max(BAR0_BYTES);
        let count = hardware.gen_cap.ims_entries().into();
        let messages = table(after, 0x1000, IMS_ENTRY_BYTES, count);
        let id_cap = match hardware.gen_cap.inter_domain() {
            true => IdCap::from(hardware.capabilities.id_cap),
            false => IdCap::new(),
        };
        let (stride, count) = (id_cap.entry_stride_bytes(), id_cap.entries().into());
        let domains = table(messages.end(), 0x1000, stride, count);
        Layout {
            permissions,
            groups,
            queues,
            vectors,
            pending,
            messages,
            domains,
        }
    }

    /// OFFSETS.
    pub(crate) fn offsets(&self) -> TableOffsets {
        TableOffsets::new()
            .with_group_config(self.groups.offset())
            .with_work_queue_config(self.queues.offset())
            .with_msix_permissions(self.permissions.offset())
            .with_interrupt_message_storage(self.messages.offset())
            .with_inter_domain_permissions(self.domains.offset())
    }

    /// Size of BAR0 in bytes, a power of two.
    pub fn bar0_bytes(&self) -> u64 {
        let end = self.messages.end().max(self.domains.end());
        end.max(self.pending.end())
            .max(BAR0_BYTES)
            .next_power_of_two()
    }

    /// Offset of the MSI-X table in BAR0, for the PCI capability.
    pub fn msix_table(&self) -> u64 {
        self.vectors.base
    }

    /// Offset of the MSI-X pending bits in BAR0, for the PCI capability.
    pub fn msix_pending(&self) -> u64 {
        self.pending.base
    }

    pub(crate) fn find(&self, at: u64) -> Spot {
        let groups = self.groups.find(at).map(|(i, at)| Spot::Group(i, at));
        groups
            .or_else(|| self.queues.find(at).map(|(i, at)| Spot::Queue(i, at)))
            .or_else(|| {
                self.permissions
                    .find(at)
                    .map(|(i, at)| Spot::Permission(i, at))
            })
            .or_else(|| self.vectors.find(at).map(|(i, at)| Spot::Vector(i, at)))
            .or_else(|| self.pending.find(at).map(|(i, _)| Spot::Pending(i)))
            .or_else(|| self.messages.find(at).map(|(i, at)| Spot::Message(i, at)))
            .or_else(|| self.domains.find(at).map(|(i, at)| Spot::Domain(i, at)))
            .unwrap_or(Spot::Fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capabilities;

    fn layout(change: impl FnOnce(&mut Capabilities)) -> Layout {
        let mut capabilities = Capabilities {
            version: 0x100,
            gen_cap: Capabilities::sapphire_rapids().gen_cap,
            max_groups: 4,
            max_work_queues: 8,
            max_engines: 4,
            ..Capabilities::default()
        };
        change(&mut capabilities);
        Layout::new(&Hardware::new(capabilities))
    }

    #[test]
    fn a_small_device_has_the_places_of_the_example() {
        let layout = layout(|_| ());
        let bases = [layout.permissions, layout.groups, layout.queues].map(|table| table.base);
        assert_eq!(bases, [0x400, 0x600, 0x800]);
        assert_eq!(
            (layout.msix_table(), layout.msix_pending()),
            (0x2000, 0x3000)
        );
        // 2048 messages do not fit below the dummy portal.
        assert_eq!(
            (layout.messages.base, layout.bar0_bytes()),
            (0x1_0000, 0x2_0000)
        );
        assert_eq!(layout.offsets().into_bits(), 0x0100_0004_0008_0006);
    }

    #[test]
    fn the_largest_device_has_no_two_tables_in_one_place() {
        let layout = layout(|c| {
            c.version = 0x200;
            c.gen_cap |= 1 << 6;
            c.id_cap = 0xffff_ff03;
            (c.max_groups, c.max_work_queues) = (255, 255);
        });
        let mut tables = [
            layout.permissions,
            layout.groups,
            layout.queues,
            layout.vectors,
            layout.pending,
            layout.messages,
            layout.domains,
        ];
        tables.sort_by_key(|table| table.base);
        for pair in tables.windows(2) {
            assert!(pair[0].end() <= pair[1].base, "{pair:x?}");
        }
        for table in tables {
            assert!(
                table.end() <= CMDPARAM || table.base >= BAR0_BYTES,
                "{table:x?}"
            );
            assert!(table.end() <= layout.bar0_bytes());
            assert!(table.base / TableOffsets::UNIT <= u16::MAX.into());
        }
        assert!(layout.domains.entries == 0xffff);
    }
}
