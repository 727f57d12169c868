//! A TLP's way over an edge, and that of its credits back.

use dray_clock::Time;

use super::{Event, Network};
use crate::Arbiter;
use crate::edge::CreditReturn;
use crate::tlp::{Class, NONE, Tlp};
use crate::trace::Hop;

impl Network {
    /// Sends a TLP over a free edge.
    #[inline]
    pub(super) fn send(&mut self, edge_index: u32, queue_index: u32, id: u32) {
        let now = self.now;
        let tlp = self.tlps.get_mut(id);
        let next = self.routes.hops[tlp.hop as usize + 1];
        let sending_next = match next {
            NONE => 0,
            next => self.edges[next as usize].sending(tlp),
        };
        let edge = &mut self.edges[edge_index as usize];
        let class = tlp.class as usize;
        edge.blocked = false;
        edge.take_credits(tlp);
        let end = now + edge.sending(tlp);
        debug_assert!(
            tlp.tail_at <= end,
            "a TLP leaves before its bytes are there"
        );
        edge.busy_until = end;
        edge.busy += end - now;
        edge.carried += u64::from(tlp.payload);

        let port_queue = &mut self.port_queues[queue_index as usize];
        // What was not used for want of credits is made up for by at most 4 KiB.
        let started = port_queue.served.max(edge.served.saturating_sub(64));
        edge.served = edge.served.max(started);
        port_queue.served = started
            + match self.arbiters[edge_index as usize] {
                Arbiter::LeastServed => u64::from(tlp.wire).div_ceil(64),
                Arbiter::RoundRobin | Arbiter::OldestFirst => 1,
            };
        port_queue.last = self.hops_done;
        port_queue.head[class] = tlp.next;
        if tlp.next == NONE {
            port_queue.tail[class] = NONE;
            if port_queue.head == [NONE; 3] {
                let index = queue_index - edge.first_queue;
                edge.active.retain(|&active| active != index);
            }
        }

        let came_by = tlp.came_by;
        let port_index = tlp.port;
        tlp.came_by = edge_index;
        tlp.hop += 1;
        let mut flight = edge.flight;
        if came_by == NONE {
            flight += edge.source;
            if tlp.on_chip && class == Class::Completion as usize {
                flight -= edge.on_chip.min(flight);
            }
        }
        let tail_at = end + flight + edge.forward;
        let ready = if next == NONE {
            let mut sink = edge.sink;
            if tlp.on_chip && class != Class::Completion as usize {
                sink -= edge.on_chip.min(sink);
            }
            end + flight + sink
        } else if edge.store_and_forward {
            tail_at
        } else {
            // A TLP leaves without a gap: over a faster edge it starts when the rest of it comes in time. Until then
            // others may have the edge.
            (now + flight + edge.forward).max(tail_at.saturating_sub(sending_next))
        };
        tlp.tail_at = tail_at;
        if let Some(trace) = &mut self.trace
            && trace.len() < self.trace_limit
        {
            trace.push(Hop::new(edge_index, now, end, tlp));
        }
        let credit = CreditReturn {
            at: 0,
            class: tlp.class,
            pool: tlp.pool,
            data: tlp.data_credits(),
        };
        tlp.pool = tlp.next_pool;
        let payload = tlp.payload;
        self.hops_done += 1;
        self.events.schedule_in(
            self.arrivals[edge_index as usize],
            Time(ready),
            Event::Arrive(id),
        );
        if !self.edges[edge_index as usize].active.is_empty() {
            self.wake(edge_index, end);
        }
        self.left(port_index, came_by, class, end, credit, payload);
    }

    /// A TLP has left a port: its credits are returned to its sender.
    #[inline]
    fn left(
        &mut self,
        port_index: u32,
        came_by: u32,
        class: usize,
        end: u64,
        credit: CreditReturn,
        payload: u16,
    ) {
        if came_by == NONE {
            let port = &mut self.ports[port_index as usize];
            port.bytes -= u64::from(payload);
            if port.watched {
                port.watched = false;
                self.freed.push(port_index);
            }
        } else {
            self.give_back(came_by, end, credit);
        }
        let port = &mut self.ports[port_index as usize];
        if port.fifo {
            let (head, tail) = port.staged[class];
            port.exposed[class] = head;
            if head != NONE {
                let next = self.tlps.get(head).next;
                self.ports[port_index as usize].staged[class] = if next == NONE {
                    (NONE, NONE)
                } else {
                    (next, tail)
                };
                self.tlps.get_mut(head).next = NONE;
                self.join_queue(head);
            }
            if class == Class::Posted as usize {
                // What was held up behind it may wait for other edges.
                for other in [Class::NonPosted, Class::Completion] {
                    let held = self.ports[port_index as usize].exposed[other as usize];
                    if held != NONE {
                        let edge = self.routes.hops[self.tlps.get(held).hop as usize];
                        self.try_send(edge);
                    }
                }
            }
        }
    }

    /// Ends a TLP: its credits go back when its bytes are taken at `at`.
    #[inline]
    pub(crate) fn consume(&mut self, id: u32, at: u64) -> Tlp {
        let tlp = *self.tlps.get(id);
        self.tlps.remove(id);
        let credit = CreditReturn {
            at: 0,
            class: tlp.class,
            pool: tlp.pool,
            data: tlp.data_credits(),
        };
        self.give_back(tlp.came_by, at, credit);
        tlp
    }

    #[inline]
    fn give_back(&mut self, edge_index: u32, freed: u64, mut credit: CreditReturn) {
        let edge = &mut self.edges[edge_index as usize];
        credit.at = freed + edge.credit_flight;
        edge.give_back(credit);
        if edge.blocked {
            self.wake(edge_index, credit.at);
        }
    }
}
