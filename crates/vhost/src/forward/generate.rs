//! Generated packets.

use crate::net::{Packet, Pool};

/// Bytes of a generated packet, without its frame check sequence, as testpmd's, unless
/// another size is set. Longer ones have zeros behind these.
const BYTES: usize = 64;

/// UDP packets that differ in a sequence number.
#[derive(Debug)]
pub(super) struct Generator {
    frame: [u8; BYTES],
    sequence: u32,
    bytes: usize,
    /// Packets that have never held anything but generated ones.
    pub(super) pool: Pool,
}

impl Default for Generator {
    fn default() -> Generator {
        Generator::new(BYTES)
    }
}

impl Generator {
    /// Of so many bytes: 64 to 9000.
    pub(super) fn new(bytes: usize) -> Generator {
        let bytes = bytes.clamp(BYTES, 9000);
        let mut frame = [0u8; BYTES];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        // IPv4, UDP, from 198.18.0.1 to 198.18.0.2 (RFC 2544), to the discard port.
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[16..18].copy_from_slice(&(bytes as u16 - 14).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..34].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
        frame[34..38].copy_from_slice(&[0, 9, 0, 9]);
        frame[38..40].copy_from_slice(&(bytes as u16 - 34).to_be_bytes());
        let sum = crate::net::internet_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        Generator {
            frame,
            sequence: 0,
            bytes,
            pool: Pool::default(),
        }
    }

    pub(super) fn fill(&mut self, out: &mut Vec<Packet>, count: usize) {
        for _ in 0..count {
            let mut packet = self.pool.take(self.bytes);
            self.frame[42..46].copy_from_slice(&self.sequence.to_be_bytes());
            self.sequence = self.sequence.wrapping_add(1);
            packet.bytes_mut()[..BYTES].copy_from_slice(&self.frame);
            out.push(packet);
        }
    }
}
