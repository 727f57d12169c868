//! Packets out of nothing.

use crate::net::{Packet, Pool};

/// Bytes of a generated packet, without its frame check sequence, as testpmd's.
const BYTES: usize = 64;

/// UDP packets that differ in a sequence number.
#[derive(Debug)]
pub(super) struct Generator {
    frame: [u8; BYTES],
    sequence: u32,
}

impl Generator {
    pub(super) fn new() -> Generator {
        let mut frame = [0u8; BYTES];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        // IPv4, UDP, from 198.18.0.1 to 198.18.0.2 (RFC 2544), to the discard port.
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[16..18].copy_from_slice(&50u16.to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..34].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
        frame[34..40].copy_from_slice(&[0, 9, 0, 9, 0, 30]);
        let sum = crate::net::internet_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        Generator { frame, sequence: 0 }
    }

    pub(super) fn fill(&mut self, pool: &mut Pool, out: &mut Vec<Packet>, count: usize) {
        for _ in 0..count {
            let mut packet = pool.take(BYTES);
            self.frame[42..46].copy_from_slice(&self.sequence.to_be_bytes());
            self.sequence = self.sequence.wrapping_add(1);
            packet.bytes_mut().copy_from_slice(&self.frame);
            out.push(packet);
        }
    }
}
