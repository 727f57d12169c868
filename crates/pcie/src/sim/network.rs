//! TLPs between ports: queues, arbitration, credits, flight. It knows no DMA engine and no host.

use std::collections::HashMap;

use dray_clock::{EventQueue, Lane as EventLane, Time};

use super::edge::{CreditReturn, EdgeState, limit, ps, span};
use super::tlp::{Class, NONE, Tlp, TlpKind, TlpStore};
use super::trace::Hop;
use super::{Arbiter, SimulationOptions};
use crate::PcieError;
use crate::topology::{Edge, NodeId, NodeKind, QueueOrganisation, Topology};

/// Something that happens at a time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
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
pub(super) enum AgentEvent {
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
struct Lane {
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
    /// Queues in front of the lanes, with one FIFO per port.
    staged: [(u32, u32); 3],
    /// The head of each such FIFO, which is in a lane.
    exposed: [u32; 3],
    /// Payload that waits, bytes; kept for agents.
    bytes: u64,
    /// Whether an agent wants to know when TLPs leave.
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

/// A route in the table of hops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    pub(super) first: u32,
    pub(super) mps: u32,
    pub(super) mrrs: u32,
}

#[derive(Debug)]
pub(super) struct Network {
    pub(super) now: u64,
    pub(super) tlps: TlpStore,
    pub(super) edges: Vec<EdgeState>,
    /// Ports of agents from which TLPs left while they were watched.
    pub(super) freed: Vec<u32>,
    pub(super) hops_done: u64,
    pub(super) trace: Option<Vec<Hop>>,
    trace_limit: usize,
    events: EventQueue<Event>,
    lanes: Vec<Lane>,
    ports: Vec<Port>,
    first_ports: Vec<u32>,
    inputs: Vec<u32>,
    peers: Vec<PeerStage>,
    /// Of each edge: the node that receives, if that is a socket with a peer-to-peer limit.
    peer_of: Vec<u32>,
    between_sockets: Vec<bool>,
    /// Of each edge: its place among the outputs of its sender.
    egress: Vec<u32>,
    /// Of each edge: the lane of its arrivals, which come nearly in order.
    arrivals: Vec<EventLane>,
    hops: Vec<u32>,
    routes: Vec<Route>,
    known: HashMap<(NodeId, NodeId), u32>,
    /// Of each edge: how its sender chooses.
    arbiters: Vec<Arbiter>,
}

impl Network {
    /// A network in which node `i` has `agents[i]` ports for agents.
    pub(super) fn new(topology: &Topology, agents: &[u32], options: &SimulationOptions) -> Self {
        let queues_of = |node: NodeId| options.queues.unwrap_or(topology.node(node).queues);
        let edge_state = |edge: &Edge| EdgeState::new(topology, edge, queues_of(edge.to));
        let mut edges: Vec<EdgeState> = topology.edges().iter().map(edge_state).collect();
        let mut ports = Vec::new();
        let mut lanes = Vec::new();
        let mut first_ports = Vec::new();
        let mut peers = Vec::new();
        let mut peer_of = vec![NONE; edges.len()];
        for (index, node) in topology.nodes().iter().enumerate() {
            let first = ports.len() as u32;
            first_ports.push(first);
            let queues = options.queues.unwrap_or(node.queues);
            let count = node.inputs.len() + agents[index] as usize;
            for port in 0..count {
                ports.push(Port {
                    fifo: queues == QueueOrganisation::Fifo && port < node.inputs.len(),
                    seq: 0,
                    staged: [(NONE, NONE); 3],
                    exposed: [NONE; 3],
                    bytes: 0,
                    watched: false,
                });
            }
            for (port, edge) in node.inputs.iter().enumerate() {
                edges[edge.0 as usize].port = first + port as u32;
            }
            for edge in &node.outputs {
                let edge = &mut edges[edge.0 as usize];
                edge.first_lane = lanes.len() as u32;
                edge.first_port = first;
                let lane = Lane {
                    head: [NONE; 3],
                    tail: [NONE; 3],
                    served: 0,
                    last: 0,
                };
                lanes.resize(lanes.len() + count, lane);
            }
            let mut stage = PeerStage::default();
            if let NodeKind::Socket { parameters, .. } = &node.kind {
                stage.write_ps_per_byte = limit(parameters.peer_write_gib_s);
                stage.read_ps = ps(parameters.peer_read_ns);
                for edge in &node.inputs {
                    peer_of[edge.0 as usize] = index as u32;
                }
            }
            peers.push(stage);
        }
        let between_sockets = topology
            .edges()
            .iter()
            .map(|edge| topology.link(edge.link).generation == 0)
            .collect();
        let mut events = EventQueue::new();
        let arrivals = edges.iter().map(|_| events.lane()).collect();
        Self {
            now: 0,
            tlps: TlpStore::default(),
            edges,
            freed: Vec::new(),
            hops_done: 0,
            trace: options.trace.then(Vec::new),
            trace_limit: options.trace_limit,
            events,
            arrivals,
            egress: topology
                .edges()
                .iter()
                .map(|edge| edge.egress_port)
                .collect(),
            lanes,
            ports,
            first_ports,
            inputs: topology
                .nodes()
                .iter()
                .map(|node| node.inputs.len() as u32)
                .collect(),
            peers,
            peer_of,
            between_sockets,
            hops: Vec::new(),
            routes: Vec::new(),
            known: HashMap::new(),
            arbiters: topology
                .edges()
                .iter()
                .map(|edge| options.arbiter.unwrap_or(topology.node(edge.from).arbiter))
                .collect(),
        }
    }

    /// The route between two nodes; found once.
    pub(super) fn route_between(
        &mut self,
        topology: &Topology,
        from: NodeId,
        to: NodeId,
    ) -> Result<u32, PcieError> {
        if let Some(route) = self.known.get(&(from, to)) {
            return Ok(*route);
        }
        let path = topology.route(from, to)?;
        let id = self.routes.len() as u32;
        let first = path[0].0 as usize;
        // A device's requests are as long as its own link allows.
        let mrrs = |edge: usize| topology.link(topology.edges()[edge].link).mrrs;
        self.routes.push(Route {
            first: self.hops.len() as u32,
            mps: topology.path_mps(&path),
            mrrs: mrrs(first),
        });
        self.hops.extend(path.iter().map(|edge| edge.0));
        self.hops.push(NONE);
        self.known.insert((from, to), id);
        Ok(id)
    }

    #[inline]
    pub(super) fn route(&self, route: u32) -> Route {
        self.routes[route as usize]
    }

    /// Number of the `index`-th port for agents of a node.
    pub(super) fn agent_port(&self, node: NodeId, index: u32) -> u32 {
        self.first_ports[node.0 as usize] + self.inputs[node.0 as usize] + index
    }

    /// Number of ports of all nodes.
    pub(super) fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Payload that waits at an agent's port, bytes.
    #[inline]
    pub(super) fn waiting(&self, port: u32) -> u64 {
        self.ports[port as usize].bytes
    }

    /// Asks for the port to be listed in [`Network::freed`] when a TLP leaves it.
    #[inline]
    pub(super) fn watch(&mut self, port: u32) {
        self.ports[port as usize].watched = true;
    }

    #[inline]
    pub(super) fn schedule(&mut self, at: u64, event: AgentEvent, id: u32) {
        self.events.schedule(Time(at), Event::Agent(event, id));
    }

    /// The next event, unless it is after `end`; time moves to it.
    #[inline]
    pub(super) fn next(&mut self, end: u64) -> Option<Event> {
        if self.events.next_time()?.0 > end {
            return None;
        }
        let (at, event) = self.events.pop()?;
        self.now = at.0;
        Some(event)
    }

    /// Puts a TLP into an agent's port.
    #[inline]
    pub(super) fn inject(&mut self, port: u32, route: u32, draft: Draft) {
        let class = draft.kind.class();
        let header = match class {
            Class::Completion => crate::topology::COMPLETION_HEADER,
            _ => crate::topology::WRITE_HEADER,
        };
        let tlp = Tlp {
            next: NONE,
            hop: self.routes[route as usize].first,
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
    pub(super) fn arrive(&mut self, id: u32) -> Option<u32> {
        let tlp = self.tlps.get(id);
        let next = self.hops[tlp.hop as usize];
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
    pub(super) fn enqueue_here(&mut self, id: u32) {
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
        self.join_lane(id);
    }

    /// Puts a TLP at the end of the lane for its edge.
    #[inline]
    fn join_lane(&mut self, id: u32) {
        let tlp = self.tlps.get_mut(id);
        let (class, port) = (tlp.class as usize, tlp.port);
        let edge_index = self.hops[tlp.hop as usize];
        let next = self.hops[tlp.hop as usize + 1];
        let edge = &mut self.edges[edge_index as usize];
        tlp.next_pool = match (edge.pools.len(), next) {
            (1, _) => 0,
            (pools, NONE) => pools as u32 - 1,
            _ => self.egress[next as usize],
        };
        let index = port - edge.first_port;
        let lane = &mut self.lanes[(edge.first_lane + index) as usize];
        let tail = lane.tail[class];
        lane.tail[class] = id;
        if lane.head[class] == NONE {
            lane.head[class] = id;
            let bit = 1u128 << index;
            if edge.active & bit == 0 {
                edge.active |= bit;
                // A port that comes back has no claim on what it did not use.
                lane.served = lane.served.max(edge.served);
            }
            self.try_send(edge_index);
        } else {
            self.tlps.get_mut(tail).next = id;
        }
    }

    /// Sends a TLP over an edge if it is free, or sees to it that it is tried later.
    #[inline]
    pub(super) fn try_send(&mut self, edge_index: u32) {
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
    pub(super) fn woken(&mut self, edge_index: u32) {
        let edge = &mut self.edges[edge_index as usize];
        if edge.wake_at == self.now {
            edge.wake_at = u64::MAX;
            self.try_send(edge_index);
        }
    }

    #[inline]
    fn wake(&mut self, edge_index: u32, at: u64) {
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

    /// Sends a TLP over a free edge.
    #[inline]
    fn send(&mut self, edge_index: u32, lane_index: u32, id: u32) {
        let now = self.now;
        let edge = &mut self.edges[edge_index as usize];
        let tlp = self.tlps.get_mut(id);
        let class = tlp.class as usize;
        edge.blocked = false;
        edge.take_credits(tlp);
        let wire = u64::from(tlp.wire + edge.framing);
        let mut end = now + span(wire, edge.ps_per_byte);
        if tlp.tail_at > end {
            end = tlp.tail_at;
        }
        edge.busy_until = end;
        edge.busy += end - now;
        edge.carried += u64::from(tlp.payload);

        let lane = &mut self.lanes[lane_index as usize];
        // What was not used for want of credits is made up for by at most 4 KiB.
        let started = lane.served.max(edge.served.saturating_sub(64));
        edge.served = edge.served.max(started);
        lane.served = started
            + match self.arbiters[edge_index as usize] {
                Arbiter::LeastServed => u64::from(tlp.wire).div_ceil(64),
                Arbiter::RoundRobin | Arbiter::OldestFirst => 1,
            };
        lane.last = self.hops_done;
        lane.head[class] = tlp.next;
        if tlp.next == NONE {
            lane.tail[class] = NONE;
            if lane.head == [NONE; 3] {
                edge.active &= !(1u128 << (lane_index - edge.first_lane));
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
        let ends = self.hops[tlp.hop as usize] == NONE;
        let ready = if ends {
            let mut sink = edge.sink;
            if tlp.on_chip && class != Class::Completion as usize {
                sink -= edge.on_chip.min(sink);
            }
            end + flight + sink
        } else if edge.store_and_forward {
            end + flight + edge.forward
        } else {
            now + flight + edge.forward
        };
        tlp.tail_at = end + flight + edge.forward;
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
        if self.edges[edge_index as usize].active != 0 {
            self.wake(edge_index, end);
        }
        self.left(port_index, came_by, class, end, credit, payload);
    }

    /// A TLP has left a port: its room goes back to who sent it.
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
                self.join_lane(head);
            }
            if class == Class::Posted as usize {
                // What was held up behind it may wait for other edges.
                for other in [Class::NonPosted, Class::Completion] {
                    let held = self.ports[port_index as usize].exposed[other as usize];
                    if held != NONE {
                        let edge = self.hops[self.tlps.get(held).hop as usize];
                        self.try_send(edge);
                    }
                }
            }
        }
    }

    /// Ends a TLP: its credits go back when its bytes are taken at `at`.
    #[inline]
    pub(super) fn consume(&mut self, id: u32, at: u64) -> Tlp {
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

    /// Checks that no credit was made or lost, and that none is below zero.
    pub(super) fn audit(&self) -> Result<(), String> {
        for (index, edge) in self.edges.iter().enumerate() {
            let mut pools = edge.pools.clone();
            for pool in &pools {
                if pool
                    .headers
                    .iter()
                    .chain(&pool.data)
                    .any(|count| *count < 0)
                {
                    return Err(format!("edge {index} has fewer than no credits"));
                }
            }
            for back in &edge.returns {
                let pool = &mut pools[back.pool as usize];
                pool.headers[back.class as usize] += 1;
                pool.data[back.class as usize] += back.data;
            }
            let here = |tlp: &&Tlp| tlp.came_by == index as u32;
            for tlp in self.tlps.iter_alive().filter(here) {
                let pool = &mut pools[tlp.pool as usize];
                pool.headers[tlp.class as usize] += 1;
                pool.data[tlp.class as usize] += tlp.data_credits();
            }
            if let Some(wrong) = pools.iter().find(|pool| **pool != edge.full) {
                return Err(format!(
                    "edge {index}: {wrong:?} of {:?} are accounted for",
                    edge.full
                ));
            }
        }
        Ok(())
    }
}

/// What an agent says of a TLP.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draft {
    pub(super) kind: TlpKind,
    pub(super) payload: u16,
    pub(super) asks: u16,
    pub(super) owner: u32,
    pub(super) tag: u32,
    pub(super) reply: u32,
    pub(super) last: bool,
    pub(super) on_chip: bool,
}

impl Draft {
    pub(super) fn new(kind: TlpKind, payload: u32, owner: u32) -> Self {
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
