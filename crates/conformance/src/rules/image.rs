//! Memory in pages, some of which are not there, of one or more address spaces.

use std::fmt;
use std::ops::Range;

use dray_spec::Descriptor;
use zerocopy::IntoBytes;

use dray_device::{Access, AddressSpace, Memory};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// What can be done to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// Nothing: an access faults.
    Hole,
    /// It can be read.
    ReadOnly,
    /// It can be read and written.
    ReadWrite,
}

impl Page {
    /// Whether it can be accessed so.
    pub fn allows(self, access: Access) -> bool {
        match self {
            Page::Hole => false,
            Page::ReadOnly => access == Access::Read,
            Page::ReadWrite => true,
        }
    }
}

/// Pages side by side from `base` on. Outside of them there is nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Pages {
    base: u64,
    pages: Vec<Page>,
    bytes: Vec<u8>,
    others: Vec<(u32, Pages)>,
}

impl Pages {
    /// The bytes count up in a way that repeats late.
    pub fn new(base: u64, pages: Vec<Page>) -> Pages {
        assert_eq!(base % PAGE, 0);
        let size = pages.len() as u64 * PAGE;
        let bytes = (0..size).map(|n| (n ^ n >> 8).wrapping_mul(73) as u8);
        Pages {
            base,
            pages,
            bytes: bytes.collect(),
            others: Vec::new(),
        }
    }

    /// The same beside the memory of another PASID.
    #[must_use]
    pub fn with_other(mut self, pasid: u32, other: Pages) -> Pages {
        self.others.push((pasid, other));
        self
    }

    /// The memory of another PASID.
    pub fn other(&self, pasid: u32) -> Option<&Pages> {
        let found = self.others.iter().find(|(of, _)| *of == pasid);
        found.map(|(_, pages)| pages)
    }

    /// The memory of another PASID.
    pub fn other_mut(&mut self, pasid: u32) -> Option<&mut Pages> {
        let found = self.others.iter_mut().find(|(of, _)| *of == pasid);
        found.map(|(_, pages)| pages)
    }

    /// Number of pages, holes among them.
    pub fn count(&self) -> usize {
        self.pages.len()
    }

    /// First address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// What can be done to the page of an address.
    pub fn page(&self, address: u64) -> Page {
        match address.checked_sub(self.base) {
            Some(offset) => *self
                .pages
                .get((offset / PAGE) as usize)
                .unwrap_or(&Page::Hole),
            None => Page::Hole,
        }
    }

    /// Whether one byte can be accessed.
    pub fn allows(&self, address: u64, access: Access) -> bool {
        self.page(address).allows(access)
    }

    fn range(&self, address: u64, len: usize) -> Range<usize> {
        let start = (address - self.base) as usize;
        start..start + len
    }

    /// Bytes regardless of protection.
    pub fn peek(&self, address: u64, len: usize) -> &[u8] {
        &self.bytes[self.range(address, len)]
    }

    /// Bytes to write, regardless of protection.
    pub fn peek_mut(&mut self, address: u64, len: usize) -> &mut [u8] {
        let range = self.range(address, len);
        &mut self.bytes[range]
    }

    /// Writes regardless of protection.
    pub fn poke(&mut self, address: u64, bytes: &[u8]) {
        self.peek_mut(address, bytes.len()).copy_from_slice(bytes);
    }

    /// The first address at which two memories with the same pages differ.
    pub fn first_difference(&self, other: &Pages) -> Option<u64> {
        let mut pairs = self.bytes.iter().zip(&other.bytes);
        let at = pairs.position(|(a, b)| a != b)?;
        Some(self.base + at as u64)
    }

    /// Writes descriptors side by side.
    pub fn poke_list(&mut self, address: u64, list: &[Descriptor]) {
        for (n, descriptor) in (0..).zip(list) {
            self.poke(address + 64 * n, descriptor.as_bytes());
        }
    }
}

impl fmt::Debug for Pages {
    /// Without the bytes: its reader looks at a failed case.
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

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        let pages = self.other_mut(space.pasid?)?;
        Some(pages)
    }
}
