//! Memory in pages, some of which are not there.

use std::fmt;
use std::ops::Range;

use dray_device::{Access, Memory};
use dray_spec::Descriptor;
use zerocopy::IntoBytes;

pub(crate) const PAGE: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Hole,
    ReadOnly,
    ReadWrite,
}

/// Pages side by side from `base` on. Outside of them there is nothing.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pages {
    base: u64,
    pages: Vec<Page>,
    bytes: Vec<u8>,
}

impl Pages {
    /// The bytes count up in a way that repeats late.
    pub(crate) fn new(base: u64, pages: Vec<Page>) -> Pages {
        assert_eq!(base % PAGE, 0);
        let size = pages.len() as u64 * PAGE;
        let bytes = (0..size).map(|n| (n ^ n >> 8).wrapping_mul(73) as u8);
        Pages {
            base,
            pages,
            bytes: bytes.collect(),
        }
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn page(&self, address: u64) -> Page {
        match address.checked_sub(self.base) {
            Some(offset) => *self
                .pages
                .get((offset / PAGE) as usize)
                .unwrap_or(&Page::Hole),
            None => Page::Hole,
        }
    }

    pub(crate) fn allows(&self, address: u64, access: Access) -> bool {
        match self.page(address) {
            Page::Hole => false,
            Page::ReadOnly => access == Access::Read,
            Page::ReadWrite => true,
        }
    }

    fn range(&self, address: u64, len: usize) -> Range<usize> {
        let start = (address - self.base) as usize;
        start..start + len
    }

    pub(crate) fn peek(&self, address: u64, len: usize) -> &[u8] {
        &self.bytes[self.range(address, len)]
    }

    /// Writes regardless of protection.
    pub(crate) fn poke(&mut self, address: u64, bytes: &[u8]) {
        let range = self.range(address, bytes.len());
        self.bytes[range].copy_from_slice(bytes);
    }

    pub(crate) fn poke_list(&mut self, address: u64, list: &[Descriptor]) {
        for (n, descriptor) in (0..).zip(list) {
            self.poke(address + 64 * n, descriptor.as_bytes());
        }
    }
}

impl fmt::Debug for Pages {
    /// Without the bytes: whoever reads it has a failed case before him.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pages from {:#x}: {:?}", self.base, self.pages)
    }
}

impl Memory for Pages {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let mut done = 0;
        while done < len {
            let at = addr.wrapping_add(done);
            if !self.allows(at, access) {
                break;
            }
            done += PAGE - at % PAGE;
        }
        done.min(len)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        assert_eq!(
            self.accessible(addr, into.len() as u64, Access::Read),
            into.len() as u64
        );
        into.copy_from_slice(self.peek(addr, into.len()));
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        assert_eq!(
            self.accessible(addr, from.len() as u64, Access::Write),
            from.len() as u64
        );
        self.poke(addr, from);
    }
}
