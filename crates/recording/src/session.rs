//! The file of a session: made, given room while programs write, and closed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::{cycles, measure_scale};
use crate::log::Log;
use crate::page::{CLOSED, COMMAND, Kind, MAGIC, PAGE, VERSION, at};

/// Chunks that the file gets at a time, at first and later, and the least that it has more than were claimed.
const FIRST: u64 = 256;
const STEP: u64 = 8192;
const AHEAD: u64 = 4096;
/// Between two looks at how many were claimed.
const LOOK: Duration = Duration::from_millis(2);

/// What is recorded.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is recorded.
    pub kind: Kind,
    /// The command.
    pub command: String,
    /// Requests of fewer bytes are not recorded.
    pub min_bytes: u64,
    /// Most bytes of the file.
    pub limit_bytes: u64,
}

/// A recording that is being made. Its file has room for what threads claim; a thread of its own sees to that.
#[derive(Debug)]
pub struct Session {
    log: Log,
    file: Arc<File>,
    ending: Arc<AtomicBool>,
    grower: Option<JoinHandle<io::Result<()>>>,
}

/// What became of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Bytes of the file.
    pub bytes: u64,
    /// Requests for which there was no room.
    pub lost: u64,
    /// Requests whose recording was timed, and how long that took for all of them, in nanoseconds.
    pub timed: (u64, u64),
    /// Programs that were recorded, of calls.
    pub processes: u64,
    /// Threads.
    pub threads: u64,
    /// Why the file got no more room.
    pub full: Option<String>,
}

impl Session {
    /// Begins a recording in a file that is empty, open for reading and writing.
    ///
    /// # Errors
    /// The file system has no room, or the file cannot be mapped.
    pub fn begin(file: File, options: &Options) -> io::Result<Session> {
        let limit =
            (options.limit_bytes / PAGE as u64).clamp(2, crate::MOST_BYTES / PAGE as u64) - 1;
        file.set_len(PAGE as u64)?;
        let mut page = vec![0; PAGE];
        let mut end = options.command.len().min(COMMAND);
        while !options.command.is_char_boundary(end) {
            end -= 1;
        }
        page[at::COMMAND..at::COMMAND + end].copy_from_slice(&options.command.as_bytes()[..end]);
        page[at::COMMAND_BYTES..at::COMMAND_BYTES + 4].copy_from_slice(&(end as u32).to_le_bytes());
        file.write_all_at(&page, 0)?;
        let first = FIRST.min(limit);
        back(&file, 0, first)?;
        let log = Log::map(&file, (1 + limit as usize) * PAGE)?;
        let raw = log.raw();
        raw.version.store(VERSION, Ordering::Relaxed);
        raw.kind.store(options.kind.number(), Ordering::Relaxed);
        raw.limit.store(limit, Ordering::Relaxed);
        raw.min_bytes.store(options.min_bytes, Ordering::Relaxed);
        raw.scale.store(measure_scale(), Ordering::Relaxed);
        raw.began.store(cycles(), Ordering::Relaxed);
        raw.backed.store(first, Ordering::Relaxed);
        raw.magic.store(MAGIC, Ordering::Release);
        Ok(Session {
            log,
            file: Arc::new(file),
            ending: Arc::default(),
            grower: None,
        })
    }

    /// Gives the file room for what comes first, and starts the thread that gives it more. After the last fork of this process.
    ///
    /// # Errors
    /// No more threads.
    pub fn grow(&mut self) -> io::Result<()> {
        // A disk that is full is the thread's to report: what there is room for is recorded.
        let _ = extend(self.log, &self.file);
        let (log, file, ending) = (self.log, self.file.clone(), self.ending.clone());
        let run = move || grow(log, &file, &ending);
        let thread = thread::Builder::new().name("dray-recording".into());
        self.grower = Some(thread.spawn(run)?);
        Ok(())
    }

    /// The file, for threads of this process.
    pub fn log(&self) -> Log {
        self.log
    }

    /// Ends the recording: nothing is claimed any more, and the file has no more bytes than were claimed.
    ///
    /// # Errors
    /// The file cannot be cut.
    pub fn close(self) -> io::Result<Closed> {
        let raw = self.log.raw();
        let claimed = raw.claimed.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED;
        self.ending.store(true, Ordering::Release);
        let grown = self.grower.map(JoinHandle::join);
        let full = match grown {
            Some(Ok(Err(error))) => Some(error.to_string()),
            Some(Err(_)) => Some("its thread died".to_owned()),
            _ => None,
        };
        let bytes = (1 + claimed) * PAGE as u64;
        self.file.set_len(bytes)?;
        Ok(Closed {
            bytes,
            lost: self.log.lost(),
            timed: self.log.timings(),
            processes: raw.processes.load(Ordering::Relaxed),
            threads: raw.streams.load(Ordering::Relaxed),
            full,
        })
    }
}

fn grow(log: Log, file: &File, ending: &AtomicBool) -> io::Result<()> {
    while !ending.load(Ordering::Acquire) {
        if !extend(log, file)? {
            thread::sleep(LOOK);
        }
    }
    Ok(())
}

/// Gives the file more room, if it has little more than was claimed. Whether it did.
fn extend(log: Log, file: &File) -> io::Result<bool> {
    let raw = log.raw();
    let limit = raw.limit.load(Ordering::Relaxed);
    let backed = raw.backed.load(Ordering::Relaxed);
    let claimed = raw.claimed.load(Ordering::Relaxed) & !CLOSED;
    if backed >= limit || backed.saturating_sub(claimed) >= AHEAD {
        return Ok(false);
    }
    let mut more = STEP.min(limit - backed);
    // Of a disk that is nearly full, all that there is.
    while let Err(error) = back(file, backed, more) {
        if more == 1 {
            return Err(error);
        }
        more /= 2;
    }
    raw.backed.store(backed + more, Ordering::Release);
    Ok(true)
}

/// Gives the file room for chunks, so that no access to them fails.
fn back(file: &File, from: u64, count: u64) -> io::Result<()> {
    let [offset, bytes] = [1 + from, count].map(|chunks| (chunks * PAGE as u64).cast_signed());
    // SAFETY: the file is open; nothing of this process's memory is named.
    let answer = unsafe { libc::fallocate(file.as_raw_fd(), 0, offset, bytes) };
    if answer == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
        return Err(error);
    }
    let zeros = vec![0; 64 * PAGE];
    let mut done = 0;
    while done < bytes.cast_unsigned() {
        let part = (bytes.cast_unsigned() - done).min(zeros.len() as u64);
        file.write_all_at(&zeros[..part as usize], offset.cast_unsigned() + done)?;
        done += part;
    }
    Ok(())
}
