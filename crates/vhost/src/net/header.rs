//! The header before each packet (virtio 1.3, 5.1.6).

use virtio_bindings::virtio_net as v;

/// Bytes of a header with `num_buffers`.
pub const HEADER_BYTES: usize = 12;
/// Bytes of a header without version 1, mergeable buffers and packed rings.
pub(crate) const LEGACY_HEADER_BYTES: usize = 10;

/// Flag: the checksum from `csum_start` on is to be completed.
pub(crate) const NEEDS_CSUM: u8 = v::VIRTIO_NET_HDR_F_NEEDS_CSUM as u8;
/// Flag: the checksum has been verified.
pub(crate) const DATA_VALID: u8 = v::VIRTIO_NET_HDR_F_DATA_VALID as u8;
pub(crate) const GSO_NONE: u8 = v::VIRTIO_NET_HDR_GSO_NONE as u8;
pub(crate) const GSO_TCPV4: u8 = v::VIRTIO_NET_HDR_GSO_TCPV4 as u8;
pub(crate) const GSO_TCPV6: u8 = v::VIRTIO_NET_HDR_GSO_TCPV6 as u8;
pub(crate) const GSO_ECN: u8 = v::VIRTIO_NET_HDR_GSO_ECN as u8;

/// The header before a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Bit 0: the checksum is to be completed; bit 1: it was verified.
    pub flags: u8,
    /// How a long segment is to be cut: 0 not, 1 TCP over IPv4, 4 TCP over IPv6; bit 7: ECN.
    pub gso_type: u8,
    /// Bytes of the headers; a hint that is not to be trusted.
    pub hdr_len: u16,
    /// Payload of each segment, in bytes.
    pub gso_size: u16,
    /// Where the checksum begins.
    pub csum_start: u16,
    /// Where it is stored, from there.
    pub csum_offset: u16,
    /// Buffers that the packet takes (receive queues).
    pub num_buffers: u16,
}

impl Header {
    /// Nothing is to be done: all fields are 0.
    pub const NONE: Header = Header {
        flags: 0,
        gso_type: 0,
        hdr_len: 0,
        gso_size: 0,
        csum_start: 0,
        csum_offset: 0,
        num_buffers: 0,
    };

    /// Reads a header.
    #[inline]
    pub fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Header {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Header {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
            num_buffers: word(10),
        }
    }

    /// As bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let (low, high) = self.to_words();
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        bytes
    }

    /// The first 8 bytes and the last 4, as numbers. These are made in registers: bytes that are
    /// stored one by one and loaded as words make the load wait until all earlier stores are in the
    /// cache, those to the guest's buffers among them.
    #[inline]
    pub(crate) fn to_words(self) -> (u64, u32) {
        let low = u64::from(self.flags)
            | u64::from(self.gso_type) << 8
            | u64::from(self.hdr_len) << 16
            | u64::from(self.gso_size) << 32
            | u64::from(self.csum_start) << 48;
        let high = u32::from(self.csum_offset) | u32::from(self.num_buffers) << 16;
        (low, high)
    }

    /// Whether the receiver has anything to do beyond taking the packet.
    #[inline]
    pub fn has_offload(&self) -> bool {
        self.flags & NEEDS_CSUM != 0 || self.gso_type != GSO_NONE
    }
}
