//! TLPs between ports: queues, arbitration, credits, flight. DMA engines and hosts are elsewhere.

use dray_clock::{EventQueue, EventStream, Time};

use super::edge::{EdgeState, span};
use super::tlp::{Class, NONE, Tlp, TlpKind, TlpStore};
use super::trace::Hop;
use super::{Arbiter, SimulationOptions};
use dray_topology::PcieError;
use dray_topology::{NodeId, Topology};

mod arbitrate;
mod audit;
mod build;
mod routes;
mod transmit;

use routes::{Route, Routes};

/// Something that happens at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A TLP is ready at the next node's output, or at the agent where it ends.
    Arrive(u32),
    /// A TLP leaves the root complex' peer-to-peer stage.
    Enqueue(u32),
    /// An edge may send.
    Wake(u32),
    /// Something for an agent.
    Agent(AgentEvent, u32),
}

/// Events of agents; the number beside it says which stream, transfer, engine or request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentEvent {
    Arrival,
    Doorbell,
    CommandReady,
    EngineWrite,
    EngineRead,
    PieceDone,
    Respond,
    LastWritten,
    Complete,
    SourceSend,
}

/// TLPs of one port that wait for one edge.
#[derive(Debug, Clone, Copy)]
struct PortQueue {
    head: [u32; 3],
    tail: [u32; 3],
    /// What it has been given, in arbiter units.
    served: u64,
    /// When it was served last, counted in TLPs of the edge.
    last: u64,
}

/// Where TLPs come into a node: an incoming edge, or an agent of the node.
#[derive(Debug, Clone)]
struct Port {
    fifo: bool,
    seq: u32,
    /// Queues in front of the queues of the edges, with one FIFO per port.
    staged: [(u32, u32); 3],
    /// The head of each such FIFO, which is in the queue of its edge.
    exposed: [u32; 3],
    /// Payload that waits, bytes; kept for agents.
    bytes: u64,
    /// Whether an agent asked for a report when TLPs leave.
    watched: bool,
}

/// Peer-to-peer stage of a root complex.
#[derive(Debug, Clone, Copy, Default)]
struct PeerStage {
    write_ps_per_byte: u64,
    read_ps: u64,
    write_free: u64,
    read_free: u64,
}

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now: u64,
    pub(crate) tlps: TlpStore,
    pub(crate) edges: Vec<EdgeState>,
    /// Ports of agents from which TLPs left while they were watched.
    pub(crate) freed: Vec<u32>,
    pub(crate) hops_done: u64,
    pub(crate) trace: Option<Vec<Hop>>,
    trace_limit: usize,
    events: EventQueue<Event>,
    port_queues: Vec<PortQueue>,
    ports: Vec<Port>,
    first_ports: Vec<u32>,
    inputs: Vec<u32>,
    peers: Vec<PeerStage>,
    /// Of each edge: the node that receives, if that is a socket with a peer-to-peer limit.
    peer_of: Vec<u32>,
    between_sockets: Vec<bool>,
    /// Of each edge: its place among the outputs of its sender.
    egress: Vec<u32>,
    /// Of each edge: the stream of its arrivals, which come nearly in order.
    arrivals: Vec<EventStream>,
    routes: Routes,
    /// Of each edge: how its sender chooses.
    arbiters: Vec<Arbiter>,
}

impl Network {
    /// The route between two nodes; found once.
    pub(crate) fn route_between(
        &mut self,
        topology: &Topology,
        from: NodeId,
        to: NodeId,
    ) -> Result<u32, PcieError> {
        self.routes.between(topology, from, to)
    }

    #[inline]
    pub(crate) fn route(&self, route: u32) -> Route {
        self.routes.list[route as usize]
    }

    /// Number of the `index`-th port for agents of a node.
    pub(crate) fn agent_port(&self, node: NodeId, index: u32) -> u32 {
        self.first_ports[node.0 as usize] + self.inputs[node.0 as usize] + index
    }

    /// Number of ports of all nodes.
    pub(crate) fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Payload that waits at an agent's port, bytes.
    #[inline]
    pub(crate) fn waiting(&self, port: u32) -> u64 {
        self.ports[port as usize].bytes
    }

    /// Asks for the port to be listed in [`Network::freed`] when a TLP leaves it.
    #[inline]
    pub(crate) fn watch(&mut self, port: u32) {
        self.ports[port as usize].watched = true;
    }

    #[inline]
    pub(crate) fn schedule(&mut self, at: u64, event: AgentEvent, id: u32) {
        self.events.schedule(Time(at), Event::Agent(event, id));
    }

    /// The next event, unless it is after `end`; time moves to it.
    #[inline]
    pub(crate) fn next(&mut self, end: u64) -> Option<Event> {
        if self.events.next_time()?.0 > end {
            return None;
        }
        let (at, event) = self.events.pop()?;
        self.now = at.0;
        Some(event)
    }

    /// Puts a TLP into an agent's port.
    #[inline]
    pub(crate) fn inject(&mut self, port: u32, route: u32, draft: Draft) {
        let class = draft.kind.class();
        let header = match class {
            Class::Completion => dray_topology::COMPLETION_HEADER,
            _ => dray_topology::WRITE_HEADER,
        };
        let tlp = Tlp {
            next: NONE,
            hop: self.route(route).first,
            came_by: NONE,
            pool: 0,
            next_pool: 0,
            port,
            seq: 0,
            tail_at: self.now,
            wire: u32::from(draft.payload) + header,
            payload: draft.payload,
            asks: draft.asks,
            kind: draft.kind,
            class,
            last: draft.last,
            on_chip: draft.on_chip,
            alive: true,
            owner: draft.owner,
            tag: draft.tag,
            reply: draft.reply,
        };
        let id = self.tlps.insert(tlp);
        self.ports[port as usize].bytes += u64::from(draft.payload);
        self.enqueue(id, port);
    }

    /// Handles a TLP that is ready at a node; gives it back if it ends there.
    #[inline]
    pub(crate) fn arrive(&mut self, id: u32) -> Option<u32> {
        let tlp = self.tlps.get(id);
        let next = self.routes.hops[tlp.hop as usize];
        if next == NONE {
            return Some(id);
        }
        let came_by = tlp.came_by as usize;
        let peer = self.peer_of[came_by];
        if peer != NONE && !self.between_sockets[came_by] && !self.between_sockets[next as usize] {
            let at = self.peer_stage(peer, id);
            if at > self.now {
                self.events.schedule(Time(at), Event::Enqueue(id));
                return None;
            }
        }
        self.enqueue_here(id);
        None
    }

    /// Puts a TLP that came over an edge into the queues of the node.
    #[inline]
    pub(crate) fn enqueue_here(&mut self, id: u32) {
        let came_by = self.tlps.get(id).came_by;
        let port = self.edges[came_by as usize].port;
        self.enqueue(id, port);
    }

    /// When a peer-to-peer TLP is through the root complex.
    fn peer_stage(&mut self, peer: u32, id: u32) -> u64 {
        let tlp = self.tlps.get(id);
        let stage = &mut self.peers[peer as usize];
        match tlp.class {
            Class::Posted => {
                stage.write_free = stage.write_free.max(self.now)
                    + span(u64::from(tlp.payload), stage.write_ps_per_byte);
                stage.write_free
            }
            Class::NonPosted => {
                let at = stage.read_free.max(self.now);
                stage.read_free = at + stage.read_ps;
                at
            }
            Class::Completion => self.now,
        }
    }

    #[inline]
    fn enqueue(&mut self, id: u32, port_index: u32) {
        let port = &mut self.ports[port_index as usize];
        let seq = port.seq;
        port.seq = port.seq.wrapping_add(1);
        let tlp = self.tlps.get_mut(id);
        tlp.seq = seq;
        tlp.port = port_index;
        tlp.next = NONE;
        let class = tlp.class as usize;
        if port.fifo {
            if port.exposed[class] != NONE {
                let (head, tail) = port.staged[class];
                if head == NONE {
                    port.staged[class] = (id, id);
                } else {
                    self.tlps.get_mut(tail).next = id;
                    port.staged[class].1 = id;
                }
                return;
            }
            port.exposed[class] = id;
        }
        self.join_queue(id);
    }

    /// Puts a TLP at the end of the queue for its edge.
    #[inline]
    fn join_queue(&mut self, id: u32) {
        let tlp = self.tlps.get_mut(id);
        let (class, port) = (tlp.class as usize, tlp.port);
        let edge_index = self.routes.hops[tlp.hop as usize];
        let next = self.routes.hops[tlp.hop as usize + 1];
        let edge = &mut self.edges[edge_index as usize];
        tlp.next_pool = match (edge.pools.len(), next) {
            (1, _) => 0,
            (pools, NONE) => pools as u32 - 1,
            _ => self.egress[next as usize],
        };
        let index = port - edge.first_port;
        let port_queue = &mut self.port_queues[(edge.first_queue + index) as usize];
        let tail = port_queue.tail[class];
        port_queue.tail[class] = id;
        if port_queue.head[class] == NONE {
            let was_empty = port_queue.head == [NONE; 3];
            port_queue.head[class] = id;
            if was_empty {
                edge.active.push(index);
                // A port that comes back has no claim on what it did not use.
                port_queue.served = port_queue.served.max(edge.served);
            }
            self.try_send(edge_index);
        } else {
            self.tlps.get_mut(tail).next = id;
        }
    }
}

/// What an agent says of a TLP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft {
    pub(crate) kind: TlpKind,
    pub(crate) payload: u16,
    pub(crate) asks: u16,
    pub(crate) owner: u32,
    pub(crate) tag: u32,
    pub(crate) reply: u32,
    pub(crate) last: bool,
    pub(crate) on_chip: bool,
}

impl Draft {
    pub(crate) fn new(kind: TlpKind, payload: u32, owner: u32) -> Self {
        Self {
            kind,
            payload: payload as u16,
            asks: 0,
            owner,
            tag: 0,
            reply: NONE,
            last: false,
            on_chip: false,
        }
    }
}
