//! Memory of this process for descriptors: pages at the addresses of the table of rules, and areas of any address.

use std::ptr::{self, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicU8, Ordering};

use dray_conformance::rules::{PAGE, Page, Pages};
use dray_device::{Access, Translation};
use dray_spec::CompletionRecord;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use crate::AttestError;

/// Mapped memory, unmapped when dropped. Only a device and this value's owner use it.
#[derive(Debug)]
pub(crate) struct Area {
    base: u64,
    bytes: u64,
}

impl Area {
    /// Zeroed pages that are there, readable and writable.
    pub(crate) fn new(bytes: u64) -> Result<Area, AttestError> {
        let bytes = bytes.next_multiple_of(PAGE);
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes as usize, access, flags) };
        let start = start.map_err(|error| AttestError::Memory {
            source: error.into(),
        })?;
        let base = start.expose_provenance() as u64;
        Ok(Area { base, bytes })
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    fn pointer(&self, address: u64, bytes: usize) -> *mut u8 {
        let end = address.checked_add(bytes as u64);
        let inside = address >= self.base && end.is_some_and(|end| end <= self.base + self.bytes);
        assert!(inside, "{address:#x} is not in the area");
        with_exposed_provenance_mut(address as usize)
    }

    pub(crate) fn put(&self, address: u64, bytes: &[u8]) {
        let to = self.pointer(address, bytes.len());
        // SAFETY: the area has these bytes, and only its owner and the device use them; the slice is elsewhere.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    pub(crate) fn fill(&self, address: u64, bytes: u64, value: u8) {
        let to = self.pointer(address, bytes as usize);
        // SAFETY: the area has these bytes, and only its owner and the device use them.
        unsafe { ptr::write_bytes(to, value, bytes as usize) };
    }

    pub(crate) fn get(&self, address: u64, bytes: u64) -> Vec<u8> {
        let mut found = vec![0; bytes as usize];
        let from = self.pointer(address, bytes as usize);
        // SAFETY: the area has these bytes; the vector is elsewhere.
        unsafe { ptr::copy_nonoverlapping(from, found.as_mut_ptr(), found.len()) };
        found
    }

    /// One byte that the device may write at the same time.
    pub(crate) fn byte(&self, address: u64) -> &AtomicU8 {
        let byte = self.pointer(address, 1);
        // SAFETY: the area has this byte as long as it is borrowed, and it is read as an atomic.
        unsafe { AtomicU8::from_ptr(byte) }
    }

    /// The record at an address; its status is acquired before the rest is read.
    pub(crate) fn record(&self, address: u64) -> CompletionRecord {
        let status = self.byte(address).load(Ordering::Acquire);
        let bytes = self.get(address, 32);
        let mut record: CompletionRecord =
            zerocopy::FromBytes::read_from_bytes(&bytes[..]).expect("a record has 32 bytes");
        record.status = status;
        record
    }

    pub(crate) fn range(&self) -> (u64, u64) {
        (self.base, self.base + self.bytes)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let start = with_exposed_provenance_mut(self.base as usize);
        // SAFETY: this value has mapped it, and nothing borrows of it.
        let unmapped = unsafe { rustix::mm::munmap(start, self.bytes as usize) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// The pages of the table of rules, at its addresses.
#[derive(Debug)]
pub(crate) struct Ground {
    area: Area,
    pages: Vec<Page>,
}

impl Ground {
    /// Pages with these protections; holes cannot be accessed.
    pub(crate) fn new(like: &Pages) -> Result<Ground, AttestError> {
        let pages: Vec<Page> = pages(like).collect();
        let bytes = pages.len() as u64 * PAGE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        let at = with_exposed_provenance_mut(like.base() as usize);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the mapping replaces none: where there is one, the kernel refuses.
        let start = unsafe { rustix::mm::mmap_anonymous(at, bytes as usize, access, flags) };
        let start = start.map_err(|error| AttestError::Ground {
            address: like.base(),
            source: error.into(),
        })?;
        let base = start.expose_provenance() as u64;
        let ground = Ground {
            area: Area { base, bytes },
            pages,
        };
        if base != like.base() {
            // A kernel before 4.17 takes the address as a hint.
            return Err(AttestError::Ground {
                address: like.base(),
                source: std::io::ErrorKind::AddrInUse.into(),
            });
        }
        ground.area.put(base, like.peek(base, bytes as usize));
        for (n, page) in (0..).zip(&ground.pages) {
            let access = match page {
                Page::Hole => MprotectFlags::empty(),
                Page::ReadOnly => MprotectFlags::READ,
                Page::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
            };
            let page = with_exposed_provenance_mut((base + n * PAGE) as usize);
            // SAFETY: a page of the mapping that was just made; nothing borrows of it.
            let protected = unsafe { rustix::mm::mprotect(page, PAGE as usize, access) };
            protected.map_err(|error| AttestError::Memory {
                source: error.into(),
            })?;
        }
        Ok(ground)
    }

    /// Writes the pages that can be written as they are to be.
    pub(crate) fn load(&self, from: &Pages) {
        for address in self.addresses(Page::ReadWrite) {
            self.area.put(address, from.peek(address, PAGE as usize));
        }
    }

    /// Reads the pages that are there.
    pub(crate) fn gather(&self, into: &mut Pages) {
        for kind in [Page::ReadWrite, Page::ReadOnly] {
            for address in self.addresses(kind) {
                into.poke(address, &self.area.get(address, PAGE));
            }
        }
    }

    fn addresses(&self, kind: Page) -> impl Iterator<Item = u64> + '_ {
        let pages = (0..)
            .zip(&self.pages)
            .filter(move |(_, page)| **page == kind);
        pages.map(|(n, _)| self.area.base + n * PAGE)
    }

    pub(crate) fn area(&self) -> &Area {
        &self.area
    }

    /// What a device in this process may access: these pages as they are protected, and these areas.
    pub(crate) fn space(&self, areas: &[&Area]) -> Space {
        let pages = (0..).zip(&self.pages);
        let pages = pages.map(|(n, page)| {
            let start = self.area.base + n * PAGE;
            (start, start + PAGE, *page)
        });
        let areas = areas.iter().map(|area| {
            let (start, end) = area.range();
            (start, end, Page::ReadWrite)
        });
        Space {
            ranges: pages.chain(areas).collect(),
        }
    }
}

/// The pages of a memory, to behind the last that is there.
fn pages(of: &Pages) -> impl Iterator<Item = Page> + '_ {
    (0..of.count() as u64).map(|n| of.page(of.base() + n * PAGE))
}

/// What a device in this process may access.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    ranges: Vec<(u64, u64, Page)>,
}

impl Translation for Space {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let mut done = 0;
        while done < len {
            let Some(at) = addr.checked_add(done) else {
                break;
            };
            let found = self
                .ranges
                .iter()
                .find(|(start, end, page)| page.allows(access) && (*start..*end).contains(&at));
            match found {
                Some((_, end, _)) => done = end - addr,
                None => break,
            }
        }
        done.min(len)
    }
}
