//! The file of a trace, whole after each write.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Bytes that are gathered before they are written.
const CHUNK: usize = 1 << 16;

/// A regular file carries the end of its format behind the last event at all times, so that a session
/// that is killed leaves a trace that can be read. A stream is written once, and its end at the end.
pub(super) struct Sink {
    file: File,
    /// Where the next event goes, over the end that is there; `None` for a stream.
    at: Option<u64>,
    /// What stands after the last event.
    end: &'static [u8],
    chunk: Vec<u8>,
}

impl Sink {
    /// `is_stream` says whether the file takes bytes one after the other alone.
    pub(super) fn new(file: File, is_stream: bool, end: &'static [u8]) -> Sink {
        Sink {
            file,
            at: (!is_stream).then_some(0),
            end,
            chunk: Vec::with_capacity(2 * CHUNK),
        }
    }

    /// Where events are written to.
    pub(super) fn chunk(&mut self) -> &mut Vec<u8> {
        &mut self.chunk
    }

    /// Writes what was gathered, if it is much.
    pub(super) fn pass(&mut self) -> io::Result<()> {
        match self.chunk.len() < CHUNK {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Writes what was gathered.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let Some(at) = self.at else {
            let written = self.file.write_all(&self.chunk);
            self.chunk.clear();
            return written;
        };
        let events = self.chunk.len() as u64;
        self.chunk.extend_from_slice(self.end);
        let written = self.file.write_all_at(&self.chunk, at);
        self.chunk.clear();
        match written {
            Ok(()) => self.at = Some(at + events),
            // Back to the events that had room; their end had it, too.
            Err(_) => {
                let _ = self.file.set_len(at);
                let _ = self.file.write_all_at(self.end, at);
            }
        }
        written
    }

    /// Nothing more comes.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self.at {
            Some(_) => Ok(()),
            None => self.file.write_all(self.end),
        }
    }
}
