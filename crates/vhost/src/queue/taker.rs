//! The choice of what copies the packets of a burst: a channel, or the core.

use std::ptr::NonNull;

use dray_placement::{Reason, Threshold};

use super::QueueStats;
use super::attach::Place;
use super::slots::Slots;
use crate::copy::Channel;

/// The channel of one burst, if the queue has one.
pub(super) struct Taker<'a> {
    channel: Option<(&'a mut Channel, u32)>,
    /// Copies that it still takes.
    room: usize,
    /// Packets below this are copied by the core, in bytes.
    threshold: Threshold,
    packets: u64,
    small: u64,
    core: u64,
    no_room: u64,
}

impl<'a> Taker<'a> {
    #[inline]
    pub(super) fn begin(
        place: Option<Place>,
        channels: &'a mut [Channel],
        threshold: u32,
    ) -> Taker<'a> {
        let mut channel = place.and_then(|p| Some((channels.get_mut(p.channel)?, p.member)));
        let room = channel.as_mut().map_or(0, |(channel, _)| channel.begin());
        Taker {
            channel,
            room,
            threshold: Threshold::bytes(threshold.into()),
            packets: 0,
            small: 0,
            core: 0,
            no_room: 0,
        }
    }

    /// The channel for a packet of `len` bytes in so many parts; none if the core copies it.
    #[inline]
    pub(super) fn takes(
        &mut self,
        len: usize,
        parts: usize,
        slots: &Slots,
    ) -> Option<(&mut Channel, u32)> {
        if self.threshold.reason(len as u64).is_some() {
            self.small += 1;
            return None;
        }
        let Some((channel, member)) = &mut self.channel else {
            self.core += 1;
            return None;
        };
        if self.room.min(slots.room()) < parts {
            self.no_room += 1;
            return None;
        }
        self.room -= parts;
        self.packets += 1;
        Some((channel, *member))
    }

    /// Starts what was staged.
    #[inline]
    pub(super) fn submit(self, stats: &mut QueueStats) {
        if let Some((channel, member)) = self.channel {
            stats.copies_channel += channel.submit(member);
        }
        stats.submitted += self.packets;
        stats.count_by_core(Reason::BelowThreshold, self.small);
        stats.count_by_core(Reason::NoDevice, self.core);
        stats.count_by_core(Reason::QueueFull, self.no_room);
    }
}

/// Stages the only copy of a packet, which the slot that is opened next is for: the caller opens it
/// with [`Slots::open_one`].
///
/// # Safety
/// As [`Channel::stage`].
#[inline]
pub(super) unsafe fn stage_one(
    channel: &mut Channel,
    member: u32,
    slots: &Slots,
    (from, to, len): (NonNull<u8>, NonNull<u8>, usize),
) {
    let copy = (from.as_ptr() as u64, to.as_ptr() as u64, len as u32);
    // SAFETY: the caller's promise is the same.
    unsafe { channel.stage(member, slots.only_copy(), copy) };
}

/// Stages one of several copies of the slot that is opened next.
///
/// # Safety
/// As [`Channel::stage`].
#[inline]
pub(super) unsafe fn stage(
    channel: &mut Channel,
    member: u32,
    slots: &mut Slots,
    (from, to, len): (NonNull<u8>, NonNull<u8>, usize),
) {
    let sequence = slots.stage(from, to, len as u32);
    let copy = (from.as_ptr() as u64, to.as_ptr() as u64, len as u32);
    // SAFETY: the caller's promise is the same.
    unsafe { channel.stage(member, sequence, copy) };
}
