//! Files of packets, as testpmd's net_pcap reads and writes them (libpcap, "Savefile format").

use std::fmt;
use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const MAGIC: u32 = 0xa1b2_c3d4;
/// Bytes of a packet that a file keeps.
pub const KEPT_BYTES: usize = 65535;
/// Bytes that testpmd keeps of a packet in several buffers (DPDK 22.11).
const TESTPMD_KEPT_BYTES: usize = 16128;
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Ethernet type of packets of ours: for local experiments.
const TYPE: [u8; 2] = [0x88, 0xb5];

/// A packet as it stands in a file.
#[derive(Clone)]
pub struct Captured {
    /// Its bytes, of which the file may have the first ones only.
    pub len: usize,
    pub bytes: Vec<u8>,
}

impl Captured {
    /// What a file would have of these bytes.
    pub fn of(bytes: &[u8]) -> Captured {
        Captured {
            len: bytes.len(),
            bytes: bytes[..bytes.len().min(KEPT_BYTES)].to_vec(),
        }
    }

    /// Where it begins to differ from what it should be; testpmd keeps the beginning of long packets.
    pub fn difference(&self, expected: &Captured) -> Option<usize> {
        let kept = self.bytes.len();
        let enough = kept >= self.len.min(TESTPMD_KEPT_BYTES);
        if self.len != expected.len || !enough || kept > expected.bytes.len() {
            return Some(kept);
        }
        let mut pairs = self.bytes.iter().zip(&expected.bytes);
        pairs.position(|(a, b)| a != b)
    }

    /// Whether it is one of those that [`packet`] makes.
    pub fn is_ours(&self) -> bool {
        self.bytes.get(12..14) == Some(&TYPE)
    }
}

impl fmt::Debug for Captured {
    /// Not all of a packet that may be long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = &self.bytes[..self.bytes.len().min(48)];
        write!(f, "{} bytes: {start:02x?}", self.len)
    }
}

/// A packet of so many bytes that follow from its number.
pub fn packet(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    ChaCha8Rng::seed_from_u64(number).fill_bytes(&mut bytes);
    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    bytes[12..14].copy_from_slice(&TYPE);
    bytes
}

/// Packets of these sizes, one after the other, again and again.
pub fn packets(count: u64, sizes: &[usize]) -> Vec<Vec<u8>> {
    let sizes = sizes.iter().cycle();
    (0..count)
        .zip(sizes)
        .map(|(n, len)| packet(n, *len))
        .collect()
}

/// Writes a file.
pub fn write(path: &Path, packets: &[Vec<u8>]) {
    let mut file = Vec::new();
    let version = 2u32 | 4 << 16;
    for word in [MAGIC, version, 0, 0, KEPT_BYTES as u32, 1] {
        file.extend(word.to_ne_bytes());
    }
    for bytes in packets {
        for word in [0, 0, bytes.len() as u32, bytes.len() as u32] {
            file.extend(word.to_ne_bytes());
        }
        file.extend(bytes);
    }
    std::fs::write(path, file).expect("a file of packets");
}

/// The whole packets of a file that may still be written.
pub fn read(path: &Path) -> Vec<Captured> {
    let file = std::fs::read(path).unwrap_or_default();
    let mut rest = file.get(FILE_HEADER..).unwrap_or_default();
    let mut packets = Vec::new();
    while let Some((header, after)) = rest.split_at_checked(RECORD_HEADER) {
        let word = |at: usize| {
            let word: [u8; 4] = header[at..at + 4].try_into().expect("4 bytes");
            u32::from_ne_bytes(word) as usize
        };
        let Some((bytes, after)) = after.split_at_checked(word(8)) else {
            break;
        };
        packets.push(Captured {
            len: word(12),
            bytes: bytes.to_vec(),
        });
        rest = after;
    }
    packets
}
