//! Offsets of the headers of a packet, as far as checksums and segmentation need them.

const ETHERNET_BYTES: usize = 14;
const VLAN: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;

/// An IP packet in an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip {
    /// Where its header begins.
    pub(crate) at: usize,
    /// Whether it is version 6.
    pub(crate) v6: bool,
    /// Where the transport's header begins.
    pub(crate) transport: usize,
    /// The transport's number.
    pub(crate) protocol: u8,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The IP packet in a frame, if there is one with whole headers.
pub(crate) fn ip(frame: &[u8]) -> Option<Ip> {
    let mut at = ETHERNET_BYTES;
    let mut kind = be16(frame, at - 2)?;
    while VLAN.contains(&kind) && at < ETHERNET_BYTES + 8 {
        at += 4;
        kind = be16(frame, at - 2)?;
    }
    match kind {
        IPV4 => {
            let first = *frame.get(at)?;
            let length = usize::from(first & 0xf) * 4;
            if first >> 4 != 4 || length < 20 || frame.len() < at + length {
                return None;
            }
            Some(Ip {
                at,
                v6: false,
                transport: at + length,
                protocol: frame[at + 9],
            })
        }
        IPV6 => {
            if frame.len() < at + 40 || frame[at] >> 4 != 6 {
                return None;
            }
            // Extension headers that can stand before a transport: hop-by-hop, routing, options.
            let (mut next, mut transport) = (frame[at + 6], at + 40);
            let mut left = 8;
            while matches!(next, 0 | 43 | 60) {
                let length = 8 * (usize::from(*frame.get(transport + 1)?) + 1);
                next = frame[transport];
                transport += length;
                left -= 1;
                if left == 0 || transport > frame.len() {
                    return None;
                }
            }
            Some(Ip {
                at,
                v6: true,
                transport,
                protocol: next,
            })
        }
        _ => None,
    }
}

/// A TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub(crate) ip: Ip,
    /// Where its data begins.
    pub(crate) data: usize,
}

/// The TCP segment in a frame, if there is one with whole headers.
pub(crate) fn tcp(frame: &[u8]) -> Option<Tcp> {
    let ip = ip(frame)?;
    let length = usize::from(*frame.get(ip.transport + 12)? >> 4) * 4;
    let data = ip.transport + length;
    (ip.protocol == TCP && length >= 20 && data <= frame.len()).then_some(Tcp { ip, data })
}
