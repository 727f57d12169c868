//! Which port sends next over an edge, and when that is decided.

use dray_clock::Time;

use super::{Event, Network, PortQueue};
use crate::Arbiter;
use crate::edge::EdgeState;
use crate::tlp::{Class, NONE};

impl Network {
    /// Sends a TLP over an edge if it is free, or queues another attempt.
    #[inline]
    pub(crate) fn try_send(&mut self, edge_index: u32) {
        let edge = &self.edges[edge_index as usize];
        if edge.active.is_empty() {
            return;
        }
        if edge.busy_until > self.now {
            let at = edge.busy_until;
            self.wake(edge_index, at);
            return;
        }
        self.edges[edge_index as usize].collect(self.now);
        match self.arbitrate(edge_index) {
            Some((port_queue, id)) => self.send(edge_index, port_queue, id),
            None => {
                let edge = &mut self.edges[edge_index as usize];
                edge.blocked = true;
                if let Some(first) = edge.returns.front() {
                    let at = first.at;
                    self.wake(edge_index, at);
                }
            }
        }
    }

    #[inline]
    pub(crate) fn woken(&mut self, edge_index: u32) {
        let edge = &mut self.edges[edge_index as usize];
        if edge.wake_at == self.now {
            edge.wake_at = u64::MAX;
            self.try_send(edge_index);
        }
    }

    #[inline]
    pub(super) fn wake(&mut self, edge_index: u32, at: u64) {
        let edge = &mut self.edges[edge_index as usize];
        if at < edge.wake_at {
            edge.wake_at = at;
            self.events.schedule(Time(at), Event::Wake(edge_index));
        }
    }

    /// Which port sends next: of those that can, the one that has been given least.
    #[inline]
    pub(super) fn arbitrate(&self, edge_index: u32) -> Option<(u32, u32)> {
        let edge = &self.edges[edge_index as usize];
        let arbiter = self.arbiters[edge_index as usize];
        let mut best: Option<((u64, u64, u32), u32)> = None;
        for &index in &edge.active {
            let queue_index = edge.first_queue + index;
            let port_queue = &self.port_queues[queue_index as usize];
            let Some(id) = self.sendable(edge, edge.first_port + index, port_queue) else {
                continue;
            };
            let first = match arbiter {
                Arbiter::OldestFirst => self.tlps.get(id).tail_at,
                _ => port_queue.served,
            };
            let rank = (first, port_queue.last, queue_index);
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, id));
            }
        }
        best.map(|((.., port_queue), id)| (port_queue, id))
    }

    /// The oldest TLP of a queue that has credits and may go by the ordering rules: nothing passes
    /// a posted TLP; posted TLPs and completions pass reads.
    #[inline]
    fn sendable(&self, edge: &EdgeState, port: u32, port_queue: &PortQueue) -> Option<u32> {
        let posted = port_queue.head[Class::Posted as usize];
        // With one FIFO per port a posted TLP for another output holds up what is behind it, too.
        let port = &self.ports[port as usize];
        let barrier = if port.fifo {
            port.exposed[Class::Posted as usize]
        } else {
            posted
        };
        let barrier = match barrier {
            NONE => u32::MAX,
            id => self.tlps.get(id).seq,
        };
        let mut best: Option<(u32, u32)> = None;
        for class in 0..3 {
            let id = port_queue.head[class];
            if id == NONE {
                continue;
            }
            let tlp = self.tlps.get(id);
            let ordered = class == Class::Posted as usize || tlp.seq < barrier;
            if ordered && best.is_none_or(|(seq, _)| tlp.seq < seq) && edge.has_credits(tlp) {
                best = Some((tlp.seq, id));
            }
        }
        best.map(|(_, id)| id)
    }
}
