//! A DMA engine: command queues, chunks, issue intervals, tags and the write to memory.

use std::collections::VecDeque;

use super::edge::{limit, span};
use dray_topology::{EngineParameters, NodeId};

/// A command, or what is left of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    pub(super) transfer: u32,
    pub(super) left: u64,
    pub(super) chunk: u32,
}

/// A part of a command that the engine issues as one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) transfer: u32,
    pub(super) bytes: u32,
    /// Whether it is the last of its command.
    pub(super) last: bool,
}

/// One direction of an engine: its queues, and whose turn it is.
#[derive(Debug)]
pub(super) struct Direction {
    queues: Vec<VecDeque<Command>>,
    turn: usize,
    /// Bytes left of the chunk that is being issued.
    chunk_left: u32,
    waiting: usize,
    split: u32,
    /// When the next piece or request can be issued.
    pub(super) free_at: u64,
    /// Whether an event for this direction is scheduled.
    pub(super) scheduled: bool,
}

impl Direction {
    fn new(parameters: &EngineParameters, split: u32) -> Self {
        let depth = parameters.queue_depth.min(1024) as usize;
        let queue = || VecDeque::with_capacity(depth);
        Self {
            queues: (0..parameters.queues).map(|_| queue()).collect(),
            turn: 0,
            chunk_left: 0,
            waiting: 0,
            split,
            free_at: 0,
            scheduled: false,
        }
    }

    pub(super) fn push(&mut self, queue: u32, command: Command) {
        self.queues[queue as usize].push_back(command);
        self.waiting += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Size of the piece that [`Direction::take`] would give.
    pub(super) fn peek(&mut self) -> Option<u32> {
        let queue = self.choose()?;
        let command = self.queues[queue].front()?;
        let chunk = if self.chunk_left > 0 {
            self.chunk_left
        } else {
            command.chunk
        };
        Some(u64::from(self.split.min(chunk)).min(command.left) as u32)
    }

    /// The next piece; after a whole chunk the next busy queue has its turn.
    pub(super) fn take(&mut self) -> Option<Piece> {
        let bytes = self.peek()?;
        let queue = self.choose()?;
        let command = self.queues[queue].front_mut()?;
        if self.chunk_left == 0 {
            self.chunk_left = u64::from(command.chunk).min(command.left) as u32;
        }
        command.left -= u64::from(bytes);
        self.chunk_left -= bytes;
        let (transfer, last) = (command.transfer, command.left == 0);
        if last {
            self.queues[queue].pop_front();
            self.waiting -= 1;
            self.chunk_left = 0;
        }
        self.turn = if self.chunk_left == 0 {
            queue + 1
        } else {
            queue
        };
        Some(Piece {
            transfer,
            bytes,
            last,
        })
    }

    fn choose(&self) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        let count = self.queues.len();
        (0..count)
            .map(|index| (self.turn + index) % count)
            .find(|queue| !self.queues[*queue].is_empty())
    }
}

/// A read in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) piece: u32,
    pub(super) left: u32,
}

/// A read piece in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadPiece {
    pub(super) transfer: u32,
    pub(super) bytes: u32,
    pub(super) left: u32,
}

#[derive(Debug)]
pub(super) struct Engine {
    pub(super) node: NodeId,
    pub(super) parameters: EngineParameters,
    pub(super) write: Direction,
    pub(super) read: Direction,
    pub(super) tags: Vec<Tag>,
    pub(super) free_tags: Vec<u32>,
    pub(super) pieces: Vec<ReadPiece>,
    pub(super) free_pieces: Vec<u32>,
    /// The piece whose requests are being sent, and the bytes left to ask for.
    pub(super) asking: Option<(u32, u32)>,
    cycle_ps: f64,
    memory_ps_per_byte: u64,
    /// When the memory has taken all that has arrived.
    memory_free: u64,
    /// Read data asked for or not yet in memory, bytes.
    reserved: u64,
    releases: VecDeque<(u64, u32)>,
    /// Transfers in flight by queue, as the host counts them.
    pub(super) write_in_flight: Vec<u32>,
    pub(super) read_in_flight: Vec<u32>,
}

impl Engine {
    pub(super) fn new(node: NodeId, parameters: &EngineParameters) -> Self {
        let tag = Tag { piece: 0, left: 0 };
        let piece = ReadPiece {
            transfer: 0,
            bytes: 0,
            left: 0,
        };
        let (tags, pieces) = (parameters.tags, parameters.read_commands);
        let queues = parameters.queues as usize;
        Self {
            node,
            write: Direction::new(parameters, parameters.write_split_bytes),
            read: Direction::new(parameters, parameters.read_split_bytes),
            tags: vec![tag; tags as usize],
            free_tags: (0..tags).rev().collect(),
            pieces: vec![piece; pieces as usize],
            free_pieces: (0..pieces).rev().collect(),
            asking: None,
            cycle_ps: 1e6 / parameters.clock_mhz,
            memory_ps_per_byte: limit(parameters.memory_gib_s),
            memory_free: 0,
            reserved: 0,
            releases: VecDeque::with_capacity(tags as usize * 8),
            write_in_flight: vec![0; queues],
            read_in_flight: vec![0; queues],
            parameters: parameters.clone(),
        }
    }

    /// Time for so many cycles, ps.
    pub(super) fn cycles(&self, count: u32) -> u64 {
        (f64::from(count) * self.cycle_ps).round() as u64
    }

    /// Time from one write piece to the next, ps.
    pub(super) fn write_interval(&self, bytes: u32) -> u64 {
        let beats = bytes.div_ceil(self.parameters.datapath_bytes);
        self.cycles(beats.max(self.parameters.write_issue_cycles))
    }

    /// Takes room in the read buffer; if there is none, the time at which to try again.
    pub(super) fn reserve(&mut self, bytes: u32, now: u64) -> Result<(), Option<u64>> {
        while let Some((at, freed)) = self.releases.front().copied()
            && at <= now
        {
            self.reserved -= u64::from(freed);
            self.releases.pop_front();
        }
        if self.reserved + u64::from(bytes) > u64::from(self.parameters.data_fifo_bytes)
            && self.reserved > 0
        {
            return Err(self.releases.front().map(|(at, _)| *at));
        }
        self.reserved += u64::from(bytes);
        Ok(())
    }

    /// Read data of a piece goes to the memory. Gives the time at which it is there.
    pub(super) fn write_to_memory(&mut self, bytes: u32, ends_piece: bool, now: u64) -> u64 {
        let done = self.memory_free.max(now) + span(u64::from(bytes), self.memory_ps_per_byte);
        self.memory_free = done;
        if ends_piece {
            self.memory_free += self.cycles(self.parameters.memory_hold_cycles);
        }
        self.releases.push_back((done, bytes));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_commands_alternate_and_are_cut_to_size() {
        let parameters = EngineParameters::default();
        let mut direction = Direction::new(&parameters, 4096);
        let command = |transfer, left, chunk| Command {
            transfer,
            left,
            chunk,
        };
        direction.push(0, command(0, 16384, 8192));
        direction.push(3, command(1, 192, 128));
        let mut taken = Vec::new();
        while let Some(size) = direction.peek() {
            let piece = direction.take().unwrap();
            assert_eq!(piece.bytes, size);
            taken.push((piece.transfer, piece.bytes, piece.last));
        }
        let expected = [
            (0, 4096, false),
            (0, 4096, false),
            (1, 128, false),
            (0, 4096, false),
            (0, 4096, true),
            (1, 64, true),
        ];
        assert_eq!(taken, expected);
    }

    #[test]
    fn the_read_buffer_is_freed_when_the_data_is_in_memory() {
        let parameters = EngineParameters {
            data_fifo_bytes: 4096,
            ..EngineParameters::default()
        };
        let mut engine = Engine::new(NodeId(0), &parameters);
        assert_eq!(engine.reserve(4096, 0), Ok(()));
        assert_eq!(engine.reserve(64, 0), Err(None));
        let done = engine.write_to_memory(4096, true, 1000);
        assert_eq!(engine.reserve(64, done - 1), Err(Some(done)));
        assert_eq!(engine.reserve(64, done), Ok(()));
    }
}
