//! Which port sends next over an edge, and when it is asked.

use dray_clock::Time;

use super::{Event, Lane, Network};
use crate::Arbiter;
use crate::edge::EdgeState;
use crate::tlp::{Class, NONE};

impl Network {
    /// Sends a TLP over an edge if it is free, or queues another attempt.
    #[inline]
    pub(crate) fn try_send(&mut self, edge_index: u32) {
        let edge = &self.edges[edge_index as usize];
        if edge.active == 0 {
            return;
        }
        if edge.busy_until > self.now {
            let at = edge.busy_until;
            self.wake(edge_index, at);
            return;
        }
        self.edges[edge_index as usize].collect(self.now);
        match self.arbitrate(edge_index) {
            Some((lane, id)) => self.send(edge_index, lane, id),
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
    fn arbitrate(&self, edge_index: u32) -> Option<(u32, u32)> {
        let edge = &self.edges[edge_index as usize];
        let arbiter = self.arbiters[edge_index as usize];
        let mut best: Option<(u64, u64, u32, u32)> = None;
        let mut rest = edge.active;
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= rest - 1;
            let lane_index = edge.first_lane + index;
            let lane = &self.lanes[lane_index as usize];
            let Some(id) = self.sendable(edge, edge.first_port + index, lane) else {
                continue;
            };
            let first = match arbiter {
                Arbiter::OldestFirst => self.tlps.get(id).tail_at,
                _ => lane.served,
            };
            if best.is_none_or(|(served, last, ..)| (first, lane.last) < (served, last)) {
                best = Some((first, lane.last, lane_index, id));
            }
        }
        best.map(|(.., lane, id)| (lane, id))
    }

    /// The oldest TLP of a lane that has credits and may go by the ordering rules: nothing passes
    /// a posted TLP; posted TLPs and completions pass reads.
    #[inline]
    fn sendable(&self, edge: &EdgeState, port: u32, lane: &Lane) -> Option<u32> {
        let posted = lane.head[Class::Posted as usize];
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
            let id = lane.head[class];
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
