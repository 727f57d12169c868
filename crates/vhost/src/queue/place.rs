//! Which buffers of the driver a packet goes into (virtio 1.3, 5.1.6.4).

use std::ptr::NonNull;

use crate::memory::{self, MemoryMap};
use crate::net::{HEADER_BYTES, Header};
use crate::ring::{Ahead, Burst, Direction, Ring, RingFault, Segment, Used};

/// What became of the search for a packet's buffers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// It goes into the buffers `[from, to)` of the burst.
    In { from: usize, to: usize },
    /// There is no buffer now.
    None,
    /// No buffer of this size will take it.
    Small,
}

/// Finds buffers for one packet after the other. Buffers that cannot be used are passed over; they
/// are given back with length 0.
pub(super) struct Placer<'a> {
    pub(super) ring: &'a mut Ring,
    pub(super) memory: &'a MemoryMap,
    pub(super) burst: &'a mut Burst,
    /// The first buffer that is not yet taken.
    pub(super) next: usize,
    pub(super) mergeable: bool,
    pub(super) header_bytes: u32,
}

impl Placer<'_> {
    /// The next buffer, if it has one segment and `needed` bytes fit: where it lies, and what to
    /// give back.
    #[inline]
    pub(super) fn place_whole(&mut self, needed: usize) -> Option<(NonNull<u8>, Used)> {
        let buffer = self.burst.buffers.get(self.next)?;
        // One with a fault has no segments.
        if buffer.end - buffer.first != 1 || (buffer.bytes as usize) < needed {
            return None;
        }
        let segment = self.burst.segments.get(buffer.first as usize)?;
        self.next += 1;
        Some((segment.ptr, buffer.used(needed as u32)))
    }

    /// The buffers for a packet of `len` bytes. `skipped` is called with each buffer passed over.
    #[inline]
    pub(super) fn place(
        &mut self,
        len: usize,
        mut skipped: impl FnMut(Used),
    ) -> Result<Placed, RingFault> {
        let needed = len as u64 + u64::from(self.header_bytes);
        loop {
            if !self.has(self.next)? {
                return Ok(Placed::None);
            }
            let buffer = self.burst.buffers[self.next];
            if buffer.fault.is_some() || buffer.bytes <= self.header_bytes {
                skipped(buffer.used(0));
                self.next += 1;
                continue;
            }
            if u64::from(buffer.bytes) >= needed {
                let from = self.next;
                self.next += 1;
                return Ok(Placed::In {
                    from,
                    to: self.next,
                });
            }
            if !self.mergeable {
                return Ok(Placed::Small);
            }
            match self.merge(needed)? {
                Merged::To(to) => {
                    let from = self.next;
                    self.next = to;
                    return Ok(Placed::In { from, to });
                }
                Merged::Short => return Ok(Placed::None),
                Merged::Full => return Ok(Placed::Small),
                Merged::Fault(at) => {
                    for buffer in &self.burst.buffers[self.next..=at] {
                        skipped(buffer.used(0));
                    }
                    self.next = at + 1;
                }
            }
        }
    }

    /// Whether there is a buffer at this place of the burst, perhaps fetched now.
    #[inline]
    fn has(&mut self, at: usize) -> Result<bool, RingFault> {
        if at < self.burst.buffers.len() {
            return Ok(true);
        }
        let found = self
            .ring
            .fetch(self.memory, Direction::ToGuest, 1, self.burst)?;
        Ok(found > 0)
    }

    fn merge(&mut self, needed: u64) -> Result<Merged, RingFault> {
        let (mut at, mut bytes) = (self.next, 0);
        while bytes < needed {
            if at - self.next >= self.ring.size() as usize {
                return Ok(Merged::Full);
            }
            if !self.has(at)? {
                // A burst that has taken nothing before takes no more of it the next time either.
                let full = self.burst.spent && self.next == 0;
                return Ok(if full { Merged::Full } else { Merged::Short });
            }
            let buffer = &self.burst.buffers[at];
            if buffer.fault.is_some() || buffer.bytes == 0 {
                return Ok(Merged::Fault(at));
            }
            bytes += u64::from(buffer.bytes);
            at += 1;
        }
        Ok(Merged::To(at))
    }

    /// Gives the buffers back that were fetched and not taken.
    pub(super) fn finish(self) {
        let rest = self.burst.buffers.len() - self.next;
        self.ring.unfetch(self.burst, rest);
    }
}

enum Merged {
    To(usize),
    Short,
    Full,
    Fault(usize),
}

/// Writes a header over the beginning of the segments, and calls `copy` with (destination, offset in
/// the packet, length) for each part of the packet's data. Room has been checked.
#[inline]
pub(super) fn scatter(
    burst: &Burst,
    (from, to): (usize, usize),
    (header, header_bytes): (&Header, usize),
    len: usize,
    mut copy: impl FnMut(NonNull<u8>, usize, usize),
) {
    let first = &burst.buffers[from];
    let segment = burst.segments[first.first as usize];
    if to - from == 1 && segment.len as usize >= header_bytes + len {
        // SAFETY: the segment is mapped, and has room for the header and the packet.
        unsafe { write_header(segment.ptr, header, header_bytes) };
        // SAFETY: as above.
        copy(unsafe { segment.ptr.add(header_bytes) }, 0, len);
        return;
    }
    let header = header.to_bytes();
    let (mut header, mut done) = (&header[..header_bytes], 0);
    for buffer in &burst.buffers[from..to] {
        for segment in burst.segments_of(buffer) {
            let (mut ptr, mut room) = (segment.ptr, segment.len as usize);
            let part = header.len().min(room);
            // SAFETY: the segment is mapped, and longer than `part`; it is no memory of ours.
            unsafe { memory::copy(NonNull::from(&header[..part]).cast(), ptr, part) };
            header = &header[part..];
            // SAFETY: `part` is at most the segment's length.
            ptr = unsafe { ptr.add(part) };
            room = (room - part).min(len - done);
            if room > 0 {
                copy(ptr, done, room);
                done += room;
            }
        }
    }
    debug_assert_eq!(done, len);
}

/// Writes the first `len` bytes of a header, 10 or 12, to a guest's memory.
///
/// # Safety
/// `len` bytes are mapped there.
#[inline]
pub(super) unsafe fn write_header(to: NonNull<u8>, header: &Header, len: usize) {
    let (low, high) = header.to_words();
    // SAFETY: the caller's promise.
    unsafe { memory::write(to, low) };
    // SAFETY: as above.
    let rest = unsafe { to.add(size_of_val(&low)) };
    match len {
        // SAFETY: as above.
        HEADER_BYTES => unsafe { memory::write(rest, high) },
        // SAFETY: as above.
        _ => unsafe { memory::write(rest, high as u16) },
    }
}

/// Reads a header from the beginning of the segments, which have at least `len` bytes.
#[inline]
pub(super) fn read_header(segments: &[Segment], len: usize) -> [u8; HEADER_BYTES] {
    match segments.first() {
        Some(first) if len == HEADER_BYTES && first.len as usize >= HEADER_BYTES => {
            // SAFETY: so many bytes are mapped there.
            unsafe { memory::read(first.ptr) }
        }
        _ => read_scattered_header(segments, len),
    }
}

#[cold]
fn read_scattered_header(segments: &[Segment], len: usize) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let mut done = 0;
    for segment in segments {
        let part = (len - done).min(segment.len as usize);
        let to = NonNull::from(&mut header[done..]).cast();
        // SAFETY: `part` bytes are mapped; the header has room for all of them.
        unsafe { memory::copy(segment.ptr, to, part) };
        done += part;
        if done == len {
            break;
        }
    }
    header
}

/// Calls `copy` with (source, offset in the packet, length) for each part of the packet's data: what
/// follows the first `skip` bytes of the segments.
#[inline]
pub(super) fn gather(
    segments: &[Segment],
    mut skip: usize,
    mut copy: impl FnMut(NonNull<u8>, usize, usize),
) {
    if let [one] = segments {
        // SAFETY: the packet is longer than `skip`, and this is all of it.
        copy(unsafe { one.ptr.add(skip) }, 0, one.len as usize - skip);
        return;
    }
    let mut done = 0;
    for segment in segments {
        let len = segment.len as usize;
        if skip >= len {
            skip -= len;
            continue;
        }
        // SAFETY: `skip` is less than the segment's length.
        let ptr = unsafe { segment.ptr.add(skip) };
        copy(ptr, done, len - skip);
        done += len - skip;
        skip = 0;
    }
}

/// Brings the beginnings of the first buffers of a burst into the cache. What works on a buffer does it
/// for a later one, see [`prefetch_ahead`].
#[inline]
pub(super) fn prefetch_first(burst: &Burst, ahead: &Ahead) {
    for at in 0..ahead.buffers {
        prefetch(burst, at, ahead);
    }
}

/// Brings the beginning of the buffer into the cache that comes so much later than the one at `at`.
#[inline]
pub(super) fn prefetch_ahead(burst: &Burst, at: usize, ahead: &Ahead) {
    prefetch(burst, at + ahead.buffers, ahead);
}

#[inline]
fn prefetch(burst: &Burst, at: usize, ahead: &Ahead) {
    if let Some(buffer) = burst.buffers.get(at)
        && let Some(segment) = burst.segments.get(buffer.first as usize)
    {
        ahead.prefetch(segment.ptr, segment.len);
    }
}
