//! Where packets go.

use std::sync::PoisonError;
use std::time::Instant;

use super::super::{Mode, answer, mode};
use super::{BURST, Worker};

impl Worker {
    /// Decides where the packets go that came in at a port.
    pub(super) fn dispatch(&mut self, at: usize) {
        // Ports are wired in pairs; one that is alone, to itself.
        let peer = match at ^ 1 {
            peer if self.present.get(peer) == Some(&true) => peer,
            _ => at,
        };
        match self.mode {
            Mode::Io => self.outgoing[peer].append(&mut self.packets),
            Mode::Mac => {
                self.packets.iter_mut().for_each(mode::swap_addresses);
                self.outgoing[peer].append(&mut self.packets);
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
