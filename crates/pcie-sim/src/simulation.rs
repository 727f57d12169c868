//! A simulation: what is in it, and its loop.

use super::device::{Completer, Request};
use super::edge::ps;
use super::engine::Engine;
use super::network::{AgentEvent, Event, Network};
use super::source::SourceState;
use super::stream_state::{StreamState, Transfer};
use super::tlp::{NONE, TlpKind};
use super::trace::{self, Hop, TransferSpan};
use super::{Profile, SimulationOptions, Source, Stream};
use dray_topology::PcieError;
use dray_topology::{NodeId, NodeKind, Topology};

/// Ports of an endpoint's agents.
pub(super) const PORT_DATA: u32 = 0;
pub(super) const PORT_READS: u32 = 1;
pub(super) const PORT_COMPLETER: u32 = 2;
pub(super) const PORT_WORDS: u32 = 3;
/// Ports of a socket's agents.
pub(super) const PORT_CORES: u32 = 0;
pub(super) const PORT_MEMORY: u32 = 1;
/// Where the ports of sources begin.
pub(super) const PORT_SOURCES: u32 = 4;

/// The agent that fills a port and waits for room in it.
#[derive(Debug, Clone, Copy)]
enum Owner {
    None,
    Engine(u32),
    Source(u32),
}

/// A fabric at work.
#[derive(Debug)]
pub struct Simulation<'a> {
    pub(super) topology: &'a Topology,
    pub(super) network: Network,
    pub(super) streams: Vec<StreamState>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) free_transfers: Vec<u32>,
    pub(super) open: u64,
    pub(super) engines: Vec<Engine>,
    pub(super) completers: Vec<Completer>,
    pub(super) requests: Vec<Request>,
    pub(super) free_requests: Vec<u32>,
    pub(super) sources: Vec<SourceState>,
    pub(super) finished: Vec<(u64, [u64; 6])>,
    pub(super) next_ticket: u64,
    pub(super) warmup: u64,
    pub(super) interval: u64,
    pub(super) spans: Option<Vec<TransferSpan>>,
    pub(super) span_limit: usize,
    end: u64,
    owners: Vec<Owner>,
}

/// What a stream did.
#[derive(Debug, Clone)]
pub struct StreamResult {
    /// Name of the stream.
    pub name: String,
    /// Transfers that were asked for after the warm-up and are complete.
    pub completed: u64,
    /// Payload delivered after the warm-up, bytes.
    pub bytes: u64,
    /// The same per second, GiB/s.
    pub gib_s: f64,
    /// Durations by phase.
    pub profile: Profile,
    /// Payload delivered in each interval from the start on, bytes.
    pub intervals: Vec<u64>,
    /// Mean number of transfers in flight between warm-up and end.
    pub mean_in_flight: f64,
}

/// What a source did.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceResult {
    /// Name of the source.
    pub name: String,
    /// Bytes sent since the start.
    pub sent: u64,
    /// Bytes delivered since the start.
    pub delivered: u64,
    /// Bytes delivered after the warm-up per second, GiB/s.
    pub gib_s: f64,
    /// When the last of its bytes arrived, ns; `None` without an end, or before it.
    pub ended_ns: Option<u64>,
}

/// How much an edge was used.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeUse {
    /// Name of the edge.
    pub name: String,
    /// Payload since the start, bytes.
    pub bytes: u64,
    /// Share of the time in which it sent.
    pub busy: f64,
}

impl<'a> Simulation<'a> {
    /// A simulation of these streams and sources.
    ///
    /// # Errors
    ///
    /// A stream or source that cannot be: nodes of the wrong kind, no path, no engine, a length of
    /// zero or of no multiple of 64.
    pub fn new(
        topology: &'a Topology,
        streams: &[Stream],
        sources: &[Source],
        options: &SimulationOptions,
    ) -> Result<Self, PcieError> {
        let nodes = topology.nodes().len();
        let mut agents = vec![PORT_SOURCES; nodes];
        let own_ports: Vec<u32> = sources
            .iter()
            .map(|source| {
                let ports = &mut agents[source.starts().0 as usize];
                *ports += 1;
                *ports - 1
            })
            .collect();
        let mut network = Network::new(topology, &agents, options);
        let mut engines = Vec::new();
        let mut engine_of = vec![NONE; nodes];
        let mut completers = Vec::with_capacity(nodes);
        for (index, node) in topology.nodes().iter().enumerate() {
            completers.push(Completer::new(&node.kind));
            if let NodeKind::Endpoint { parameters, .. } = &node.kind
                && let Some(engine) = &parameters.engine
            {
                engine_of[index] = engines.len() as u32;
                engines.push(Engine::new(NodeId(index as u32), engine));
            }
        }
        let mut states = Vec::with_capacity(streams.len());
        for (index, stream) in streams.iter().enumerate() {
            let seed = options.seed;
            states.push(StreamState::new(
                topology,
                &mut network,
                stream,
                index,
                seed,
                &engine_of,
                &engines,
            )?);
        }
        let mut source_states = Vec::with_capacity(sources.len());
        for (source, own) in sources.iter().zip(own_ports) {
            let port = network.agent_port(source.starts(), own);
            source_states.push(SourceState::new(topology, &mut network, source, port)?);
        }
        let mut owners = vec![Owner::None; network.port_count()];
        for (index, engine) in engines.iter().enumerate() {
            owners[network.agent_port(engine.node, PORT_DATA) as usize] =
                Owner::Engine(index as u32);
        }
        for (index, source) in source_states.iter().enumerate() {
            owners[source.port as usize] = Owner::Source(index as u32);
        }
        for (index, state) in states.iter().enumerate() {
            let at = ps(state.stream.start_ns as f64);
            network.schedule(at, AgentEvent::Arrival, index as u32);
        }
        for (index, source) in sources.iter().enumerate() {
            network.schedule(
                ps(source.start_ns as f64),
                AgentEvent::SourceSend,
                index as u32,
            );
        }
        Ok(Self {
            topology,
            network,
            streams: states,
            transfers: Vec::with_capacity(1024),
            free_transfers: Vec::with_capacity(1024),
            open: 0,
            engines,
            completers,
            requests: Vec::with_capacity(1024),
            free_requests: Vec::with_capacity(1024),
            sources: source_states,
            finished: Vec::new(),
            next_ticket: 0,
            warmup: ps(options.warmup_ns as f64),
            interval: ps(options.interval_ns as f64),
            spans: options.trace.then(Vec::new),
            span_limit: options.trace_limit,
            end: 0,
            owners,
        })
    }

    /// Runs until `end_ns`.
    ///
    /// # Errors
    ///
    /// Nothing more can happen although transfers are open: a deadlock.
    pub fn run_until(&mut self, end_ns: u64) -> Result<(), PcieError> {
        let end = ps(end_ns as f64);
        while let Some(event) = self.network.next(end) {
            self.handle(event);
        }
        self.end = end;
        self.network.now = self.network.now.max(end);
        Ok(())
    }

    /// Handles the next event; gives whether there was one before `limit_ns`.
    pub fn step(&mut self, limit_ns: u64) -> bool {
        match self.network.next(ps(limit_ns as f64)) {
            Some(event) => {
                self.handle(event);
                self.end = self.network.now;
                true
            }
            None => false,
        }
    }

    /// Runs until every stream and source with a count is done.
    ///
    /// # Errors
    ///
    /// Nothing more can happen although transfers are open, or `limit_ns` is reached.
    pub fn run_to_end(&mut self, limit_ns: u64) -> Result<(), PcieError> {
        let limit = ps(limit_ns as f64);
        while let Some(event) = self.network.next(limit) {
            self.handle(event);
        }
        self.end = self.network.now;
        let undelivered = self
            .sources
            .iter()
            .filter(|source| !source.is_done())
            .count() as u64;
        let waiting: u64 = self.streams.iter().map(StreamState::not_submitted).sum();
        let open = self.open + undelivered + waiting;
        if open == 0 {
            return Ok(());
        }
        Err(PcieError::Stuck {
            topology: self.topology.name.clone(),
            at_ns: self.network.now / 1000,
            open,
            why: match self.audit() {
                Ok(()) => format!("{} TLPs are under way", self.network.tlps.alive),
                Err(why) => why,
            },
        })
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(id) => {
                if let Some(id) = self.network.arrive(id) {
                    self.deliver(id);
                }
            }
            Event::Enqueue(id) => self.network.enqueue_here(id),
            Event::Wake(edge) => self.network.woken(edge),
            Event::Agent(event, id) => match event {
                AgentEvent::Arrival => self.arrival(id),
                AgentEvent::Doorbell => self.doorbell(id),
                AgentEvent::CommandReady => self.command_ready(id),
                AgentEvent::EngineWrite => self.engine_write(id),
                AgentEvent::EngineRead => self.engine_read(id),
                AgentEvent::PieceDone => self.piece_done(id),
                AgentEvent::Respond => self.respond(id),
                AgentEvent::LastWritten => self.last_written(id),
                AgentEvent::Complete => self.complete(id),
                AgentEvent::SourceSend => self.source_send(id),
            },
        }
        while let Some(port) = self.network.freed.pop() {
            self.port_freed(port);
        }
    }

    /// A TLP has reached the agent it is for.
    fn deliver(&mut self, id: u32) {
        let kind = self.network.tlps.get(id).kind;
        match kind {
            TlpKind::Doorbell => self.doorbell_delivered(id),
            TlpKind::MmioWrite => self.mmio_written(id),
            TlpKind::MmioRead | TlpKind::DmaRead | TlpKind::SourceRead => {
                self.read_requested(id);
            }
            TlpKind::MmioData => self.mmio_data(id),
            TlpKind::DmaWrite => self.data_written(id),
            TlpKind::DmaData => self.data_read(id),
            TlpKind::CompletionWord => self.word_stored(id),
            TlpKind::Source | TlpKind::SourceData => self.source_delivered(id),
        }
    }

    /// A port that an agent watched has more room.
    fn port_freed(&mut self, port: u32) {
        match self.owners[port as usize] {
            Owner::None => {}
            Owner::Engine(engine) => self.engine_write(engine),
            Owner::Source(source) => self.source_send(source),
        }
    }

    /// Counts payload of a stream that has arrived.
    pub(super) fn count_payload(&mut self, stream: u32, bytes: u64) {
        let now = self.network.now;
        let state = &mut self.streams[stream as usize];
        if now >= self.warmup {
            state.bytes += bytes;
        }
        if let Some(interval) = now.checked_div(self.interval) {
            let interval = interval as usize;
            if state.intervals.len() <= interval {
                state.intervals.resize(interval + 1, 0);
            }
            state.intervals[interval] += bytes;
        }
    }

    /// Checks that credits are neither made nor lost nor below zero, on every edge and class, and that no edge is idle
    /// while a TLP can go over it.
    ///
    /// # Errors
    ///
    /// What does not add up.
    pub fn audit(&self) -> Result<(), String> {
        self.network.audit()
    }

    /// TLPs sent over an edge so far.
    pub fn tlp_hops(&self) -> u64 {
        self.network.hops_done
    }

    /// TLPs that are neither delivered nor waiting to be made.
    pub fn tlps_in_flight(&self) -> u32 {
        self.network.tlps.alive
    }

    /// Virtual time, ps.
    pub fn now_ps(&self) -> u64 {
        self.network.now
    }

    fn seconds(&self) -> f64 {
        self.end.saturating_sub(self.warmup) as f64 / 1e12
    }

    /// What the streams did, in their order.
    pub fn streams(&self) -> Vec<StreamResult> {
        let seconds = self.seconds();
        let result = |state: &StreamState| StreamResult {
            name: state.stream.name.clone(),
            completed: state.completed,
            bytes: state.bytes,
            gib_s: rate(state.bytes, seconds),
            profile: state.profile.clone(),
            intervals: state.intervals.clone(),
            mean_in_flight: state.mean_in_flight(self.warmup, self.end),
        };
        self.streams.iter().map(result).collect()
    }

    /// What the sources did, in their order.
    pub fn sources(&self) -> Vec<SourceResult> {
        let seconds = self.seconds();
        let result = |state: &SourceState| SourceResult {
            name: state.name.clone(),
            sent: state.sent,
            delivered: state.delivered,
            gib_s: rate(state.counted, seconds),
            ended_ns: state.ended.map(|at| at.div_ceil(1000)),
        };
        self.sources.iter().map(result).collect()
    }

    /// How much each edge was used, in the order of the topology.
    pub fn edges(&self) -> Vec<EdgeUse> {
        let edges = self.topology.edges().iter().zip(&self.network.edges);
        edges
            .map(|(edge, state)| EdgeUse {
                name: edge.name.clone(),
                bytes: state.carried,
                busy: state.busy as f64 / self.end.max(1) as f64,
            })
            .collect()
    }

    /// The TLPs that were recorded.
    pub fn hops(&self) -> &[Hop] {
        self.network.trace.as_deref().unwrap_or_default()
    }

    /// The transfers that were recorded.
    pub fn spans(&self) -> &[TransferSpan] {
        self.spans.as_deref().unwrap_or_default()
    }

    /// What was recorded as JSON in the Chrome trace format, which Perfetto reads.
    pub fn to_perfetto(&self) -> String {
        let names: Vec<String> = self
            .streams
            .iter()
            .map(|state| state.stream.name.clone())
            .collect();
        trace::perfetto(self.topology, self.hops(), self.spans(), &names)
    }
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 / seconds / (1u64 << 30) as f64
    } else {
        0.0
    }
}
