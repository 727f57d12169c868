//! What a sender left to the device, done where the receiver does not take it either.

use super::header::{DATA_VALID, GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, NEEDS_CSUM};
use super::parse::{self, Tcp};
use super::{Header, Packet, Pool, checksum};
use crate::protocol::features as f;

/// Packets that a long segment is cut into at most: 64 KiB in parts of 128 bytes.
const MAX_SEGMENTS: usize = 512;
/// Bytes of packets that are made at a time, about.
const MAX_MADE: usize = 16 << 10;
const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// Whether a sender's header is one that it may write, with these features in force.
pub(crate) fn is_valid(header: &Header, len: usize, features: u64) -> bool {
    let kind = header.gso_type & !GSO_ECN;
    if header.flags & NEEDS_CSUM != 0 {
        let at = usize::from(header.csum_start) + usize::from(header.csum_offset);
        if features & f::CSUM == 0 || at + 2 > len {
            return false;
        }
    }
    let needed = match kind {
        GSO_NONE => return header.gso_type == GSO_NONE,
        GSO_TCPV4 => f::HOST_TSO4,
        GSO_TCPV6 => f::HOST_TSO6,
        _ => return false,
    };
    features & needed != 0 && header.gso_size != 0 && header.flags & NEEDS_CSUM != 0
}

/// Whether a receiver with these features takes a packet with this header as it is.
#[inline]
pub(crate) fn is_taken(header: &Header, features: u64) -> bool {
    if !header.has_offload() {
        return true;
    }
    let kind = match header.gso_type & !GSO_ECN {
        GSO_NONE => 0,
        GSO_TCPV4 => f::GUEST_TSO4,
        _ => f::GUEST_TSO6,
    };
    let ecn = match header.gso_type & GSO_ECN {
        0 => 0,
        _ => f::GUEST_ECN,
    };
    let needed = f::GUEST_CSUM | kind | ecn;
    features & needed == needed
}

/// Makes packets such that a receiver takes them, a few at a time: one packet can make 512.
#[derive(Debug, Default)]
pub struct Adapter {
    /// Packets that the first one of the list has been cut into.
    made: usize,
}

impl Adapter {
    /// Moves packets from the front of a list to `out`, such that a receiver with these features takes them: cuts
    /// long segments, completes checksums. Ends when `out` has `most` packets or about 16 KiB; a packet that is
    /// not all cut then is still the first of the list, and the next call has to get it. Returns how many packets
    /// were dropped, for their headers are nonsense.
    pub fn some(
        &mut self,
        packets: &mut Vec<Packet>,
        (features, most): (u64, usize),
        pool: &mut Pool,
        out: &mut Vec<Packet>,
    ) -> u64 {
        let (mut taken, mut bytes, mut bad) = (0, 0, 0);
        while taken < packets.len() && out.len() < most && bytes < MAX_MADE {
            let packet = &mut packets[taken];
            let before = out.len();
            let adapted = match self.made > 0 || is_cut(packet, features) {
                true => cut(packet, self.made, most - before, pool, out),
                false if complete(packet, features) => {
                    out.push(std::mem::take(packet));
                    Cut::All
                }
                false => Cut::Bad,
            };
            bytes += out[before..].iter().map(Packet::len).sum::<usize>();
            match adapted {
                Cut::Part => self.made += out.len() - before,
                Cut::All | Cut::Bad => {
                    bad += u64::from(adapted == Cut::Bad);
                    self.made = 0;
                    taken += 1;
                }
            }
        }
        packets.drain(..taken).for_each(|packet| pool.put(packet));
        bad
    }
}

/// Whether a packet is to be cut. A segment that needs no cut is a packet like others.
fn is_cut(packet: &mut Packet, features: u64) -> bool {
    if is_taken(&packet.header, features) {
        return false;
    }
    let kind = packet.header.gso_type & !GSO_ECN;
    if kind == GSO_NONE || !is_long(packet) {
        packet.header.gso_type = GSO_NONE;
        return false;
    }
    true
}

fn is_long(packet: &Packet) -> bool {
    let data = parse::tcp(packet.bytes()).map(|tcp| packet.len() - tcp.data);
    data.is_none_or(|data| data > usize::from(packet.header.gso_size))
}

/// Completes the checksum; the sender has stored the pseudo header's sum in its place. False: its place is none.
fn complete(packet: &mut Packet, features: u64) -> bool {
    let header = packet.header;
    if header.flags & NEEDS_CSUM == 0 || features & f::GUEST_CSUM != 0 {
        return true;
    }
    let start = usize::from(header.csum_start);
    let at = start + usize::from(header.csum_offset);
    if at + 2 > packet.len() {
        return false;
    }
    let sum = checksum::finish(checksum::sum(&packet.bytes()[start..]));
    // A UDP checksum of 0 would say that there is none (RFC 768).
    let udp = header.csum_offset == 6;
    let sum = if udp && sum == 0 { 0xffff } else { sum };
    packet.bytes_mut()[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    packet.header.flags &= !(NEEDS_CSUM | DATA_VALID);
    packet.header.csum_start = 0;
    packet.header.csum_offset = 0;
    true
}

/// What became of a packet.
#[derive(Debug, PartialEq, Eq)]
enum Cut {
    All,
    Part,
    Bad,
}

/// Cuts a TCP segment into packets of `gso_size` bytes of data, with whole checksums: `most` of them from number
/// `from` on, and about [`MAX_MADE`] bytes.
fn cut(
    packet: &Packet,
    from: usize,
    most: usize,
    pool: &mut Pool,
    segments: &mut Vec<Packet>,
) -> Cut {
    let bytes = packet.bytes();
    let Some(tcp) = parse::tcp(bytes) else {
        return Cut::Bad;
    };
    if tcp.ip.v6 != (packet.header.gso_type & !GSO_ECN == GSO_TCPV6) {
        return Cut::Bad;
    }
    let size = usize::from(packet.header.gso_size);
    let data = &bytes[tcp.data..];
    let last = data.len().div_ceil(size) - 1;
    if last >= MAX_SEGMENTS {
        return Cut::Bad;
    }
    let most = most.min(MAX_MADE.div_ceil(tcp.data + size));
    for (i, part) in data.chunks(size).enumerate().skip(from).take(most) {
        let len = tcp.data + part.len();
        let mut segment = pool.take(len);
        segment.header = Header::default();
        let frame = segment.bytes_mut();
        frame[..tcp.data].copy_from_slice(&bytes[..tcp.data]);
        frame[tcp.data..].copy_from_slice(part);
        set_ip(frame, &tcp, i as u16);
        set_tcp(frame, &tcp, (i * size) as u32, (i == 0, i == last));
        segments.push(segment);
    }
    match from + most > last {
        true => Cut::All,
        false => Cut::Part,
    }
}

fn set_ip(frame: &mut [u8], tcp: &Tcp, index: u16) {
    let at = tcp.ip.at;
    let length = frame.len() - at;
    if tcp.ip.v6 {
        let payload = (length - 40) as u16;
        frame[at + 4..at + 6].copy_from_slice(&payload.to_be_bytes());
        return;
    }
    frame[at + 2..at + 4].copy_from_slice(&(length as u16).to_be_bytes());
    let id = u16::from_be_bytes([frame[at + 4], frame[at + 5]]).wrapping_add(index);
    frame[at + 4..at + 6].copy_from_slice(&id.to_be_bytes());
    frame[at + 10..at + 12].fill(0);
    let sum = checksum::finish(checksum::sum(&frame[at..tcp.ip.transport]));
    frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
}

fn set_tcp(frame: &mut [u8], tcp: &Tcp, offset: u32, (first, last): (bool, bool)) {
    let at = tcp.ip.transport;
    let field = [frame[at + 4], frame[at + 5], frame[at + 6], frame[at + 7]];
    let sequence = u32::from_be_bytes(field).wrapping_add(offset);
    frame[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
    if !last {
        frame[at + 13] &= !(TCP_FIN | TCP_PSH);
    }
    if !first {
        frame[at + 13] &= !TCP_CWR;
    }
    frame[at + 16..at + 18].fill(0);
    let (ip, length) = (tcp.ip.at, frame.len() - at);
    let addresses = match tcp.ip.v6 {
        false => &frame[ip + 12..ip + 20],
        true => &frame[ip + 8..ip + 40],
    };
    let pseudo = checksum::sum(addresses) + u64::from(tcp.ip.protocol) + length as u64;
    let sum = checksum::finish(pseudo + checksum::sum(&frame[at..]));
    frame[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP frame of `data` bytes whose checksum is the pseudo header's sum.
    fn frame(v6: bool, data: usize) -> Packet {
        let mut bytes = vec![2; 12];
        bytes.extend(if v6 { [0x86, 0xdd] } else { [8, 0] });
        let ip = bytes.len();
        if v6 {
            bytes.extend([0x60, 0, 0, 0]);
            bytes.extend(((20 + data) as u16).to_be_bytes());
            bytes.extend([6, 64]);
            bytes.extend((0..32).collect::<Vec<u8>>());
        } else {
            bytes.extend([0x45, 0]);
            bytes.extend(((40 + data) as u16).to_be_bytes());
            bytes.extend([0x12, 0x34, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let tcp = bytes.len();
        bytes.extend([0, 80, 0, 81, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0x50, 0x99]);
        bytes.extend([1, 0, 0, 0, 0, 0]);
        bytes.extend((0..data).map(|i| (i * 7) as u8));
        let range = if v6 {
            ip + 8..ip + 40
        } else {
            ip + 12..ip + 20
        };
        let pseudo = checksum::sum(&bytes[range]) + 6 + (20 + data) as u64;
        let sum = checksum::fold(pseudo).to_be_bytes();
        bytes[tcp + 16..tcp + 18].copy_from_slice(&sum);
        let mut packet = Packet::from_bytes(&bytes);
        packet.header = Header {
            flags: NEEDS_CSUM,
            gso_type: if v6 { GSO_TCPV6 } else { GSO_TCPV4 },
            gso_size: 1000,
            csum_start: tcp as u16,
            csum_offset: 16,
            ..Header::default()
        };
        packet
    }

    /// The sum over pseudo header and segment is all ones if the checksum is right.
    fn is_right(packet: &Packet) -> bool {
        let bytes = packet.bytes();
        let tcp = parse::tcp(bytes).expect("a TCP segment");
        let (ip, at) = (tcp.ip.at, tcp.ip.transport);
        let addresses = match tcp.ip.v6 {
            false => &bytes[ip + 12..ip + 20],
            true => &bytes[ip + 8..ip + 40],
        };
        let header = tcp.ip.v6 || checksum::fold(checksum::sum(&bytes[ip..at])) == 0xffff;
        let pseudo = checksum::sum(addresses) + 6 + (bytes.len() - at) as u64;
        header && checksum::fold(pseudo + checksum::sum(&bytes[at..])) == 0xffff
    }

    /// What a packet becomes, at most so many at a time; how many calls; how many were dropped.
    fn adapted(packet: Packet, features: u64, most: usize) -> (Vec<Packet>, usize, u64) {
        let (mut adapter, mut pool) = (Adapter::default(), Pool::new(0));
        let (mut list, mut all, mut calls, mut bad) = (vec![packet], Vec::new(), 0, 0);
        while !list.is_empty() {
            let mut out = Vec::new();
            bad += adapter.some(&mut list, (features, most), &mut pool, &mut out);
            assert!(out.len() <= most && (bad > 0 || !out.is_empty()));
            all.append(&mut out);
            calls += 1;
        }
        (all, calls, bad)
    }

    #[test]
    fn a_long_segment_is_split_with_correct_headers() {
        for (v6, most, calls) in [(false, 16, 1), (true, 16, 1), (false, 2, 2), (true, 1, 3)] {
            let packet = frame(v6, 2500);
            let whole = packet.bytes().to_vec();
            let (out, called, _) = adapted(packet, f::GUEST_CSUM, most);
            assert_eq!(called, calls);
            let tcp = parse::tcp(&whole).expect("TCP");
            let data: Vec<u8> = out
                .iter()
                .flat_map(|p| p.bytes()[tcp.data..].to_vec())
                .collect();
            assert_eq!(data, whole[tcp.data..]);
            assert_eq!(out.len(), 3);
            assert!(out.iter().all(is_right), "v6 {v6}");
            let at = tcp.ip.transport;
            let flags: Vec<u8> = out.iter().map(|p| p.bytes()[at + 13]).collect();
            assert_eq!(flags, [0x90, 0x10, 0x19]);
            let sequence = out[1].bytes()[at + 4..at + 8].to_vec();
            assert_eq!(sequence, (0xffff_ff00u32.wrapping_add(1000)).to_be_bytes());
        }
    }

    #[test]
    fn packets_of_a_list_are_adapted_in_order_and_16_kib_at_a_time() {
        let (mut adapter, mut pool) = (Adapter::default(), Pool::new(0));
        let plain = |byte| Packet::from_bytes(&[byte; 60]);
        let mut list = vec![plain(1), frame(false, 40_000), plain(2)];
        let mut all = Vec::new();
        for left in [2, 2, 0] {
            let mut out = Vec::new();
            assert_eq!(adapter.some(&mut list, (0, 64), &mut pool, &mut out), 0);
            assert_eq!(list.len(), left);
            assert!(out.iter().map(Packet::len).sum::<usize>() <= MAX_MADE + 1054);
            all.append(&mut out);
        }
        assert_eq!(all.len(), 42);
        assert_eq!([all[0].bytes()[0], all[41].bytes()[0]], [1, 2]);
        for (part, packet) in (0..).zip(&all[1..41]) {
            let sequence = [38, 39, 40, 41].map(|at| packet.bytes()[at]);
            let expected = 0xffff_ff00_u32.wrapping_add(1000 * part);
            assert_eq!(u32::from_be_bytes(sequence), expected);
        }
    }

    #[test]
    fn a_checksum_is_completed_only_without_guest_csum() {
        let plain = || {
            let mut packet = frame(false, 100);
            packet.header.gso_type = GSO_NONE;
            packet
        };
        let (same, ..) = adapted(plain(), f::GUEST_CSUM, 16);
        assert_eq!(same[0].bytes(), plain().bytes());
        assert_eq!(same[0].header, plain().header);
        let (out, ..) = adapted(plain(), 0, 16);
        assert_eq!(out[0].header.flags, 0);
        // The IP checksum of this frame is 0, the transport's must be right.
        let at = 34;
        let pseudo = checksum::sum(&out[0].bytes()[26..34]) + 6 + 120;
        let all = pseudo + checksum::sum(&out[0].bytes()[at..]);
        assert_eq!(checksum::fold(all), 0xffff);
    }

    #[test]
    fn a_gso_size_of_one_byte_is_refused() {
        let mut packet = frame(false, 2500);
        packet.header.gso_size = 1;
        let (out, _, bad) = adapted(packet, 0, 16);
        assert_eq!((out.len(), bad), (0, 1));
    }

    #[test]
    fn a_segment_is_cut_into_512_packets_at_most() {
        for (data, expected) in [(512, (512, 0)), (513, (0, 1))] {
            let mut packet = frame(false, 100 * data);
            packet.header.gso_size = 100;
            let (out, _, bad) = adapted(packet, 0, 16);
            assert_eq!((out.len(), bad), expected);
        }
    }

    #[test]
    fn inconsistent_offload_headers_are_refused() {
        let packet = frame(false, 100);
        let all = f::OFFLOADS;
        let valid = |h: Header| is_valid(&h, packet.len(), all);
        let good = packet.header;
        assert!(valid(good));
        assert!(!is_valid(&good, packet.len(), 0), "not negotiated");
        let bad = |change: fn(&mut Header)| {
            let mut header = good;
            change(&mut header);
            !valid(header)
        };
        assert!(bad(|h| h.csum_start = 200));
        assert!(bad(|h| h.csum_offset = u16::MAX));
        assert!(bad(|h| h.gso_size = 0));
        assert!(bad(|h| h.flags = 0));
        assert!(bad(|h| h.gso_type = 3));
        assert!(bad(|h| h.gso_type = GSO_ECN));
    }
}
