//! The modelled machine's memory: mapped regions, and each channel's own rings.
//!
//! Completion records and descriptor lists live at addresses of their own, far above all regions,
//! so that the way to them is an index and not a search.

use std::ops::{Deref, Range};

use dray_device::Access;
use dray_platform::{MemoryLocation, MemoryMap, RegionId};

use crate::channel::ChannelId;

const RECORDS: u64 = 1 << 60;
const LISTS: u64 = 1 << 61;
const CHANNEL_SHIFT: u32 = 40;

/// Address of record `index` of a channel.
#[inline]
pub(crate) fn record_address(channel: ChannelId, index: u32) -> u64 {
    (RECORDS | (u64::from(channel.0) << CHANNEL_SHIFT)) + u64::from(index) * 32
}

/// Channel and index of a record's address.
#[inline]
pub(crate) fn record_at(address: u64) -> Option<(ChannelId, u32)> {
    (address & RECORDS != 0).then(|| {
        let channel = (address & !RECORDS) >> CHANNEL_SHIFT;
        let offset = address & ((1 << CHANNEL_SHIFT) - 1);
        (ChannelId(channel as u32), (offset / 32) as u32)
    })
}

/// Address of the descriptor list that starts at entry `index` of a channel's ring.
pub(crate) fn list_address(channel: ChannelId, index: u32) -> u64 {
    (LISTS | (u64::from(channel.0) << CHANNEL_SHIFT)) + u64::from(index) * 64
}

/// Channel and entry of a list's address.
pub(crate) fn list_at(address: u64) -> Option<(ChannelId, u32)> {
    (address & LISTS != 0).then(|| {
        let channel = (address & !LISTS) >> CHANNEL_SHIFT;
        let offset = address & ((1 << CHANNEL_SHIFT) - 1);
        (ChannelId(channel as u32), (offset / 64) as u32)
    })
}

/// The address space of a modelled machine.
#[derive(Debug)]
pub struct Memory {
    map: MemoryMap,
    /// Addresses of the regions, in order, and whether all their pages have always been there.
    regions: Vec<(Range<u64>, bool)>,
    evictions: u64,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory {
            map: MemoryMap::new(),
            regions: Vec::new(),
            evictions: 0,
        }
    }

    /// Adds a region of `len` bytes. With `backed` it holds real bytes, zero at first; without,
    /// reads give zeros and writes vanish, which is enough to measure time.
    pub fn allocate(&mut self, len: u64, place: MemoryLocation, backed: bool) -> RegionId {
        let id = self.map.allocate(len, place, backed);
        let base = self.map.region(id).base;
        self.regions.push((base..base + len, true));
        id
    }

    /// Takes all pages of a region away, as after `madvise(MADV_DONTNEED)`.
    pub fn evict(&mut self, id: RegionId) {
        let base = self.map.region(id).base;
        if let Ok(index) = self.regions.binary_search_by_key(&base, |r| r.0.start) {
            self.regions[index].1 = false;
        }
        self.evictions += 1;
        self.map.evict(id);
    }

    /// Copies bytes in, as far as the region goes.
    pub fn write(&mut self, addr: u64, from: &[u8]) {
        self.map.write(addr, from);
    }

    /// Makes the page of `addr` present.
    pub(crate) fn touch(&mut self, addr: u64) {
        self.map.touch(addr);
    }

    /// Addresses about `addr` that are of one kind, and present until the next eviction.
    pub(crate) fn around(&self, addr: u64) -> Range<u64> {
        let after = self.regions.partition_point(|r| r.0.start <= addr);
        match after.checked_sub(1).map(|index| &self.regions[index]) {
            Some((range, true)) if range.contains(&addr) => range.clone(),
            _ => 0..0,
        }
    }

    /// How often pages were taken away.
    #[inline]
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions
    }
}

impl Deref for Memory {
    type Target = MemoryMap;

    fn deref(&self) -> &MemoryMap {
        &self.map
    }
}

/// Mapped regions as the device accesses them.
pub(crate) struct DeviceView<'a>(pub(crate) &'a mut Memory);

impl dray_device::Memory for DeviceView<'_> {
    fn accessible(&self, addr: u64, len: u64, _: Access) -> u64 {
        self.0.accessible(addr, len)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.0.read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        self.0.write(addr, from);
    }
}
