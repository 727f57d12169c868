//! Reads a recording. The file may be cut off, and may be anybody's.

use std::collections::BTreeMap;
use std::io::{self, Read};

use dray_spec::Opcode;
use thiserror::Error;

use crate::page::{
    CHUNK, CLOSED, COMMAND, HEAD, Header, Kind, MAGIC, MOST_BYTES, PAGE, QUEUES, Queue, REQUEST,
    VERSION, at,
};
use crate::request::{Request, time};

/// A thread of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// When its first request began, from the beginning of the session.
    pub began_ns: u64,
    /// In the order of their submission, or, of calls, of their ends. Members of a batch follow it, not always at once.
    pub requests: Vec<Request>,
}

/// A recording that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// About all of it.
    pub header: Header,
    /// The threads, in the order in which they began.
    pub threads: Vec<Thread>,
    /// Bytes of the file, if it ends before the chunks that were claimed.
    pub cut_at: Option<u64>,
}

/// Why a file is no recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("is no recording of dray: it does not begin with \"drayrec1\"")]
    Magic,
    /// It was written by another release.
    #[error("is a recording of version {found}; this release reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// It says something that no recording says.
    #[error("at offset {offset}: {what}")]
    Wrong {
        /// Bytes from the beginning of the file.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// Longest time that a thread can have been recorded for: modelled time counts it in picoseconds.
const MOST_NS: u64 = 100 * 86_400 * 1_000_000_000;

/// The chunks of one thread, as they come.
#[derive(Default)]
struct Stream {
    thread: Option<Thread>,
    /// Time of its requests so far.
    ns: u64,
    /// Chunks so far.
    chunks: u32,
    /// Those that came before the ones in front of them, with their offsets.
    early: BTreeMap<u32, (u64, Vec<u8>)>,
}

fn wrong<T>(offset: u64, what: &'static str) -> Result<T, RecordingError> {
    Err(RecordingError::Wrong { offset, what })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// As many bytes of a page as there are.
fn page(from: &mut impl Read, into: &mut [u8; PAGE]) -> io::Result<usize> {
    let mut used = 0;
    while used < PAGE {
        match from.read(&mut into[used..]) {
            Ok(0) => break,
            Ok(more) => used += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(used)
}

impl Recording {
    /// Reads a file from its beginning.
    ///
    /// # Errors
    /// It cannot be read, or is no recording; where it is wrong.
    pub fn read(mut from: impl Read) -> Result<Recording, RecordingError> {
        let mut bytes = [0; PAGE];
        let used = page(&mut from, &mut bytes)?;
        let (header, chunks) = header(&bytes, used)?;
        let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
        let mut cut_at = None;
        for chunk in 0..chunks {
            let offset = (1 + chunk) * PAGE as u64;
            let used = page(&mut from, &mut bytes)?;
            if used < PAGE {
                cut_at = Some(offset + used as u64);
            }
            let whole = used.saturating_sub(HEAD) / REQUEST * REQUEST;
            if used >= HEAD && word(&bytes, 0) == CHUNK {
                take_chunk(&mut streams, offset, &bytes[..HEAD + whole])?;
            } else if used >= HEAD && word(&bytes, 0) != 0 {
                return wrong(offset, "a chunk begins with something else than CHNK");
            }
            if used < PAGE {
                break;
            }
        }
        if let Some(stream) = streams.values().find(|stream| !stream.early.is_empty())
            && let Some((offset, _)) = stream.early.values().next()
        {
            return wrong(
                *offset,
                "the chunk before this one of its thread is missing",
            );
        }
        let mut threads: Vec<Thread> = streams
            .into_values()
            .filter_map(|stream| stream.thread)
            .filter(|thread| !thread.requests.is_empty())
            .collect();
        threads.sort_by_key(|thread| (thread.began_ns, thread.pid, thread.tid));
        Ok(Recording {
            header,
            threads,
            cut_at,
        })
    }

    /// All requests, members of batches as well.
    pub fn requests(&self) -> u64 {
        let each = self
            .threads
            .iter()
            .map(|thread| thread.requests.len() as u64);
        each.sum()
    }
}

/// The header, and how many chunks were claimed.
fn header(bytes: &[u8; PAGE], used: usize) -> Result<(Header, u64), RecordingError> {
    if used < 16 || long(bytes, 0) != MAGIC {
        return Err(RecordingError::Magic);
    }
    let version = word(bytes, at::VERSION);
    if version != VERSION {
        return Err(RecordingError::Version { found: version });
    }
    if used < PAGE {
        return wrong(used as u64, "the file ends within its header");
    }
    let Some(kind) = Kind::of(word(bytes, at::KIND)) else {
        return wrong(at::KIND as u64, "a kind of recording that there is not");
    };
    let claimed = long(bytes, at::CLAIMED);
    let limit = long(bytes, at::LIMIT);
    let most = MOST_BYTES / PAGE as u64;
    if limit > most || claimed & !CLOSED > limit {
        return wrong(at::CLAIMED as u64, "more chunks than a recording can have");
    }
    let queues = word(bytes, at::QUEUES) as usize;
    if queues > QUEUES {
        return wrong(
            at::QUEUES as u64,
            "more work queues than a recording can have",
        );
    }
    let command = word(bytes, at::COMMAND_BYTES) as usize;
    if command > COMMAND {
        return wrong(
            at::COMMAND_BYTES as u64,
            "a longer command than a recording can have",
        );
    }
    let command = &bytes[at::COMMAND..at::COMMAND + command];
    let header = Header {
        kind,
        command: String::from_utf8_lossy(command).into_owned(),
        min_bytes: long(bytes, at::MIN_BYTES),
        lost: long(bytes, at::LOST),
        processes: long(bytes, at::PROCESSES),
        timed: (long(bytes, at::TIMED), long(bytes, at::TIMED_NS)),
        ended: claimed & CLOSED != 0,
        limit_bytes: (1 + limit) * PAGE as u64,
        queues: (0..queues)
            .map(|index| Queue::of(word(bytes, at::QUEUE + 4 * index)))
            .collect(),
    };
    Ok((header, claimed & !CLOSED))
}

/// Puts a chunk behind those of its thread that came before.
fn take_chunk(
    streams: &mut BTreeMap<u32, Stream>,
    offset: u64,
    bytes: &[u8],
) -> Result<(), RecordingError> {
    let (number, sequence) = (word(bytes, 12), word(bytes, 16));
    let stream = streams.entry(number).or_default();
    if sequence < stream.chunks || stream.early.contains_key(&sequence) {
        return wrong(
            offset + 16,
            "a chunk of this number of its thread was there before",
        );
    }
    // Two threads' chunks are claimed in any order, one's in its own: only a file that is wrong has many of them.
    if sequence > stream.chunks {
        stream.early.insert(sequence, (offset, bytes.to_vec()));
        return Ok(());
    }
    let mut next = Some((offset, bytes.to_vec()));
    while let Some((offset, bytes)) = next {
        enter(stream, offset, &bytes)?;
        stream.chunks += 1;
        next = stream.early.remove(&stream.chunks);
    }
    Ok(())
}

/// Reads the requests of a chunk.
fn enter(stream: &mut Stream, offset: u64, bytes: &[u8]) -> Result<(), RecordingError> {
    let (pid, tid) = (word(bytes, 4), word(bytes, 8));
    let thread = stream.thread.get_or_insert_with(|| Thread {
        pid,
        tid,
        began_ns: long(bytes, 24),
        requests: Vec::new(),
    });
    if (thread.pid, thread.tid) != (pid, tid) {
        return wrong(offset + 4, "a chunk of one thread names another");
    }
    for (index, place) in bytes[HEAD..].chunks_exact(REQUEST).enumerate() {
        let at = offset + (HEAD + index * REQUEST) as u64;
        let mut raw = [0; REQUEST];
        raw.copy_from_slice(place);
        match Request::read(&raw) {
            Ok(None) => break,
            Err(what) => return wrong(at, what),
            Ok(Some(request)) => {
                check(thread, &request, at)?;
                let times = [request.think, request.idle, request.took];
                stream.ns += times.map(time::to_ns).iter().sum::<u64>();
                if stream.ns > MOST_NS || thread.began_ns > MOST_NS {
                    return wrong(at, "a thread of more than 100 days");
                }
                thread.requests.push(request);
            }
        }
    }
    Ok(())
}

/// Whether a request names requests that there are.
fn check(thread: &Thread, request: &Request, at: u64) -> Result<(), RecordingError> {
    let before = thread.requests.len();
    let batch = u8::from(Opcode::Batch);
    if before.checked_sub(request.reuses as usize).is_none() {
        return wrong(
            at + 24,
            "a request names one before the first of its thread",
        );
    }
    let named = before.checked_sub(request.seen as usize);
    let Some(named) = named else {
        return wrong(at + 4, "a request names one before the first of its thread");
    };
    if request.is_member() {
        let of_batch = request.seen > 0 && thread.requests[named].operation == batch;
        if !of_batch || request.operation == batch {
            return wrong(at + 4, "a member of a batch names a request that is none");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
