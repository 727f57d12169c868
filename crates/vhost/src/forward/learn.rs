//! A learning switch.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::net::{Packet, Pool};

type Address = [u8; 6];

/// An address that was not heard of for so long is forgotten (IEEE 802.1D: 300 s).
const AGE: Duration = Duration::from_secs(300);
/// Addresses that are remembered; further ones are flooded to.
const MAX_ENTRIES: usize = 16384;

#[derive(Debug, Clone, Copy)]
struct Entry {
    port: usize,
    heard: Instant,
}

/// Which port an address was heard at.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<Address, Entry>,
}

impl Table {
    /// Learns where packets come from, and puts each on the list of the port that it goes to: of
    /// all others if that is not known.
    pub(super) fn dispatch(
        &mut self,
        from: usize,
        packets: &mut Vec<Packet>,
        outgoing: &mut [Vec<Packet>],
        pool: &mut Pool,
        now: Instant,
    ) {
        for packet in packets.drain(..) {
            let Some(addresses) = packet.bytes().first_chunk::<12>() else {
                pool.put(packet);
                continue;
            };
            let (mut destination, mut source) = ([0; 6], [0; 6]);
            destination.copy_from_slice(&addresses[..6]);
            source.copy_from_slice(&addresses[6..]);
            self.learn(source, from, now);
            match self.find(&destination, now) {
                Some(port) if port == from => pool.put(packet),
                Some(port) => outgoing[port].push(packet),
                None => flood(from, packet, outgoing, pool),
            }
        }
    }

    fn learn(&mut self, address: Address, port: usize, now: Instant) {
        let known = self.entries.contains_key(&address);
        if !known && self.entries.len() >= MAX_ENTRIES {
            self.entries
                .retain(|_, entry| now.duration_since(entry.heard) < AGE);
        }
        if is_group(&address) || (!known && self.entries.len() >= MAX_ENTRIES) {
            return;
        }
        self.entries.insert(address, Entry { port, heard: now });
    }

    fn find(&self, address: &Address, now: Instant) -> Option<usize> {
        if is_group(address) {
            return None;
        }
        let entry = self.entries.get(address)?;
        (now.duration_since(entry.heard) < AGE).then_some(entry.port)
    }
}

fn is_group(address: &Address) -> bool {
    address[0] & 1 != 0
}

fn flood(from: usize, packet: Packet, outgoing: &mut [Vec<Packet>], pool: &mut Pool) {
    let others: Vec<usize> = (0..outgoing.len()).filter(|port| *port != from).collect();
    let Some((last, rest)) = others.split_last() else {
        return pool.put(packet);
    };
    for port in rest {
        outgoing[*port].push(pool.clone_packet(&packet));
    }
    outgoing[*last].push(packet);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(to: u8, from: u8) -> Packet {
        let mut bytes = [0; 60];
        bytes[..6].fill(to);
        bytes[6..12].fill(from);
        Packet::from_bytes(&bytes)
    }

    #[test]
    fn a_known_address_has_one_port_and_an_unknown_one_all_others() {
        let (mut table, mut pool) = (Table::default(), Pool::new(0));
        let mut now = Instant::now();
        let mut run = |from, to, source, now| {
            let mut out = vec![Vec::new(), Vec::new(), Vec::new()];
            let mut packets = vec![packet(to, source)];
            table.dispatch(from, &mut packets, &mut out, &mut pool, now);
            out.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(run(0, 4, 2, now), [0, 1, 1]);
        assert_eq!(run(1, 2, 4, now), [1, 0, 0]);
        assert_eq!(run(0, 4, 2, now), [0, 1, 0]);
        assert_eq!(run(1, 4, 6, now), [0, 0, 0], "it is there already");
        assert_eq!(run(2, 0xff, 8, now), [1, 1, 0], "broadcast");
        assert_eq!(run(2, 4, 8, now), [0, 1, 0]);
        now += AGE;
        assert_eq!(run(2, 4, 8, now), [1, 1, 0], "forgotten");
    }
}
