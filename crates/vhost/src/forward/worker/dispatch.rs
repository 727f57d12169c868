//! Where packets go.

use std::sync::PoisonError;
use std::time::Instant;

use super::super::{Mode, answer, mode};
use super::{BURST, Worker};

impl Worker {
    /// Decides where the packets go that came in at a port, on this pair.
    pub(super) fn dispatch(&mut self, at: usize, pair: usize) {
        match self.mode {
            Mode::Io => self.dispatch_to_peer(at, pair),
            Mode::Mac => {
                self.packets.iter_mut().for_each(mode::swap_addresses);
                self.dispatch_to_peer(at, pair);
            }
            Mode::RxOnly => self.packets.drain(..).for_each(|p| self.pool.put(p)),
            Mode::TxOnly => {
                self.packets.drain(..).for_each(|p| self.pool.put(p));
                self.generator.fill(&mut self.outgoing[at], BURST);
            }
            Mode::Icmp => {
                for mut packet in self.packets.drain(..) {
                    match answer::answer(&mut packet) {
                        true => self.outgoing[at].push(packet),
                        false => self.pool.put(packet),
                    }
                }
            }
            Mode::Switch => self.learn_and_dispatch(at),
        }
    }

    /// Ports are wired in pairs; one that has never had a peer, to itself. What is for a peer that was removed is
    /// dropped.
    fn dispatch_to_peer(&mut self, at: usize, pair: usize) {
        match self.present.get(at ^ 1) {
            Some(true) => self.outgoing[at ^ 1].append(&mut self.packets),
            None => self.outgoing[at].append(&mut self.packets),
            Some(false) => self.drop_received(at, pair),
        }
    }

    /// Sends what came in on a pair nowhere.
    pub(super) fn drop_received(&mut self, at: usize, pair: usize) {
        if let (Some(port), 1..) = (&self.ports[at], self.packets.len()) {
            port.count_unsent(pair, self.packets.len() as u64);
        }
        self.packets.drain(..).for_each(|p| self.pool.put(p));
    }

    fn learn_and_dispatch(&mut self, at: usize) {
        let now = Instant::now();
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.dispatch(
            (at, &self.present),
            &mut self.packets,
            &mut self.outgoing,
            &mut self.pool,
            now,
            &mut self.news,
        );
        drop(table);
        if !self.news.is_empty() {
            let table = self.table.write();
            let mut table = table.unwrap_or_else(PoisonError::into_inner);
            self.news.drain(..).for_each(|news| table.learn(news, now));
        }
    }
}
