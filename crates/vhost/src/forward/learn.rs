//! A learning switch.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::net::{Packet, Pool};

type Address = [u8; 6];

/// An address that was not heard of for so long is forgotten (IEEE 802.1D: 300 s).
const AGE: Duration = Duration::from_secs(300);
/// Addresses that are remembered; further ones are flooded to.
const MAX_ENTRIES: usize = 16384;
/// Those of one port: a guest that makes addresses up leaves room for others'.
const MAX_OF_PORT: usize = 4096;
/// Time between two notes that an address was heard of: threads read the table far more often. And between two
/// looks for old ones, during which all threads wait.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// An address that was heard at a port.
pub(super) type News = (Address, usize);

#[derive(Debug, Clone, Copy)]
struct Entry {
    port: usize,
    heard: Instant,
}

/// Which port an address was heard at.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<Address, Entry>,
    /// By port: how many entries it has.
    counts: Vec<usize>,
    /// When old entries were looked for.
    purged: Option<Instant>,
}

impl Table {
    /// Puts packets that came in at a port on the list of the port that they go to: of all others that are there if
    /// that is not known. What is to be learned goes to `news`.
    pub(super) fn dispatch(
        &self,
        (from, present): (usize, &[bool]),
        packets: &mut Vec<Packet>,
        outgoing: &mut [Vec<Packet>],
        pool: &mut Pool,
        now: Instant,
        news: &mut Vec<News>,
    ) {
        for packet in packets.drain(..) {
            let Some(addresses) = packet.bytes().first_chunk::<12>() else {
                pool.put(packet);
                continue;
            };
            let (mut destination, mut source) = ([0; 6], [0; 6]);
            destination.copy_from_slice(&addresses[..6]);
            source.copy_from_slice(&addresses[6..]);
            if self.is_news(&source, from, now) && !news.contains(&(source, from)) {
                news.push((source, from));
            }
            // A port that is being removed is unknown to this thread before the table has forgotten it.
            let known = self.find(&destination, now);
            match known.filter(|port| present.get(*port) == Some(&true)) {
                Some(port) if port == from => pool.put(packet),
                Some(port) => outgoing[port].push(packet),
                None => flood((from, present), packet, outgoing, pool),
            }
        }
    }

    fn is_news(&self, address: &Address, port: usize, now: Instant) -> bool {
        if is_group(address) {
            return false;
        }
        match self.entries.get(address) {
            Some(entry) => {
                entry.port != port || now.saturating_duration_since(entry.heard) >= NOTED_EVERY
            }
            None => self.has_room(port) || self.may_purge(now),
        }
    }

    fn has_room(&self, port: usize) -> bool {
        let own = self.counts.get(port).copied().unwrap_or(0);
        own < MAX_OF_PORT && self.entries.len() < MAX_ENTRIES
    }

    fn may_purge(&self, now: Instant) -> bool {
        let since = |purged| now.saturating_duration_since(purged);
        self.purged.is_none_or(|at| since(at) >= NOTED_EVERY)
    }

    /// Forgets what was heard at a port that is gone.
    pub(super) fn forget(&mut self, port: usize) {
        self.retain(|entry| entry.port != port);
    }

    fn retain(&mut self, stays: impl Fn(&Entry) -> bool) {
        let Table {
            entries, counts, ..
        } = self;
        entries.retain(|_, entry| {
            let stays = stays(entry);
            counts[entry.port] -= usize::from(!stays);
            stays
        });
        debug_assert_eq!(counts.iter().sum::<usize>(), entries.len());
    }

    /// Notes where an address was heard. Without room for it, it is unknown.
    pub(super) fn learn(&mut self, (address, port): News, now: Instant) {
        if is_group(&address) {
            return;
        }
        if let Some(before) = self.entries.remove(&address) {
            self.counts[before.port] -= 1;
        }
        if !self.has_room(port) && self.may_purge(now) {
            self.purged = Some(now);
            self.retain(|entry| now.saturating_duration_since(entry.heard) < AGE);
        }
        if !self.has_room(port) {
            return;
        }
        if self.counts.len() <= port {
            self.counts.resize(port + 1, 0);
        }
        self.counts[port] += 1;
        self.entries.insert(address, Entry { port, heard: now });
    }

    fn find(&self, address: &Address, now: Instant) -> Option<usize> {
        if is_group(address) {
            return None;
        }
        let entry = self.entries.get(address)?;
        (now.saturating_duration_since(entry.heard) < AGE).then_some(entry.port)
    }
}

fn is_group(address: &Address) -> bool {
    address[0] & 1 != 0
}

fn flood(
    (from, present): (usize, &[bool]),
    packet: Packet,
    outgoing: &mut [Vec<Packet>],
    pool: &mut Pool,
) {
    let others = (0..outgoing.len()).filter(|port| *port != from && present[*port]);
    let others: Vec<usize> = others.collect();
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
            let (present, mut news) = ([true; 3], Vec::new());
            table.dispatch(
                (from, &present),
                &mut packets,
                &mut out,
                &mut pool,
                now,
                &mut news,
            );
            news.drain(..).for_each(|news| table.learn(news, now));
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

    /// Packets of one port whose addresses are all different cost the other threads little: what is no news does
    /// not take the table from them. Others' addresses are learned, and old ones make room.
    #[test]
    fn a_flood_of_addresses_is_bounded() {
        let (mut table, mut pool, mut now) = (Table::default(), Pool::new(0), Instant::now());
        let mut packets = Vec::new();
        let mut flood = |table: &mut Table, now, rounds: u32| {
            let (mut learned, mut news) = (0, Vec::new());
            for number in 0..rounds {
                let mut bytes = [2; 60];
                bytes[8..12].copy_from_slice(&number.to_be_bytes());
                packets.push(Packet::from_bytes(&bytes));
                let ports = (0, &[true][..]);
                table.dispatch(ports, &mut packets, &mut [], &mut pool, now, &mut news);
                learned += news.len();
                news.drain(..).for_each(|news| table.learn(news, now));
            }
            learned
        };
        // One more: for it old ones are looked for.
        assert_eq!(flood(&mut table, now, 100_000), MAX_OF_PORT + 1);
        assert_eq!(flood(&mut table, now, 100_000), 0);
        assert_eq!(table.entries.len(), MAX_OF_PORT);
        table.learn(([4; 6], 1), now);
        assert_eq!(table.find(&[4; 6], now), Some(1));
        table.learn(([4; 6], 0), now);
        assert_eq!(table.find(&[4; 6], now), None, "no room there");
        now += AGE;
        assert_eq!(flood(&mut table, now, 1), 1);
        table.learn(([6; 6], 0), now);
        assert_eq!(table.find(&[6; 6], now), Some(0), "old ones are forgotten");
        table.forget(0);
        assert_eq!(table.entries.len(), 0);
    }

    #[test]
    fn an_address_at_a_port_that_is_gone_is_unknown() {
        let (mut table, mut pool, now) = (Table::default(), Pool::new(0), Instant::now());
        table.learn(([4; 6], 1), now);
        table.learn(([6; 6], 7), now);
        for address in [4, 6] {
            let mut out = vec![Vec::new(), Vec::new(), Vec::new()];
            table.dispatch(
                (0, &[true, false, true]),
                &mut vec![packet(address, 2)],
                &mut out,
                &mut pool,
                now,
                &mut Vec::new(),
            );
            assert_eq!(out.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 1]);
        }
    }
}
