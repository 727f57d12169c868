//! Four pages of memory, with holes in them and nothing around them.

use dray_device::{Access, AddressSpace, Memory};

use crate::draw::Draw;

pub(crate) const PAGE: u64 = 4096;

/// Bytes of the image.
pub(crate) const BYTES: u64 = 4 * PAGE;

/// Where an image may start: at the ends and at the edges of the address space.
const BASES: [u64; 4] = [0, 0x1000, 1 << 47, BYTES.wrapping_neg()];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Hole,
    ReadOnly,
    ReadWrite,
}

pub(crate) struct Image {
    base: u64,
    pages: [Page; 4],
    bytes: Vec<u8>,
    /// Address and length of all that was written since the last look.
    written: Vec<(u64, u64)>,
    /// Other PASIDs see the same memory, or none.
    shared: bool,
}

impl Image {
    pub(crate) fn draw(draw: &mut Draw<'_>) -> Image {
        let base = draw.pick(&BASES);
        let kinds = [Page::ReadWrite, Page::ReadOnly, Page::Hole];
        let mut pages = [Page::ReadWrite; 4];
        // All of it is there, or all but one page, or anything.
        match draw.below(4) {
            0 | 1 => {}
            2 => pages[draw.below(4) as usize] = draw.pick(&kinds),
            _ => pages = pages.map(|_| draw.pick(&kinds)),
        }
        // Half of it is the same byte: comparisons go far, deltas are short.
        let step = draw.pick(&[0_u64, 73]);
        let byte = |n: u64| (n ^ n >> 8).wrapping_mul(step) as u8;
        Image {
            base,
            pages,
            bytes: (0..BYTES).map(byte).collect(),
            written: Vec::new(),
            shared: !draw.once_in(8),
        }
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The first page that can be written.
    pub(crate) fn writable_page(&self) -> Option<u64> {
        let page = self.pages.iter().position(|page| *page == Page::ReadWrite);
        page.map(|page| self.base + page as u64 * PAGE)
    }

    fn page(&self, address: u64) -> Page {
        let offset = address.wrapping_sub(self.base);
        let inside = address >= self.base && offset < BYTES;
        match inside {
            true => self.pages[(offset / PAGE) as usize],
            false => Page::Hole,
        }
    }

    fn allows(&self, address: u64, access: Access) -> bool {
        match self.page(address) {
            Page::Hole => false,
            Page::ReadOnly => access == Access::Read,
            Page::ReadWrite => true,
        }
    }

    /// Bytes regardless of protection, from an offset on.
    pub(crate) fn poke(&mut self, offset: u64, bytes: &[u8]) {
        let start = offset as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Bytes regardless of protection.
    pub(crate) fn peek(&self, offset: u64, bytes: usize) -> &[u8] {
        &self.bytes[offset as usize..][..bytes]
    }

    /// What was written since the last call: first and last addresses of runs that do not touch,
    /// in order.
    pub(crate) fn take_written(&mut self) -> Vec<(u64, u64)> {
        runs(&std::mem::take(&mut self.written))
    }
}

impl Memory for Image {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let mut done = 0;
        while done < len && self.allows(addr.wrapping_add(done), access) {
            done += PAGE - addr.wrapping_add(done) % PAGE;
        }
        done.min(len)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        let len = into.len() as u64;
        assert_eq!(self.accessible(addr, len, Access::Read), len, "a bad read");
        if len > 0 {
            let start = (addr - self.base) as usize;
            into.copy_from_slice(&self.bytes[start..start + into.len()]);
        }
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        let len = from.len() as u64;
        assert_eq!(
            self.accessible(addr, len, Access::Write),
            len,
            "a bad write"
        );
        if len > 0 {
            self.poke(addr - self.base, from);
            self.written.push((addr, len));
        }
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        (self.shared && space.pasid.is_some()).then_some(self as &mut dyn Memory)
    }
}

/// Addresses and lengths, as first and last addresses of runs that do not touch, in order.
pub(crate) fn runs(parts: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let parts = parts.iter().filter(|(_, bytes)| *bytes > 0);
    let mut parts: Vec<_> = parts
        .map(|(start, bytes)| (*start, start.saturating_add(bytes - 1)))
        .collect();
    parts.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (first, last) in parts {
        match runs.last_mut() {
            Some(run) if first <= run.1.saturating_add(1) => run.1 = run.1.max(last),
            _ => runs.push((first, last)),
        }
    }
    runs
}
