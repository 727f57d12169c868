//! Cores: they submit transfers, ring doorbells and poll.

use super::edge::ps;
use super::network::{AgentEvent, Draft};
use super::simulation::Simulation;
use super::stream_state::{Asked, NO_TICKET, StreamState, Transfer, check, transfer_error};
use super::tlp::{NONE, TlpKind};
use super::trace::TransferSpan;
use super::{Arrival, Operation, Stream};
use dray_topology::PcieError;

/// Bytes of a doorbell.
const DOORBELL_BYTES: u32 = 8;

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
            Operation::MmioWrite => self.store_lines(id),
            _ => {
                let draft = Draft::new(TlpKind::Doorbell, DOORBELL_BYTES, id);
                self.network.inject(state.port, state.to_device, draft);
            }
        }
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
