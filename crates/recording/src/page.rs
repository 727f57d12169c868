//! Pages: the header, and the head of a chunk.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes of a page of the file.
pub(crate) const PAGE: usize = 4096;
/// Bytes of the head of a chunk.
pub(crate) const HEAD: usize = 64;
/// Bytes of a request.
pub(crate) const REQUEST: usize = 32;
/// Requests of a chunk.
pub(crate) const REQUESTS: usize = (PAGE - HEAD) / REQUEST;

/// Most bytes that a recording may have.
pub const MOST_BYTES: u64 = 16 << 30;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"drayrec1");
pub(crate) const VERSION: u32 = 1;
pub(crate) const CHUNK: u32 = u32::from_le_bytes(*b"CHNK");
/// In [`Raw::claimed`]: no chunk is claimed any more, and the session ended in order.
pub(crate) const CLOSED: u64 = 1 << 63;
/// Work queues that a recording names.
pub(crate) const QUEUES: usize = 64;
/// Bytes of the command that are kept.
pub(crate) const COMMAND: usize = 2048;

/// Where numbers of the header are.
pub(crate) mod at {
    pub(crate) const VERSION: usize = 8;
    pub(crate) const KIND: usize = 12;
    pub(crate) const CLAIMED: usize = 16;
    pub(crate) const LIMIT: usize = 32;
    pub(crate) const LOST: usize = 40;
    pub(crate) const PROCESSES: usize = 48;
    pub(crate) const TIMED: usize = 64;
    pub(crate) const TIMED_NS: usize = 72;
    pub(crate) const MIN_BYTES: usize = 96;
    pub(crate) const QUEUES: usize = 104;
    pub(crate) const COMMAND_BYTES: usize = 108;
    pub(crate) const QUEUE: usize = 128;
    pub(crate) const COMMAND: usize = 1024;
}

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Descriptors that programs submit to a device.
    Descriptors,
    /// Copies, fills and comparisons of the C library that programs call.
    Calls,
}

impl Kind {
    pub(crate) const fn number(self) -> u32 {
        match self {
            Kind::Descriptors => 1,
            Kind::Calls => 2,
        }
    }

    pub(crate) const fn of(number: u32) -> Option<Kind> {
        match number {
            1 => Some(Kind::Descriptors),
            2 => Some(Kind::Calls),
            _ => None,
        }
    }
}

/// A work queue that requests name by its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Queue {
    /// Number of the device.
    pub device: u16,
    /// Number of the queue.
    pub wq: u16,
}

impl Queue {
    pub(crate) const fn number(self) -> u32 {
        (self.device as u32) << 16 | self.wq as u32
    }

    pub(crate) const fn of(number: u32) -> Queue {
        Queue {
            device: (number >> 16) as u16,
            wq: number as u16,
        }
    }
}

/// The header of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// What is recorded.
    pub kind: Kind,
    /// The command whose programs were recorded.
    pub command: String,
    /// Requests of fewer bytes were not recorded.
    pub min_bytes: u64,
    /// Requests for which there was no room.
    pub lost: u64,
    /// Programs that were started with the recorder, of [`Kind::Calls`].
    pub processes: u64,
    /// Requests whose recording was timed, and how long it took for all of them, in nanoseconds.
    pub timed: (u64, u64),
    /// The session has ended, and was not killed.
    pub ended: bool,
    /// Most bytes that the file was allowed to have.
    pub limit_bytes: u64,
    /// The work queues.
    pub queues: Vec<Queue>,
}

/// The first page, mapped. Any bytes are a value of each field.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Raw {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) kind: AtomicU32,
    /// Chunks that threads have claimed, with [`CLOSED`].
    pub(crate) claimed: AtomicU64,
    /// Chunks that the file has room for.
    pub(crate) backed: AtomicU64,
    /// Most chunks.
    pub(crate) limit: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) processes: AtomicU64,
    /// Streams so far: each has a number, from 1.
    pub(crate) streams: AtomicU64,
    pub(crate) timed: AtomicU64,
    pub(crate) timed_ns: AtomicU64,
    /// Nanoseconds of a cycle, times 2^32.
    pub(crate) scale: AtomicU64,
    /// Cycles at the beginning.
    pub(crate) began: AtomicU64,
    pub(crate) min_bytes: AtomicU64,
    pub(crate) queues: AtomicU32,
    pub(crate) command_bytes: AtomicU32,
    pub(crate) reserved: [AtomicU64; 2],
    pub(crate) queue: [AtomicU32; QUEUES],
}

const _: () = assert!(core::mem::offset_of!(Raw, claimed) == at::CLAIMED);
const _: () = assert!(core::mem::offset_of!(Raw, limit) == at::LIMIT);
const _: () = assert!(core::mem::offset_of!(Raw, lost) == at::LOST);
const _: () = assert!(core::mem::offset_of!(Raw, processes) == at::PROCESSES);
const _: () = assert!(core::mem::offset_of!(Raw, timed) == at::TIMED);
const _: () = assert!(core::mem::offset_of!(Raw, timed_ns) == at::TIMED_NS);
const _: () = assert!(core::mem::offset_of!(Raw, min_bytes) == at::MIN_BYTES);
const _: () = assert!(core::mem::offset_of!(Raw, queues) == at::QUEUES);
const _: () = assert!(core::mem::offset_of!(Raw, command_bytes) == at::COMMAND_BYTES);
const _: () = assert!(core::mem::offset_of!(Raw, queue) == at::QUEUE);
const _: () = assert!(at::QUEUE + 4 * QUEUES <= at::COMMAND);
const _: () = assert!(at::COMMAND + COMMAND <= PAGE);
