//! Where addresses lie: node, cache, and whether a page is present.

use crate::{NodeId, PAGE_BYTES};

/// Where the bytes of a region are when they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Cache {
    /// In memory only.
    #[default]
    Memory,
    /// In the last-level cache.
    Llc,
}

/// Node and cache of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryLocation {
    /// Memory node.
    pub node: NodeId,
    /// Cached or not.
    pub cache: Cache,
}

/// Handle of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionId(usize);

/// A range of addresses of one kind.
#[derive(Debug, Clone)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub len: u64,
    /// Node and cache.
    pub place: MemoryLocation,
    bytes: Option<Vec<u8>>,
    absent: Option<Vec<bool>>,
}

/// The address space of a modelled machine. Regions lie apart, with holes that fault.
#[derive(Debug, Clone, Default)]
pub struct MemoryMap {
    regions: Vec<Region>,
    next: u64,
}

impl MemoryMap {
    /// An empty address space.
    pub fn new() -> MemoryMap {
        MemoryMap {
            regions: Vec::new(),
            next: 1 << 20,
        }
    }

    /// Adds a region of `len` bytes. With `backed` it holds real bytes, zero at first; without,
    /// reads give zeros and writes vanish, which is enough to measure time.
    pub fn allocate(&mut self, len: u64, place: MemoryLocation, backed: bool) -> RegionId {
        let base = self.next;
        self.next = (base + len).next_multiple_of(PAGE_BYTES) + 16 * PAGE_BYTES;
        self.regions.push(Region {
            base,
            len,
            place,
            bytes: backed.then(|| vec![0; len as usize]),
            absent: None,
        });
        RegionId(self.regions.len() - 1)
    }

    /// A region.
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.0]
    }

    /// Takes all pages of a region away, as after `madvise(MADV_DONTNEED)`.
    pub fn evict(&mut self, id: RegionId) {
        let region = &mut self.regions[id.0];
        region.absent = Some(vec![true; region.len.div_ceil(PAGE_BYTES) as usize]);
    }

    /// Makes the page of `addr` present.
    pub fn touch(&mut self, addr: u64) {
        if let Some(region) = self.find_mut(addr)
            && let Some(absent) = &mut region.absent
        {
            let page = ((addr - region.base) / PAGE_BYTES) as usize;
            absent[page] = false;
        }
    }

    /// Node and cache of `addr`, if it is mapped.
    #[inline]
    pub fn place(&self, addr: u64) -> Option<MemoryLocation> {
        self.find(addr).map(|region| region.place)
    }

    /// Bytes from `addr` on, at most `len`, until the first hole or absent page.
    #[inline]
    pub fn accessible(&self, addr: u64, len: u64) -> u64 {
        let Some(region) = self.find(addr) else {
            return 0;
        };
        let mapped = len.min(region.base + region.len - addr);
        let Some(absent) = &region.absent else {
            return mapped;
        };
        let offset = addr - region.base;
        let end = offset + mapped;
        let mut page = offset / PAGE_BYTES;
        while page * PAGE_BYTES < end {
            if absent[page as usize] {
                return (page * PAGE_BYTES).saturating_sub(offset);
            }
            page += 1;
        }
        mapped
    }

    /// Copies bytes out. The range must be accessible; what is not backed reads as zero.
    pub fn read(&self, addr: u64, into: &mut [u8]) {
        into.fill(0);
        if let Some(region) = self.find(addr)
            && let Some(bytes) = &region.bytes
        {
            let start = (addr - region.base) as usize;
            let end = bytes.len().min(start.saturating_add(into.len()));
            into[..end - start].copy_from_slice(&bytes[start..end]);
        }
    }

    /// Copies bytes in. The range must be accessible; what is not backed is dropped.
    pub fn write(&mut self, addr: u64, from: &[u8]) {
        if let Some(region) = self.find_mut(addr) {
            let start = (addr - region.base) as usize;
            if let Some(bytes) = &mut region.bytes {
                let end = bytes.len().min(start.saturating_add(from.len()));
                bytes[start..end].copy_from_slice(&from[..end - start]);
            }
        }
    }

    #[inline]
    fn index(&self, addr: u64) -> Option<usize> {
        let after = self.regions.partition_point(|region| region.base <= addr);
        let index = after.checked_sub(1)?;
        let region = &self.regions[index];
        (addr - region.base < region.len).then_some(index)
    }

    #[inline]
    fn find(&self, addr: u64) -> Option<&Region> {
        self.index(addr).map(|i| &self.regions[i])
    }

    fn find_mut(&mut self, addr: u64) -> Option<&mut Region> {
        self.index(addr).map(|i| &mut self.regions[i])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: MemoryLocation = MemoryLocation {
        node: NodeId(0),
        cache: Cache::Memory,
    };

    #[test]
    fn written_bytes_are_read_and_unmapped_addresses_fault() {
        let mut map = MemoryMap::new();
        let a = map.allocate(100, PLACE, true);
        let b = map.allocate(5000, PLACE, true);
        let (a, b) = (map.region(a).base, map.region(b).base);
        map.write(b + 10, &[1, 2, 3]);
        let mut out = [9; 5];
        map.read(b + 9, &mut out);
        assert_eq!(out, [0, 1, 2, 3, 0]);
        assert_eq!(map.accessible(a, 1000), 100);
        assert_eq!(map.accessible(a + 100, 1), 0);
        assert_eq!(map.accessible(0, 1), 0);
        assert_eq!(map.accessible(u64::MAX, 2), 0);
        assert_eq!(map.accessible(b + 4999, 9), 1);
    }

    #[test]
    fn an_absent_page_ends_the_access_until_it_is_touched() {
        let mut map = MemoryMap::new();
        let id = map.allocate(3 * PAGE_BYTES, PLACE, false);
        let base = map.region(id).base;
        map.evict(id);
        assert_eq!(map.accessible(base, 10), 0);
        map.touch(base + 5);
        assert_eq!(map.accessible(base + 1, 2 * PAGE_BYTES), PAGE_BYTES - 1);
        map.touch(base + PAGE_BYTES);
        map.touch(base + 2 * PAGE_BYTES);
        assert_eq!(map.accessible(base, 3 * PAGE_BYTES), 3 * PAGE_BYTES);
    }
}
