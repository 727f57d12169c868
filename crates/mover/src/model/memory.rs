//! The modelled machine's memory: mapped regions, and each channel's own rings.
//!
//! Completion records and descriptor lists live at addresses of their own, far above all regions,
//! so that the way to them is an index and not a search.

use dray_device::{Access, Memory};
use dray_platform::MemoryMap;

use super::channel::ChannelId;

const RECORDS: u64 = 1 << 60;
const LISTS: u64 = 1 << 61;
const CHANNEL_SHIFT: u32 = 40;

/// Address of record `index` of a channel.
pub(crate) fn record_address(channel: ChannelId, index: u32) -> u64 {
    (RECORDS | (u64::from(channel.0) << CHANNEL_SHIFT)) + u64::from(index) * 32
}

/// Channel and index of a record's address.
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

/// Mapped regions as the device accesses them.
pub(crate) struct DeviceView<'a>(pub(crate) &'a mut MemoryMap);

impl Memory for DeviceView<'_> {
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
