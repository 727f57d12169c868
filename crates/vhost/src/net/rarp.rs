//! The broadcast by which switches learn where a guest is.

use super::Packet;

/// A broadcast RARP request of this MAC address, as if the guest had sent it.
pub fn rarp(mac: [u8; 6]) -> Packet {
    let mut frame = [0u8; 60];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&mac);
    // EtherType RARP; hardware Ethernet, protocol IPv4, their lengths; request reverse (RFC 903).
    frame[12..22].copy_from_slice(&[0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
    frame[22..28].copy_from_slice(&mac);
    frame[32..38].copy_from_slice(&mac);
    Packet::from_bytes(&frame)
}
