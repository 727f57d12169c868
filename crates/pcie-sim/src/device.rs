//! Devices and root complexes: DMA engines at work, reads answered, writes taken.

use super::Operation;
use super::edge::{limit, ps, span};
use super::engine::{Command, ReadPiece, Tag};
use super::network::{AgentEvent, Draft};
use super::simulation::{
    PORT_COMPLETER, PORT_DATA, PORT_MEMORY, PORT_READS, PORT_WORDS, Simulation,
};
use super::tlp::TlpKind;
use dray_topology::{NodeId, NodeKind};

/// Bytes of the completion word in host memory, and its TLP's payload.
const WORD_BYTES: u32 = 64;
/// Bits of the number of a piece in an event.
const PIECE_BITS: u32 = 14;

/// What answers reads and takes writes at a node.
#[derive(Debug, Default)]
pub(super) struct Completer {
    socket: bool,
    /// Largest completion; 0 for the MPS of the path.
    completion_bytes: u32,
    memory_read: u64,
    read_ps_per_byte: u64,
    write_ps_per_byte: u64,
    read_free: u64,
    write_free: u64,
}

impl Completer {
    pub(super) fn new(kind: &NodeKind) -> Self {
        match kind {
            NodeKind::Socket { parameters, .. } => Self {
                socket: true,
                completion_bytes: parameters.completion_bytes,
                ..Self::default()
            },
            NodeKind::Endpoint { parameters, .. } => Self {
                memory_read: ps(parameters.memory_read_ns),
                read_ps_per_byte: limit(parameters.inbound_read_gib_s),
                write_ps_per_byte: limit(parameters.inbound_write_gib_s),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}

/// A read that a device answers later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    node: u32,
    kind: TlpKind,
    asks: u16,
    owner: u32,
    tag: u32,
    reply: u32,
    on_chip: bool,
}

impl Simulation<'_> {
    /// A command has reached the device.
    pub(super) fn doorbell_delivered(&mut self, id: u32) {
        let now = self.network.now;
        let tlp = self.network.consume(id, now);
        let transfer = &mut self.transfers[tlp.owner as usize];
        transfer.stamps[2] = now;
        let engine = self.streams[transfer.stream as usize].engine;
        let overhead = ps(self.engines[engine as usize].parameters.overhead_ns);
        self.network
            .schedule(now + overhead, AgentEvent::CommandReady, tlp.owner);
    }

    /// A command is in its queue.
    pub(super) fn command_ready(&mut self, id: u32) {
        let transfer = &self.transfers[id as usize];
        let state = &self.streams[transfer.stream as usize];
        let stream = &state.stream;
        let command = Command {
            transfer: id,
            left: transfer.total,
            chunk: u64::from(stream.chunk).min(transfer.bytes) as u32,
        };
        let (queue, engine) = (transfer.queue, state.engine);
        match stream.operation {
            Operation::H2d | Operation::DeviceRead => {
                self.engines[engine as usize].read.push(queue, command);
                self.engine_read(engine);
            }
            _ => {
                self.engines[engine as usize].write.push(queue, command);
                self.engine_write(engine);
            }
        }
    }

    /// Issues write pieces while the port has room.
    pub(super) fn engine_write(&mut self, index: u32) {
        let now = self.network.now;
        let engine = &mut self.engines[index as usize];
        if now >= engine.write.free_at {
            engine.write.scheduled = false;
        }
        let Some(bytes) = engine.write.peek() else {
            return;
        };
        if engine.write.free_at > now {
            if !engine.write.scheduled {
                engine.write.scheduled = true;
                let at = engine.write.free_at;
                self.network.schedule(at, AgentEvent::EngineWrite, index);
            }
            return;
        }
        let port = self.network.agent_port(engine.node, PORT_DATA);
        let waiting = self.network.waiting(port);
        if waiting > 0 && waiting + u64::from(bytes) > u64::from(engine.parameters.data_fifo_bytes)
        {
            self.network.watch(port);
            return;
        }
        let Some(piece) = engine.write.take() else {
            return;
        };
        engine.write.free_at = now + engine.write_interval(piece.bytes);
        let more = !engine.write.is_empty();
        if more {
            engine.write.scheduled = true;
            let at = engine.write.free_at;
            self.network.schedule(at, AgentEvent::EngineWrite, index);
        }
        let transfer = &mut self.transfers[piece.transfer as usize];
        if transfer.stamps[3] == transfer.stamps[0] {
            transfer.stamps[3] = now;
        }
        let state = &self.streams[transfer.stream as usize];
        let (route, word_route) = (state.data, state.to_host);
        let to_host = state.stream.operation == Operation::D2h;
        let mps = self.network.route(route).mps;
        let mut left = piece.bytes;
        while left > 0 {
            let payload = left.min(mps);
            left -= payload;
            let mut draft = Draft::new(TlpKind::DmaWrite, payload, piece.transfer);
            draft.last = left == 0 && piece.last;
            self.network.inject(port, route, draft);
        }
        if piece.last && to_host {
            // Behind the data in the same queue: posted writes keep their order.
            let draft = Draft::new(TlpKind::CompletionWord, WORD_BYTES, piece.transfer);
            self.network.inject(port, word_route, draft);
        }
    }

    /// Sends the next read request if a tag and room for the data are free.
    pub(super) fn engine_read(&mut self, index: u32) {
        let now = self.network.now;
        let engine = &mut self.engines[index as usize];
        if now >= engine.read.free_at {
            engine.read.scheduled = false;
        }
        if engine.read.free_at > now {
            self.schedule_read(index);
            return;
        }
        if engine.asking.is_none() {
            // With all pieces in flight, the end of one calls again.
            if engine.read.is_empty() {
                return;
            }
            let Some(free) = engine.free_pieces.pop() else {
                return;
            };
            let Some(piece) = engine.read.take() else {
                engine.free_pieces.push(free);
                return;
            };
            engine.pieces[free as usize] = ReadPiece {
                transfer: piece.transfer,
                bytes: piece.bytes,
                left: piece.bytes,
            };
            engine.asking = Some((free, piece.bytes));
        }
        let Some((piece, left)) = engine.asking else {
            return;
        };
        let id = engine.pieces[piece as usize].transfer;
        let state = &self.streams[self.transfers[id as usize].stream as usize];
        let route = self.network.route(state.data);
        let (data, reply) = (state.data, state.reply);
        let bytes = left.min(route.mrrs);
        if engine.free_tags.is_empty() {
            return;
        }
        if let Err(again) = engine.reserve(bytes, now) {
            if let Some(at) = again {
                engine.read.free_at = at;
                self.schedule_read(index);
            }
            return;
        }
        let Some(tag) = engine.free_tags.pop() else {
            return;
        };
        engine.tags[tag as usize] = Tag { piece, left: bytes };
        let left = left - bytes;
        let mut busy = engine.cycles(engine.parameters.read_request_cycles);
        if left == 0 {
            busy += engine.cycles(engine.parameters.read_issue_cycles);
        }
        engine.asking = (left > 0).then_some((piece, left));
        engine.read.free_at = now + busy.max(1);
        let more = left > 0 || !engine.read.is_empty();
        let port = self.network.agent_port(engine.node, PORT_READS);
        let transfer = &mut self.transfers[id as usize];
        if transfer.stamps[3] == transfer.stamps[0] {
            transfer.stamps[3] = now;
        }
        let mut draft = Draft::new(TlpKind::DmaRead, 0, id);
        draft.asks = bytes as u16;
        draft.tag = tag;
        draft.reply = reply;
        self.network.inject(port, data, draft);
        if more {
            self.schedule_read(index);
        }
    }

    fn schedule_read(&mut self, index: u32) {
        let read = &mut self.engines[index as usize].read;
        if !read.scheduled {
            read.scheduled = true;
            self.network
                .schedule(read.free_at, AgentEvent::EngineRead, index);
        }
    }

    /// A read request has reached its completer.
    pub(super) fn read_requested(&mut self, id: u32) {
        let now = self.network.now;
        let edge = self.network.tlps.get(id).came_by;
        let node = self.topology.edges()[edge as usize].to;
        let tlp = self.network.consume(id, now);
        let request = Request {
            node: node.0,
            kind: match tlp.kind {
                TlpKind::MmioRead => TlpKind::MmioData,
                TlpKind::SourceRead => TlpKind::SourceData,
                _ => TlpKind::DmaData,
            },
            asks: tlp.asks,
            owner: tlp.owner,
            tag: tlp.tag,
            reply: tlp.reply,
            on_chip: tlp.on_chip,
        };
        let completer = &mut self.completers[node.0 as usize];
        if completer.socket {
            self.answer(request);
            return;
        }
        let mut at = now + completer.memory_read;
        if request.kind != TlpKind::MmioData {
            let took = span(u64::from(request.asks), completer.read_ps_per_byte);
            completer.read_free = completer.read_free.max(now) + took;
            at = completer.read_free + completer.memory_read;
        }
        let id = match self.free_requests.pop() {
            Some(id) => {
                self.requests[id as usize] = request;
                id
            }
            None => {
                self.requests.push(request);
                self.requests.len() as u32 - 1
            }
        };
        self.network.schedule(at, AgentEvent::Respond, id);
    }

    pub(super) fn respond(&mut self, id: u32) {
        self.free_requests.push(id);
        self.answer(self.requests[id as usize]);
    }

    /// Sends the completions of a read.
    fn answer(&mut self, request: Request) {
        let completer = &self.completers[request.node as usize];
        let port = if completer.socket {
            PORT_MEMORY
        } else {
            PORT_COMPLETER
        };
        let port = self.network.agent_port(NodeId(request.node), port);
        let mut largest = self.network.route(request.reply).mps;
        if completer.completion_bytes > 0 {
            largest = largest.min(completer.completion_bytes);
        }
        if request.kind == TlpKind::SourceData {
            largest = self.sources[request.owner as usize].answers(largest);
        }
        let mut left = u32::from(request.asks);
        while left > 0 {
            let payload = left.min(largest);
            left -= payload;
            let mut draft = Draft::new(request.kind, payload, request.owner);
            draft.tag = request.tag;
            draft.on_chip = request.on_chip;
            self.network.inject(port, request.reply, draft);
        }
    }

    /// Read data has reached the engine.
    pub(super) fn data_read(&mut self, id: u32) {
        let now = self.network.now;
        let tlp = self.network.consume(id, now);
        let stream = self.transfers[tlp.owner as usize].stream;
        self.count_payload(stream, u64::from(tlp.payload));
        let index = self.streams[stream as usize].engine;
        let engine = &mut self.engines[index as usize];
        let payload = u32::from(tlp.payload);
        let tag = &mut engine.tags[tlp.tag as usize];
        tag.left -= payload;
        let (piece, tag_free) = (tag.piece, tag.left == 0);
        let state = &mut engine.pieces[piece as usize];
        state.left -= payload;
        let ends = state.left == 0;
        let done = engine.write_to_memory(payload, ends, now);
        if ends {
            let event = index << PIECE_BITS | piece;
            self.network.schedule(done, AgentEvent::PieceDone, event);
        }
        if tag_free {
            engine.free_tags.push(tlp.tag);
            self.engine_read(index);
        }
    }

    /// A read piece is in memory.
    pub(super) fn piece_done(&mut self, event: u32) {
        let (index, piece) = (event >> PIECE_BITS, event & ((1 << PIECE_BITS) - 1));
        let engine = &mut self.engines[index as usize];
        let node = engine.node;
        let ReadPiece {
            transfer: id,
            bytes,
            ..
        } = engine.pieces[piece as usize];
        engine.free_pieces.push(piece);
        let transfer = &mut self.transfers[id as usize];
        transfer.left -= u64::from(bytes);
        if transfer.left == 0 {
            self.send_word(id, node);
        }
        self.engine_read(index);
    }

    /// Writes the completion word of a transfer.
    fn send_word(&mut self, id: u32, node: NodeId) {
        let route = self.streams[self.transfers[id as usize].stream as usize].to_host;
        let port = self.network.agent_port(node, PORT_WORDS);
        let draft = Draft::new(TlpKind::CompletionWord, WORD_BYTES, id);
        self.network.inject(port, route, draft);
    }

    /// An engine's write has reached host memory or another device.
    pub(super) fn data_written(&mut self, id: u32) {
        let now = self.network.now;
        let tlp = self.network.tlps.get(id);
        let (owner, last, payload) = (tlp.owner, tlp.last, u64::from(tlp.payload));
        let node = self.topology.edges()[tlp.came_by as usize].to;
        let completer = &mut self.completers[node.0 as usize];
        let at = if completer.socket {
            now
        } else {
            completer.write_free =
                completer.write_free.max(now) + span(payload, completer.write_ps_per_byte);
            completer.write_free
        };
        self.network.consume(id, at);
        let stream = self.transfers[owner as usize].stream;
        self.count_payload(stream, payload);
        let between_devices =
            self.streams[stream as usize].stream.operation == Operation::DeviceWrite;
        if last && between_devices {
            self.network.schedule(at, AgentEvent::LastWritten, owner);
        }
    }

    /// The last byte of a write between devices is in the memory of the second, which sends the word to the
    /// host.
    pub(super) fn last_written(&mut self, id: u32) {
        let stream = self.transfers[id as usize].stream;
        if let Some(peer) = self.streams[stream as usize].stream.peer {
            self.send_word(id, peer);
        }
    }
}
