//! Portals in BAR2: what an address means (spec 9.3).

/// Bytes of the page that each portal has for itself.
pub const PORTAL_PAGE_BYTES: u64 = 0x1000;
/// Portals of a work queue.
pub const PORTALS_PER_QUEUE: u64 = 4;

/// Which portal a page of BAR2 is.
///
/// The order is the kernel's (`idxd_get_wq_portal_offset`): unlimited and limited portal for the
/// MSI-X table, then the same for the interrupt message storage.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortalAddress {
    /// Work queue, which need not exist.
    pub wq: u16,
    /// Stops at the threshold of a shared queue.
    pub limited: bool,
    /// Completion interrupts are those of the interrupt message storage; else of the MSI-X table.
    pub message_storage: bool,
}

impl PortalAddress {
    /// The portal at an offset in BAR2. `None` for one that is not aligned to 64 bytes, or beyond the
    /// last queue that could be; bits 11:6 do not matter.
    pub const fn at(offset: u64) -> Option<Self> {
        let page = offset / PORTAL_PAGE_BYTES;
        let wq = page / PORTALS_PER_QUEUE;
        if !offset.is_multiple_of(64) || wq > u16::MAX as u64 {
            return None;
        }
        Some(Self {
            wq: wq as u16,
            limited: page & 1 != 0,
            message_storage: page & 2 != 0,
        })
    }

    /// Offset of the page in BAR2.
    pub const fn offset(self) -> u64 {
        let page = self.wq as u64 * PORTALS_PER_QUEUE
            + self.limited as u64
            + 2 * self.message_storage as u64;
        page * PORTAL_PAGE_BYTES
    }

    /// Bytes of BAR2 for so many queues: a power of two (spec 9.1.1.2).
    pub const fn bar_bytes(queues: u16) -> u64 {
        let queues = if queues == 0 { 1 } else { queues as u64 };
        (queues * PORTALS_PER_QUEUE * PORTAL_PAGE_BYTES).next_power_of_two()
    }
}
