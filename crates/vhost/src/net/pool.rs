//! Packets for reuse.

use super::{Header, MAX_PACKET_BYTES, Packet};

/// Room of a packet of usual size, in bytes. With the line before it, it takes an odd number of lines:
/// buffers that lie next to each other do not share cache sets.
const SMALL_BYTES: usize = 2048;
/// Packets of usual size that are kept.
const MAX_SMALL: usize = 4096;
/// Long packets that are kept.
const MAX_LARGE: usize = 64;
/// Long packets to begin with: two bursts of one each. The kernel makes the pages of a new one at its first use,
/// 33 for 128 KiB, while other ports wait.
const FIRST_LARGE: usize = 2;

/// Packets for reuse, the one used last first: its buffer is in the cache.
#[derive(Debug, Default)]
pub struct Pool {
    small: Vec<Packet>,
    large: Vec<Packet>,
}

impl Pool {
    /// With `count` packets of usual size and two of the longest to begin with.
    pub fn new(count: usize) -> Pool {
        let touched = || {
            let mut packet = Packet::with_capacity(MAX_PACKET_BYTES);
            packet.set_len(MAX_PACKET_BYTES);
            packet.bytes_mut().fill(0);
            packet
        };
        Pool {
            small: (0..count)
                .map(|_| Packet::with_capacity(SMALL_BYTES))
                .collect(),
            large: (0..FIRST_LARGE).map(|_| touched()).collect(),
        }
    }

    /// A packet of `len` bytes, at most [`MAX_PACKET_BYTES`](super::MAX_PACKET_BYTES). Its bytes are
    /// what an earlier packet left: the caller overwrites all of them.
    #[inline(always)]
    pub fn take(&mut self, len: usize) -> Packet {
        let mut packet = match len <= SMALL_BYTES {
            true => match self.small.pop() {
                Some(packet) => packet,
                None => Packet::with_capacity(SMALL_BYTES),
            },
            false => self.take_large(len),
        };
        packet.set_len(len);
        packet.header = Header::NONE;
        packet
    }

    #[cold]
    fn take_large(&mut self, len: usize) -> Packet {
        match self.large.iter().rposition(|p| p.capacity() >= len) {
            Some(at) => self.large.swap_remove(at),
            None => Packet::with_capacity(len.next_multiple_of(16 << 10)),
        }
    }

    /// Takes a packet back.
    #[inline]
    pub fn put(&mut self, packet: Packet) {
        if packet.capacity() == SMALL_BYTES {
            if self.small.len() < MAX_SMALL {
                self.small.push(packet);
            }
        } else if packet.capacity() > SMALL_BYTES && self.large.len() < MAX_LARGE {
            self.large.push(packet);
        }
    }

    /// A packet with the same bytes and header.
    pub fn clone_packet(&mut self, packet: &Packet) -> Packet {
        let mut copy = self.take(packet.len());
        copy.bytes_mut().copy_from_slice(packet.bytes());
        copy.header = packet.header;
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_a_bounded_number_of_packets() {
        let mut pool = Pool::new(2);
        let small: Vec<Packet> = (0..MAX_SMALL + 9).map(|_| pool.take(64)).collect();
        small.into_iter().for_each(|packet| pool.put(packet));
        assert_eq!(pool.small.len(), MAX_SMALL);
        let large: Vec<Packet> = (0..MAX_LARGE + 9).map(|_| pool.take(9000)).collect();
        large.into_iter().for_each(|packet| pool.put(packet));
        assert_eq!(pool.large.len(), MAX_LARGE);
    }
}
