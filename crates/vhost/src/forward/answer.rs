//! Answers to ARP and ICMP echo requests.

use super::mode::swap_addresses;
use crate::net::{Header, Packet, internet_checksum};

/// Address that ARP answers give: locally administered.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Turns a request into its answer. False if it is no request.
pub(super) fn answer(packet: &mut Packet) -> bool {
    let done = match packet.bytes().get(12..14) {
        Some([0x08, 0x06]) => answer_arp(packet.bytes_mut()),
        Some([0x08, 0x00]) => answer_echo(packet),
        _ => false,
    };
    if done {
        packet.header = Header::default();
    }
    done
}

/// Every address is here (RFC 826).
fn answer_arp(frame: &mut [u8]) -> bool {
    // Ethernet, IPv4, their lengths; a request.
    if frame.len() < 42 || frame[14..22] != [0, 1, 8, 0, 6, 4, 0, 1] {
        return false;
    }
    frame[21] = 2;
    let mut sender = [0; 10];
    sender.copy_from_slice(&frame[22..32]);
    let mut target = [0; 4];
    target.copy_from_slice(&frame[38..42]);
    frame[22..28].copy_from_slice(&MAC);
    frame[28..32].copy_from_slice(&target);
    frame[32..42].copy_from_slice(&sender);
    frame[..6].copy_from_slice(&sender[..6]);
    frame[6..12].copy_from_slice(&MAC);
    true
}

fn answer_echo(packet: &mut Packet) -> bool {
    let frame = packet.bytes_mut();
    let Some(first) = frame.get(14) else {
        return false;
    };
    let icmp = 14 + usize::from(first & 0xf) * 4;
    let total = match frame.get(16..18) {
        Some(length) => 14 + usize::from(u16::from_be_bytes([length[0], length[1]])),
        None => return false,
    };
    let whole = icmp >= 34 && total <= frame.len() && icmp + 8 <= total;
    if !whole || first >> 4 != 4 || frame[23] != 1 || frame[icmp] != 8 {
        return false;
    }
    let (source, destination) = frame[26..34].split_at_mut(4);
    source.swap_with_slice(destination);
    frame[icmp] = 0;
    frame[icmp + 2..icmp + 4].fill(0);
    let sum = internet_checksum(&frame[icmp..total]);
    frame[icmp + 2..icmp + 4].copy_from_slice(&sum.to_be_bytes());
    swap_addresses(packet);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echo_and_arp_requests_are_answered_and_nothing_else() {
        let mut arp = vec![0xff; 6];
        arp.extend([2, 0, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        arp.extend([2, 0, 0, 0, 0, 9, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
        let mut packet = Packet::from_bytes(&arp);
        assert!(answer(&mut packet));
        assert_eq!(packet.bytes()[..6], [2, 0, 0, 0, 0, 9]);
        assert_eq!(packet.bytes()[28..32], [10, 0, 0, 1]);
        assert!(!answer(&mut packet), "an answer is not answered");

        let mut echo = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0, 0, 36];
        echo.extend([0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 9, 10, 0, 0, 1]);
        echo.extend([8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        for cut in 0..echo.len() {
            assert!(
                !answer(&mut Packet::from_bytes(&echo[..cut])),
                "cut at {cut}"
            );
        }
        let mut packet = Packet::from_bytes(&echo);
        assert!(answer(&mut packet));
        assert_eq!(packet.bytes()[26..34], [10, 0, 0, 1, 10, 0, 0, 9]);
        assert_eq!(packet.bytes()[34], 0);
        assert_eq!(internet_checksum(&packet.bytes()[34..]), 0);
    }
}
