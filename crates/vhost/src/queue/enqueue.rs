//! To the guest.

use dray_placement::Reason;

use super::log::log_buffers;
use super::place::{Placed, Placer, prefetch_ahead, prefetch_first, scatter, write_header};
use super::slots::Slots;
use super::taker::{Taker, stage, stage_one};
use super::touch::Touch;
use super::{DropCause, MAX_BURST, Queue, QueueStats, Running};
use crate::copy::Channel;
use crate::memory::{self, DirtyLog};
use crate::net::{self, Header, Packet};
use crate::protocol::features as f;
use crate::ring::{Ahead, Burst, Direction, RingFault, Used};

impl Queue {
    /// Copies packets into the guest's buffers and gives them to the driver. Returns how many of
    /// them, from the first on, are dealt with: delivered, or dropped because no buffer of the
    /// driver is large enough. 0 while packets of the asynchronous calls are in flight.
    ///
    /// What a sender left to the device must be something that this queue's driver takes: see
    /// [`Adapter`](crate::net::Adapter).
    pub fn enqueue(&mut self, packets: &[Packet]) -> usize {
        if packets.is_empty() || !self.slots.is_empty() || !self.may_fetch() {
            return 0;
        }
        let features = self.features;
        let bytes = self.header_bytes + packets[0].len();
        let ahead = Ahead::copied(Direction::ToGuest, bytes);
        let Some(mut work) = Work::begin(self, packets.len(), ahead) else {
            return 0;
        };
        let (mut dealt, before) = (0, work.stats.packets);
        let long = work.placer.header_bytes as usize;
        for packet in packets.iter().take(MAX_BURST) {
            work.prefetch_ahead();
            let (used, len) = (&mut *work.used, packet.len());
            if let Some((to, element)) = work.placer.place_whole(long + len) {
                // SAFETY: the segment is mapped, and has room for the header and the packet.
                unsafe { write_header(to, &header_of(packet, features, 1), long) };
                // SAFETY: as above.
                let to = unsafe { to.add(long) };
                // SAFETY: as above.
                unsafe { memory::copy(packet.data(), to, len) };
                used.push(element);
                work.stats.count_packet(len);
                work.log_last(long + len);
                dealt += 1;
                continue;
            }
            match work.placer.place(len, |skipped| used.push(skipped)) {
                Ok(Placed::In { from, .. }) if !work.touch(from, long + len) => break,
                Ok(Placed::In { from, to }) => {
                    let header = header_of(packet, features, to - from);
                    let source = packet.data();
                    scatter(
                        work.placer.burst,
                        (from, to),
                        (&header, long),
                        len,
                        |to, at, part| {
                            // SAFETY: the part is within the packet.
                            let from = unsafe { source.add(at) };
                            // SAFETY: as above, and the segment is mapped and has room for it.
                            unsafe { memory::copy(from, to, part) };
                        },
                    );
                    push_used(work.placer.burst, (from, to), long + len, work.used);
                    work.stats.count_packet(len);
                    work.log((from, to), long + len);
                }
                Ok(Placed::Small) => work.stats.count_drops(DropCause::Small, 1),
                Ok(Placed::None) => break,
                Err(fault) => {
                    work.fault = Some(fault);
                    break;
                }
            }
            dealt += 1;
        }
        let copied = work.stats.packets - before;
        work.stats.count_by_core(Reason::Chosen, copied);
        let fault = work.end();
        if let Some(fault) = fault {
            self.break_ring(fault);
        }
        if !self.used.is_empty() {
            self.memory_is_sound();
            self.publish();
        }
        dealt
    }

    /// Finds buffers for packets and starts their copies. Returns how many packets were taken from
    /// the front of the list: they belong to the queue until [`Queue::enqueue_poll`] returns them.
    /// A packet that no buffer of the driver is large enough for is dropped.
    pub fn enqueue_submit(&mut self, channels: &mut [Channel], packets: &mut Vec<Packet>) -> usize {
        if packets.is_empty() || !self.may_fetch() {
            return 0;
        }
        let place = self.choose(channels);
        let mut taker = Taker::begin(place, channels, self.copy_threshold);
        let features = self.features;
        let ahead = Ahead::headers(Direction::ToGuest);
        let Some((mut work, slots)) = Work::begin_async(self, packets.len(), ahead) else {
            return 0;
        };
        let mut dealt = 0;
        let long = work.placer.header_bytes as usize;
        for packet in packets.iter_mut().take(MAX_BURST) {
            work.prefetch_ahead();
            let len = packet.len();
            if let Some((to, used)) = work.placer.place_whole(long + len) {
                // SAFETY: the segment is mapped, and has room for the header and the packet.
                unsafe { write_header(to, &header_of(packet, features, 1), long) };
                // SAFETY: as above.
                let (from, to) = (packet.data(), unsafe { to.add(long) });
                let packet = std::mem::take(packet);
                match taker.takes(len, 1, slots) {
                    None => {
                        // SAFETY: as above.
                        unsafe { memory::copy(from, to, len) };
                        slots.open(Some(packet), used, &[]);
                    }
                    Some((channel, member)) => {
                        // SAFETY: the slot holds the packet and the queue the map until the copy's
                        // end has been polled; see `detach` for what else may be.
                        unsafe { stage_one(channel, member, slots, (from, to, len)) };
                        slots.open_one(packet, to, used);
                    }
                }
                work.log_last(long + len);
                dealt += 1;
                continue;
            }
            let skipped = |used: Used| slots.open(None, used, &[]);
            match work.placer.place(len, skipped) {
                Ok(Placed::In { from, .. }) if !work.touch(from, long + len) => break,
                Ok(Placed::In { from, to }) => {
                    let header = header_of(packet, features, to - from);
                    let source = packet.data();
                    let burst = &*work.placer.burst;
                    let parts = burst.segments_between(from, to);
                    match taker.takes(len, parts, slots) {
                        None => scatter(burst, (from, to), (&header, long), len, |to, at, part| {
                            // SAFETY: the part is within the packet.
                            let from = unsafe { source.add(at) };
                            // SAFETY: as above, and the segment is mapped and has room for it.
                            unsafe { memory::copy(from, to, part) };
                        }),
                        Some((channel, member)) => {
                            scatter(burst, (from, to), (&header, long), len, |to, at, part| {
                                // SAFETY: the part is within the packet.
                                let from = unsafe { source.add(at) };
                                // SAFETY: as above.
                                unsafe { stage(channel, member, slots, (from, to, part)) };
                            });
                        }
                    }
                    work.used.clear();
                    push_used(burst, (from, to), long + len, work.used);
                    let packet = std::mem::take(packet);
                    slots.open(Some(packet), work.used[0], &work.used[1..]);
                    work.log((from, to), long + len);
                }
                Ok(Placed::Small) => {
                    work.stats.count_drops(DropCause::Small, 1);
                    drop(std::mem::take(packet));
                }
                Ok(Placed::None) => break,
                Err(fault) => {
                    work.fault = Some(fault);
                    break;
                }
            }
            dealt += 1;
        }
        taker.submit(work.stats);
        let fault = work.end();
        // Packets without room own nothing.
        packets.drain(..dealt).for_each(std::mem::forget);
        if let Some(fault) = fault {
            self.break_ring(fault);
        }
        dealt
    }

    /// Gives the buffers to the driver whose packets have been copied, in ring order. The packets go
    /// back to the caller. Returns how many they are.
    pub fn enqueue_poll(&mut self, channels: &mut [Channel], out: &mut Vec<Packet>) -> usize {
        if self.slots.is_empty() && !self.is_leaving(channels) {
            return 0;
        }
        self.reap(channels, out)
    }
}

/// What a burst to the guest works on, borrowed from the queue.
struct Work<'a> {
    placer: Placer<'a>,
    touch: Touch,
    ahead: Ahead,
    used: &'a mut Vec<Used>,
    stats: &'a mut QueueStats,
    /// What the core writes is logged at once; what a channel writes, when it has.
    log: Option<&'a DirtyLog>,
    fault: Option<RingFault>,
}

impl<'a> Work<'a> {
    fn begin(queue: &'a mut Queue, packets: usize, ahead: Ahead) -> Option<Work<'a>> {
        Work::begin_async(queue, packets, ahead).map(|(work, _)| work)
    }

    /// Fetches a buffer for each packet.
    #[inline]
    fn begin_async(
        queue: &'a mut Queue,
        packets: usize,
        ahead: Ahead,
    ) -> Option<(Work<'a>, &'a mut Slots)> {
        let mergeable = queue.features & f::MRG_RXBUF != 0;
        let Queue {
            running: Some(Running { ring, memory }),
            burst,
            used,
            stats,
            slots,
            log,
            header_bytes,
            ..
        } = queue
        else {
            return None;
        };
        burst.clear();
        used.clear();
        let count = packets.min(MAX_BURST);
        let fetched = ring.fetch(memory, Direction::ToGuest, count, burst);
        prefetch_first(burst, &ahead);
        if fetched == Ok(count) && count > 1 {
            ring.look_ahead(memory, &ahead, count);
        }
        let work = Work {
            placer: Placer {
                ring,
                memory,
                burst,
                next: 0,
                mergeable,
                header_bytes: *header_bytes as u32,
            },
            touch: Touch::new(),
            ahead,
            used,
            stats,
            log: log.as_deref(),
            fault: fetched.err(),
        };
        Some((work, slots))
    }

    /// Brings a buffer's beginning into the cache before its turn comes.
    #[inline]
    fn prefetch_ahead(&self) {
        prefetch_ahead(self.placer.burst, self.placer.next, &self.ahead);
    }

    /// Touches the first `bytes` of the buffers from `from` on that were taken last. If there is no time for all of it,
    /// they are not taken.
    #[inline]
    fn touch(&mut self, from: usize, bytes: usize) -> bool {
        let burst = &mut *self.placer.burst;
        let (first, last) = (&burst.buffers[from], &burst.buffers[self.placer.next - 1]);
        let segments = &burst.segments[first.first as usize..last.end as usize];
        let all = self.touch.all(segments, bytes);
        if !all {
            burst.spent = true;
            self.placer.next = from;
        }
        all
    }

    /// Logs the buffer that was taken last.
    #[inline]
    fn log_last(&mut self, bytes: usize) {
        let to = self.placer.next;
        self.log((to - 1, to), bytes);
    }

    /// Logs buffers that so many bytes were written to.
    #[inline]
    fn log(&mut self, (from, to): (usize, usize), bytes: usize) {
        if let Some(log) = self.log {
            let Placer { memory, burst, .. } = &self.placer;
            let buffers = &burst.buffers[from..to];
            self.stats.pages_not_logged += log_buffers(log, memory, burst, buffers, bytes as u64);
        }
    }

    fn end(self) -> Option<RingFault> {
        self.placer.finish();
        self.fault
    }
}

/// The header of a packet in so many buffers. What the driver does not take is left out.
#[inline]
fn header_of(packet: &Packet, features: u64, buffers: usize) -> Header {
    let mut header = match net::is_taken(&packet.header, features) {
        true => packet.header,
        false => Header::default(),
    };
    header.num_buffers = buffers as u16;
    header
}

/// The buffers of a packet, with the bytes written to each.
#[inline]
fn push_used(burst: &Burst, (from, to): (usize, usize), mut bytes: usize, used: &mut Vec<Used>) {
    for buffer in &burst.buffers[from..to] {
        let part = bytes.min(buffer.bytes as usize);
        used.push(buffer.used(part as u32));
        bytes -= part;
    }
}
