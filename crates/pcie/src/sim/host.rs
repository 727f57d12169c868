//! Cores: they submit transfers, ring doorbells, load and store device memory, and poll.

use std::collections::VecDeque;

use super::edge::ps;
use super::engine::Engine;
use super::network::{AgentEvent, Draft, Network};
use super::profile::Profile;
use super::random::Gaps;
use super::scheduler::SubmissionScheduler;
use super::simulation::{PORT_CORES, Simulation};
use super::tlp::{NONE, TlpKind};
use super::trace::TransferSpan;
use super::{Arrival, Memory, Operation, Stream};
use crate::PcieError;
use crate::topology::{NodeKind, Topology};

/// Bytes of a doorbell.
const DOORBELL_BYTES: u32 = 8;
/// Bytes of a line that a core loads or stores at a time.
const LINE: u64 = 64;
/// Ticket of a transfer that nobody asked for by call.
const NO_TICKET: u64 = u64::MAX;
/// Longest transfer.
const MAX_BYTES: u64 = 1 << 40;

/// A transfer in flight.
#[derive(Debug, Clone)]
pub(super) struct Transfer {
    pub(super) stream: u32,
    pub(super) queue: u32,
    /// Bytes of each element of its list, and of all.
    pub(super) bytes: u64,
    pub(super) total: u64,
    ticket: u64,
    /// Bytes that have not arrived yet, of those a piece or a line stands for.
    pub(super) left: u64,
    pub(super) stamps: [u64; 6],
}

/// A transfer that is asked for and not yet submitted.
#[derive(Debug, Clone, Copy)]
struct Asked {
    at: u64,
    bytes: u64,
    total: u64,
    queue: Option<u32>,
    ticket: u64,
}

#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) stream: Stream,
    /// Index of the device's engine.
    pub(super) engine: u32,
    /// From the host to the device.
    pub(super) to_device: u32,
    /// From the device that signals completion to the host.
    pub(super) to_host: u32,
    /// The way of the engine's data or requests, and of the answers.
    pub(super) data: u32,
    pub(super) reply: u32,
    pub(super) bytes: u64,
    pub(super) completed: u64,
    pub(super) intervals: Vec<u64>,
    pub(super) profile: Profile,
    port: u32,
    submit: u64,
    poll: u64,
    backlog: VecDeque<Asked>,
    scheduler: Box<dyn SubmissionScheduler + Send>,
    gaps: Gaps,
    core_free: u64,
    in_flight: u32,
    asked: u64,
    submitted: u64,
    /// Transfers in flight times ps since the warm-up, and when that was last counted.
    area: u128,
    counted_at: u64,
}

impl StreamState {
    #[allow(
        clippy::too_many_arguments,
        reason = "what a stream is checked against"
    )]
    pub(super) fn new(
        topology: &Topology,
        network: &mut Network,
        stream: &Stream,
        index: usize,
        seed: u64,
        engine_of: &[u32],
        engines: &[Engine],
    ) -> Result<Self, PcieError> {
        let host = check(topology, stream)?;
        let fail = |rule: String| transfer_error(stream, rule);
        let engine = engine_of[stream.device.0 as usize];
        if !stream.operation.is_mmio() {
            let name = &topology.node(stream.device).name;
            let Some(engine) = engines.get(engine as usize) else {
                return Err(fail(format!(
                    "`{name}` has no DMA engine; name a [[device]] with [device.engine]"
                )));
            };
            if let super::Scheduling::Fixed(queue) = stream.scheduling
                && queue >= engine.parameters.queues
            {
                let rule = format!(
                    "queue {queue} of `{name}`, which has {}",
                    engine.parameters.queues
                );
                return Err(fail(rule));
            }
        }
        let mut between = |from, to| network.route_between(topology, from, to);
        let (host_node, device) = (stream.host, stream.device);
        let to_device = between(host_node, device)?;
        let from_device = between(device, host_node)?;
        let (data, reply, to_host) = match (stream.operation, stream.peer) {
            (Operation::DeviceWrite, Some(peer)) => {
                (between(device, peer)?, NONE, between(peer, host_node)?)
            }
            (Operation::DeviceRead, Some(peer)) => {
                (between(device, peer)?, between(peer, device)?, from_device)
            }
            _ => (from_device, to_device, from_device),
        };
        let mmio = stream.operation.is_mmio();
        Ok(Self {
            stream: stream.clone(),
            engine,
            to_device,
            to_host,
            data,
            reply,
            bytes: 0,
            completed: 0,
            intervals: Vec::new(),
            profile: Profile::default(),
            port: network.agent_port(host_node, PORT_CORES),
            submit: if mmio { 0 } else { ps(host.submit_ns) },
            poll: if mmio { 0 } else { ps(host.poll_ns) },
            backlog: VecDeque::new(),
            scheduler: stream.scheduling.build(),
            gaps: Gaps::new(seed, index as u64),
            core_free: 0,
            in_flight: 0,
            asked: 0,
            submitted: 0,
            area: 0,
            counted_at: 0,
        })
    }

    /// Transfers that a stream with an end has still to submit.
    pub(super) fn not_submitted(&self) -> u64 {
        match self.stream.count {
            0 => self.backlog.len() as u64,
            count => count - self.submitted,
        }
    }

    /// A transfer as the stream describes it.
    fn one(&self, at: u64) -> Asked {
        Asked {
            at,
            bytes: self.stream.bytes,
            total: self.stream.bytes * u64::from(self.stream.batch),
            queue: None,
            ticket: NO_TICKET,
        }
    }

    fn change_in_flight(&mut self, change: i32, now: u64, warmup: u64) {
        let from = self.counted_at.max(warmup);
        self.area += u128::from(now.saturating_sub(from)) * u128::from(self.in_flight);
        self.counted_at = now;
        self.in_flight = self.in_flight.wrapping_add_signed(change);
    }

    pub(super) fn mean_in_flight(&self, warmup: u64, end: u64) -> f64 {
        let rest = end.saturating_sub(self.counted_at.max(warmup));
        let area = self.area + u128::from(rest) * u128::from(self.in_flight);
        area as f64 / end.saturating_sub(warmup).max(1) as f64
    }
}

fn transfer_error(stream: &Stream, rule: String) -> PcieError {
    PcieError::Transfer {
        transfer: format!("{} `{}`", stream.operation.name(), stream.name),
        rule,
    }
}

/// The rules of the benchmark's calls.
fn check<'a>(
    topology: &'a Topology,
    stream: &Stream,
) -> Result<&'a crate::topology::HostParameters, PcieError> {
    let fail = |rule: String| Err(transfer_error(stream, rule));
    let name = |node| &topology.node(node).name;
    let NodeKind::Socket { parameters, .. } = &topology.node(stream.host).kind else {
        return fail(format!("`{}` is not a host", name(stream.host)));
    };
    for node in [Some(stream.device), stream.peer].into_iter().flatten() {
        if !matches!(topology.node(node).kind, NodeKind::Endpoint { .. }) {
            return fail(format!("`{}` is not an endpoint", name(node)));
        }
    }
    match (stream.operation.has_peer(), stream.peer) {
        (true, None) => return fail("needs a second device".to_owned()),
        (true, Some(peer)) if peer == stream.device => {
            return fail(format!("`{}` is both devices", name(peer)));
        }
        _ => {}
    }
    let bytes = stream.bytes;
    if bytes == 0 {
        return fail("a length of 0 bytes; the shortest is 64".to_owned());
    }
    let short_mmio = stream.operation.is_mmio() && matches!(bytes, 8 | 16 | 32);
    if !bytes.is_multiple_of(LINE) && !short_mmio {
        return fail(format!("a length of {bytes} bytes is no multiple of 64"));
    }
    if bytes.saturating_mul(u64::from(stream.batch)) > MAX_BYTES {
        return fail(format!(
            "{} transfers of {bytes} bytes are more than 1 TiB",
            stream.batch
        ));
    }
    if stream.chunk == 0 || !stream.chunk.is_multiple_of(LINE as u32) {
        return fail(format!(
            "a chunk of {} bytes is no multiple of 64",
            stream.chunk
        ));
    }
    if stream.batch == 0 || stream.outstanding == 0 {
        return fail("batch and outstanding are at least 1".to_owned());
    }
    match stream.arrival {
        Arrival::Every { gap_ns: 0 }
        | Arrival::Random { mean_gap_ns: 0 }
        | Arrival::Burst { gap_ns: 0, .. }
        | Arrival::Burst { count: 0, .. } => fail("a gap or burst of 0".to_owned()),
        _ => Ok(parameters),
    }
}

impl Simulation<'_> {
    /// Adds a stream; gives its index.
    ///
    /// # Errors
    ///
    /// As [`Simulation::new`].
    pub fn add_stream(&mut self, stream: &Stream, seed: u64) -> Result<u32, PcieError> {
        let mut engine_of = vec![NONE; self.topology.nodes().len()];
        for (index, engine) in self.engines.iter().enumerate() {
            engine_of[engine.node.0 as usize] = index as u32;
        }
        let index = self.streams.len();
        let network = &mut self.network;
        let state = StreamState::new(
            self.topology,
            network,
            stream,
            index,
            seed,
            &engine_of,
            &self.engines,
        )?;
        self.streams.push(state);
        let at = self.network.now.max(ps(stream.start_ns as f64));
        self.network.schedule(at, AgentEvent::Arrival, index as u32);
        Ok(index as u32)
    }

    /// Asks for `count` transfers of `bytes` each as one submission of a stream whose arrival is
    /// [`Arrival::OnCall`], on a queue or on one that the stream's scheduler chooses. Gives the
    /// ticket under which [`Simulation::take_finished`] lists it.
    ///
    /// # Errors
    ///
    /// A length that is zero or no multiple of 64, a queue that the engine does not have.
    pub fn ask(
        &mut self,
        stream: u32,
        bytes: u64,
        count: u32,
        queue: Option<u32>,
    ) -> Result<u64, PcieError> {
        let state = &mut self.streams[stream as usize];
        let asked = Stream {
            bytes,
            batch: count,
            scheduling: queue.map_or(state.stream.scheduling, super::Scheduling::Fixed),
            ..state.stream.clone()
        };
        check(self.topology, &asked)?;
        if let (Some(queue), Some(engine)) = (queue, self.engines.get(state.engine as usize))
            && queue >= engine.parameters.queues
        {
            let rule = format!(
                "queue {queue} of an engine that has {}",
                engine.parameters.queues
            );
            return Err(transfer_error(&asked, rule));
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        state.backlog.push_back(Asked {
            at: self.network.now,
            bytes,
            total: bytes * u64::from(count),
            queue,
            ticket,
        });
        self.submit(stream);
        Ok(ticket)
    }

    /// Tickets of transfers that are complete since the last call, with their stamps.
    pub fn take_finished(&mut self) -> Vec<(u64, [u64; 6])> {
        std::mem::take(&mut self.finished)
    }

    /// Transfers are asked for, by the clock or because the loop is closed.
    pub(super) fn arrival(&mut self, index: u32) {
        let now = self.network.now;
        let state = &mut self.streams[index as usize];
        let limit = match state.stream.count {
            0 => u64::MAX,
            count => count,
        };
        let (asked, gap) = match state.stream.arrival {
            Arrival::Closed | Arrival::OnCall => (0, 0),
            Arrival::Every { gap_ns } => (1, ps(gap_ns as f64)),
            Arrival::Random { mean_gap_ns } => {
                (1, state.gaps.exponential(ps(mean_gap_ns as f64)).max(1))
            }
            Arrival::Burst { count, gap_ns } => (u64::from(count), ps(gap_ns as f64)),
        };
        let asked = asked.min(limit - state.asked);
        state.asked += asked;
        let one = state.one(now);
        state.backlog.extend((0..asked).map(|_| one));
        if gap > 0 && state.asked < limit {
            self.network.schedule(now + gap, AgentEvent::Arrival, index);
        }
        self.submit(index);
    }

    /// Submits what is asked for while caps allow it.
    fn submit(&mut self, index: u32) {
        let now = self.network.now;
        loop {
            let state = &mut self.streams[index as usize];
            if state.in_flight >= state.stream.outstanding {
                return;
            }
            let closed = state.stream.arrival == Arrival::Closed;
            let over = state.stream.count > 0 && state.submitted >= state.stream.count;
            if over || (!closed && state.backlog.is_empty()) {
                return;
            }
            let mut queue = 0;
            if !state.stream.operation.is_mmio() {
                let engine = &mut self.engines[state.engine as usize];
                let cap = engine.parameters.queue_depth;
                let used = match state.stream.operation {
                    Operation::H2d | Operation::DeviceRead => &mut engine.read_in_flight,
                    _ => &mut engine.write_in_flight,
                };
                let wanted = state.backlog.front().and_then(|asked| asked.queue);
                let chosen = match wanted {
                    Some(queue) => (used[queue as usize] < cap).then_some(queue),
                    None => state.scheduler.pick(used, cap),
                };
                let Some(chosen) = chosen.filter(|queue| (*queue as usize) < used.len()) else {
                    return;
                };
                used[chosen as usize] += 1;
                queue = chosen;
            }
            let asked = match state.backlog.pop_front() {
                Some(asked) => asked,
                None => state.one(now),
            };
            state.submitted += 1;
            state.change_in_flight(1, now, self.warmup);
            let at = state.core_free.max(now) + state.submit;
            state.core_free = at;
            let transfer = Transfer {
                stream: index,
                queue,
                bytes: asked.bytes,
                total: asked.total,
                ticket: asked.ticket,
                left: asked.total,
                stamps: [asked.at; 6],
            };
            let id = match self.free_transfers.pop() {
                Some(id) => {
                    self.transfers[id as usize] = transfer;
                    id
                }
                None => {
                    self.transfers.push(transfer);
                    self.transfers.len() as u32 - 1
                }
            };
            self.open += 1;
            self.network.schedule(at, AgentEvent::Doorbell, id);
        }
    }

    /// The core's store, or its first load.
    pub(super) fn doorbell(&mut self, id: u32) {
        let now = self.network.now;
        let transfer = &mut self.transfers[id as usize];
        transfer.stamps[1] = now;
        let state = &self.streams[transfer.stream as usize];
        match state.stream.operation {
            Operation::MmioRead => self.load_line(id),
            Operation::MmioWrite => {
                let on_chip = state.stream.memory == Memory::OnChip;
                let (port, route) = (state.port, state.to_device);
                let mut left = transfer.left;
                while left > 0 {
                    let line = left.min(LINE);
                    left -= line;
                    let mut draft = Draft::new(TlpKind::MmioWrite, line as u32, id);
                    draft.on_chip = on_chip;
                    self.network.inject(port, route, draft);
                }
            }
            _ => {
                let draft = Draft::new(TlpKind::Doorbell, DOORBELL_BYTES, id);
                self.network.inject(state.port, state.to_device, draft);
            }
        }
    }

    /// Loads from uncached memory go one line at a time.
    fn load_line(&mut self, id: u32) {
        let transfer = &self.transfers[id as usize];
        let state = &self.streams[transfer.stream as usize];
        let mut draft = Draft::new(TlpKind::MmioRead, 0, id);
        draft.asks = transfer.left.min(LINE) as u16;
        draft.reply = state.to_host;
        draft.on_chip = state.stream.memory == Memory::OnChip;
        self.network.inject(state.port, state.to_device, draft);
    }

    pub(super) fn mmio_data(&mut self, id: u32) {
        let now = self.network.now;
        let tlp = self.network.consume(id, now);
        let transfer = &mut self.transfers[tlp.owner as usize];
        transfer.left -= u64::from(tlp.payload);
        let (left, stream) = (transfer.left, transfer.stream);
        self.count_payload(stream, u64::from(tlp.payload));
        if left == 0 {
            self.mmio_done(tlp.owner);
        } else {
            self.load_line(tlp.owner);
        }
    }

    pub(super) fn mmio_written(&mut self, id: u32) {
        let now = self.network.now;
        let tlp = self.network.consume(id, now);
        let transfer = &mut self.transfers[tlp.owner as usize];
        transfer.left -= u64::from(tlp.payload);
        let (left, stream) = (transfer.left, transfer.stream);
        self.count_payload(stream, u64::from(tlp.payload));
        if left == 0 {
            self.mmio_done(tlp.owner);
        }
    }

    /// All of an MMIO operation is fabric transit.
    fn mmio_done(&mut self, id: u32) {
        let now = self.network.now;
        let transfer = &mut self.transfers[id as usize];
        let sent = transfer.stamps[1];
        transfer.stamps[2..].copy_from_slice(&[sent, sent, now, now]);
        self.complete(id);
    }

    /// The completion word is in memory; the program polls it.
    pub(super) fn word_stored(&mut self, id: u32) {
        let now = self.network.now;
        let tlp = self.network.consume(id, now);
        let transfer = &mut self.transfers[tlp.owner as usize];
        transfer.stamps[4] = now;
        let poll = self.streams[transfer.stream as usize].poll;
        self.network
            .schedule(now + poll, AgentEvent::Complete, tlp.owner);
    }

    /// The program knows that a transfer is complete.
    pub(super) fn complete(&mut self, id: u32) {
        let now = self.network.now;
        let transfer = &mut self.transfers[id as usize];
        transfer.stamps[5] = now;
        let (stream, queue, stamps) = (transfer.stream, transfer.queue, transfer.stamps);
        if transfer.ticket != NO_TICKET {
            self.finished.push((transfer.ticket, stamps));
        }
        self.free_transfers.push(id);
        self.open -= 1;
        let state = &mut self.streams[stream as usize];
        state.change_in_flight(-1, now, self.warmup);
        if stamps[0] >= self.warmup {
            state.completed += 1;
            state.profile.add(&stamps);
        }
        if let Some(spans) = &mut self.spans
            && spans.len() < self.span_limit
        {
            spans.push(TransferSpan { stream, stamps });
        }
        if state.stream.operation.is_mmio() {
            self.submit(stream);
            return;
        }
        let engine_index = state.engine;
        let operation = state.stream.operation;
        let engine = &mut self.engines[engine_index as usize];
        let used = match operation {
            Operation::H2d | Operation::DeviceRead => &mut engine.read_in_flight,
            _ => &mut engine.write_in_flight,
        };
        used[queue as usize] -= 1;
        self.submit(stream);
        // Others may have waited for a place in the engine's queues.
        for other in 0..self.streams.len() as u32 {
            if other != stream && self.streams[other as usize].engine == engine_index {
                self.submit(other);
            }
        }
    }
}
