//! Pairs on their way from one thread to another.
//!
//! A pair is *owned* by one thread, which alone receives from it. It is *leaving* once it is to move: its thread
//! takes nothing new, finishes the copies in flight, and sends what waits for a slow port. When nothing is left
//! it is *handed over*. If that takes too long it stays where it is: another thread is no help then. All packets
//! that the old thread has received are at their ports' queues by then, in order, before the new thread
//! receives the next one.

use std::time::{Duration, Instant};

use super::Switch;
use super::balance::{Load, plan};

/// A pair whose packets are not all sent by then stays where it is.
const MOVE: Duration = Duration::from_millis(100);

/// A pair on its way.
#[derive(Debug)]
pub(super) struct Move {
    port: usize,
    pair: usize,
    from: usize,
    to: usize,
    until: Instant,
}

impl Move {
    pub(super) fn port(&self) -> usize {
        self.port
    }
}

impl Switch {
    /// The thread that receives from a pair of a port, by their numbers.
    pub fn thread_of(&self, port: usize, pair: usize) -> Option<usize> {
        let owns = |at: &usize| {
            let mut worker = self.threads[*at].between_steps();
            worker.has_port(port) && worker.own(port).iter().any(|own| own.pair == pair)
        };
        (0..self.threads.len()).find(owns)
    }

    /// Begins to move a pair to another thread. Returns whether it does: not if it is there, or moves already.
    pub fn move_pair(&mut self, port: usize, pair: usize, to: usize) -> bool {
        let moves = self.moves.iter().any(|m| (m.port, m.pair) == (port, pair));
        let from = self.thread_of(port, pair).filter(|from| *from != to);
        let (Some(from), false, true) = (from, moves, to < self.threads.len()) else {
            return false;
        };
        let leaves = self.threads[from]
            .between_steps()
            .set_leaving(port, pair, true);
        assert!(leaves, "the thread has the pair");
        self.threads[from].wake();
        self.moves.push(Move {
            port,
            pair,
            from,
            to,
            until: Instant::now() + MOVE,
        });
        true
    }

    /// Pairs that are on their way.
    pub fn moving(&self) -> usize {
        self.moves.len()
    }

    /// Pairs that were handed over, and those that stayed because they did not drain in time.
    pub fn moved(&self) -> (u64, u64) {
        (self.handed_over, self.stayed)
    }

    /// Goes on with pairs on their way.
    pub(super) fn advance_moves(&mut self) {
        if self.moves.is_empty() {
            return;
        }
        let moves = std::mem::take(&mut self.moves);
        for m in moves {
            let mut worker = self.threads[m.from].between_steps();
            if worker.has_drained(m.port, m.pair) {
                worker.release_pair(m.port, m.pair);
                drop(worker);
                // It waits for the pair's notifications no longer.
                self.threads[m.from].wake();
                self.threads[m.to].between_steps().take_pair(m.port, m.pair);
                self.threads[m.to].wake();
                self.handed_over += 1;
            } else if Instant::now() >= m.until {
                worker.set_leaving(m.port, m.pair, false);
                self.stayed += 1;
            } else {
                drop(worker);
                self.moves.push(m);
            }
        }
        debug_assert!(self.each_pair_has_one_thread());
    }

    /// Moves pairs from busy threads to others, by what their packets took since this was called last.
    pub(super) fn balance(&mut self, period: Duration) {
        let mut loads = Vec::new();
        for (thread, at) in self.threads.iter().zip(0..) {
            let mut worker = thread.between_steps();
            for port in (0..self.ports.len()).filter(|port| self.ports[*port].is_some()) {
                for own in worker.own(port) {
                    loads.push(Load {
                        port,
                        pair: own.pair,
                        thread: at,
                        time: std::mem::take(&mut own.load),
                    });
                }
            }
        }
        if self.threads.len() > 1 && self.moves.is_empty() {
            for (port, pair, to) in plan(&mut loads, self.threads.len(), period) {
                self.move_pair(port, pair, to);
            }
        }
    }

    /// The invariant: each pair of each port is received from by exactly one thread.
    pub(super) fn each_pair_has_one_thread(&self) -> bool {
        let ports = self.ports.iter().enumerate();
        let ports = ports.filter_map(|(at, port)| Some((at, port.as_ref()?.port.pairs())));
        let owners = |at: usize, pair: usize| {
            let owns = self.threads.iter().filter(|thread| {
                let mut worker = thread.between_steps();
                worker.own(at).iter().any(|own| own.pair == pair)
            });
            owns.count()
        };
        let mut all = ports.flat_map(|(at, pairs)| (0..pairs).map(move |pair| (at, pair)));
        all.all(|(at, pair)| owners(at, pair) == 1)
    }
}
