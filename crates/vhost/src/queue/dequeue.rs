//! From the guest.

use dray_placement::Reason;

use super::place::{gather, prefetch_ahead, prefetch_first, read_header};
use super::taker::{Taker, stage, stage_one};
use super::touch::{FEW, PAGE, Touch};
use super::{DropCause, MAX_BURST, Queue, Running};
use crate::copy::Channel;
use crate::memory;
use crate::net::{self, Header, MAX_PACKET_BYTES, Packet, Pool};
use crate::ring::{Ahead, Buffer, Direction, Segment};

/// Calls in a row that may leave the first buffer with the driver, for its pages were not all touched.
const MOST_IN_VAIN: u32 = 64;

impl Queue {
    /// Copies up to `max` packets of the guest, appends them to `out`, and gives their buffers back.
    /// Returns how many they are. 0 while packets of the asynchronous calls are in flight.
    pub fn dequeue(&mut self, pool: &mut Pool, out: &mut Vec<Packet>, max: usize) -> usize {
        if max == 0 || !self.slots.is_empty() || !self.may_fetch() {
            return 0;
        }
        let ahead = Ahead::copied(Direction::FromGuest, self.usual_bytes);
        if !self.fetch(max, &ahead) {
            return 0;
        }
        let before = out.len();
        let discard = !self.enabled;
        let Queue {
            burst,
            used,
            stats,
            header_bytes,
            features,
            ..
        } = self;
        used.clear();
        for (at, buffer) in burst.buffers.iter().enumerate() {
            prefetch_ahead(burst, at, &ahead);
            used.push(buffer.used(0));
            let segments = burst.segments_of(buffer);
            match inspect(buffer, segments, *header_bytes, *features, discard) {
                Err(cause) => stats.count_drops(cause, 1),
                Ok((len, header)) => {
                    let mut packet = pool.take(len);
                    packet.header = header;
                    let target = packet.data();
                    gather(segments, *header_bytes, |from, at, part| {
                        // SAFETY: the segments are mapped, and the packet's buffer has room for all of them.
                        let to = unsafe { target.add(at) };
                        // SAFETY: as above; they are different memory.
                        unsafe { memory::copy(from, to, part) };
                    });
                    stats.count_packet(len);
                    stats.count_by_core(Reason::Chosen, 1);
                    out.push(packet);
                }
            }
        }
        self.usual_bytes = burst.buffers.last().map_or(0, |last| last.bytes as usize);
        if !self.memory_is_sound() {
            out.truncate(before);
        }
        self.publish();
        out.len() - before
    }

    /// Starts the copies of up to `max` new packets of the guest, and appends earlier ones to `out`
    /// that are done, in ring order; their buffers are given back. Returns how many they are.
    pub fn try_dequeue(
        &mut self,
        channels: &mut [Channel],
        pool: &mut Pool,
        out: &mut Vec<Packet>,
        max: usize,
    ) -> usize {
        self.poll_channels(channels);
        let ahead = Ahead::headers(Direction::FromGuest);
        if max > 0 && self.may_fetch() && self.fetch(max, &ahead) {
            self.submit_fetched(channels, pool, &ahead);
        }
        self.leave(out)
    }

    fn submit_fetched(&mut self, channels: &mut [Channel], pool: &mut Pool, ahead: &Ahead) {
        let discard = !self.enabled;
        let place = self.choose(channels);
        let mut taker = Taker::begin(place, channels, self.copy_threshold);
        let Queue {
            burst,
            stats,
            slots,
            header_bytes,
            features,
            ..
        } = self;
        for (at, buffer) in burst.buffers.iter().enumerate() {
            prefetch_ahead(burst, at, ahead);
            let segments = burst.segments_of(buffer);
            let used = buffer.used(0);
            let (len, header) = match inspect(buffer, segments, *header_bytes, *features, discard) {
                Ok(found) => found,
                Err(cause) => {
                    stats.count_drops(cause, 1);
                    slots.open(None, used, &[]);
                    continue;
                }
            };
            let mut packet = pool.take(len);
            packet.header = header;
            let target = packet.data();
            match (taker.takes(len, segments.len(), slots), segments) {
                (None, _) => gather(segments, *header_bytes, |from, at, part| {
                    // SAFETY: the segments are mapped, and the packet's buffer has room for all of them.
                    let to = unsafe { target.add(at) };
                    // SAFETY: as above; they are different memory.
                    unsafe { memory::copy(from, to, part) };
                }),
                (Some((channel, member)), [one]) => {
                    // SAFETY: the segment is longer than the header.
                    let from = unsafe { one.ptr.add(*header_bytes) };
                    // SAFETY: the slot holds the packet and the queue the map until the copy's end
                    // has been polled; see `detach` for what else may be.
                    unsafe { stage_one(channel, member, slots, (from, target, len)) };
                    slots.open_one(packet, from, used);
                    continue;
                }
                (Some((channel, member)), _) => {
                    gather(segments, *header_bytes, |from, at, part| {
                        // SAFETY: the packet's buffer has room for all segments.
                        let to = unsafe { target.add(at) };
                        // SAFETY: as above.
                        unsafe { stage(channel, member, slots, (from, to, part)) };
                    });
                }
            }
            slots.open(Some(packet), used, &[]);
        }
        taker.submit(stats);
    }

    /// Fetches a burst, and brings the beginnings of its first buffers into the cache. False if there
    /// is nothing.
    #[inline]
    fn fetch(&mut self, max: usize, ahead: &Ahead) -> bool {
        let Queue {
            running: Some(Running { ring, memory }),
            burst,
            ..
        } = self
        else {
            return false;
        };
        burst.clear();
        let max = max.min(MAX_BURST);
        let result = ring.fetch(memory, Direction::FromGuest, max, burst);
        prefetch_first(burst, ahead);
        match result {
            Ok(found) if found == max && max > 1 => ring.look_ahead(memory, ahead, max),
            Ok(_) => {}
            Err(fault) => self.break_ring(fault),
        }
        self.touch();
        !self.burst.buffers.is_empty()
    }

    /// Touches the pages of the burst. What there is no time for stays with the driver until the next call.
    #[inline]
    fn touch(&mut self) {
        let Queue {
            running: Some(Running { ring, .. }),
            burst,
            header_bytes,
            in_vain,
            ..
        } = self
        else {
            return;
        };
        if burst.parts(PAGE) <= FEW {
            return;
        }
        let mut touch = Touch::new();
        // More is dropped without a look.
        let longest = *header_bytes + MAX_PACKET_BYTES;
        let touched = |buffer: &Buffer| {
            let bytes = buffer.bytes as usize;
            bytes > longest || touch.all(burst.segments_of(buffer), bytes)
        };
        let left = burst.buffers.iter().map(touched).position(|all| !all);
        let Some(first) = left else {
            *in_vain = 0;
            return;
        };
        *in_vain = if first == 0 { *in_vain + 1 } else { 0 };
        if *in_vain > MOST_IN_VAIN {
            // Where the clock alone takes the time, or a driver gives pages back, a burst is taken all the same, once.
            *in_vain = 0;
            return;
        }
        ring.unfetch(burst, burst.buffers.len() - first);
        burst.spent = true;
    }
}

/// Length and header of the packet in a buffer, or why it is dropped.
#[inline]
fn inspect(
    buffer: &Buffer,
    segments: &[Segment],
    header_bytes: usize,
    features: u64,
    discard: bool,
) -> Result<(usize, Header), DropCause> {
    if buffer.fault.is_some() {
        return Err(DropCause::Descriptor);
    }
    if discard {
        return Err(DropCause::Disabled);
    }
    let bytes = buffer.bytes as usize;
    if bytes <= header_bytes || bytes - header_bytes > MAX_PACKET_BYTES {
        return Err(DropCause::Length);
    }
    let len = bytes - header_bytes;
    let mut header = Header::from_bytes(read_header(segments, header_bytes));
    header.num_buffers = 0;
    if !header.has_offload() {
        return Ok((len, Header::default()));
    }
    match net::is_valid(&header, len, features) {
        true => Ok((len, header)),
        false => Err(DropCause::Header),
    }
}
