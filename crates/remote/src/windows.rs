//! What is read ahead and written behind, so that a descriptor costs few system calls.
//!
//! The device moves a page at a time; a call to another process costs as much as moving one. So of
//! what a descriptor may read, more is read than is asked for, and what it writes is collected, as far
//! as both follow on. The order in which bytes are seen is kept: what is written is never older than
//! what is read, and nothing is left behind when the descriptor ends.

use std::ops::Range;

use dray_device::Access;
use libc::pid_t;

use crate::transfer;

/// Bytes of the first look ahead; each one that follows on is twice as large.
const FIRST: usize = 16 << 10;
/// Bytes of the largest transfer.
const BLOCK: usize = 256 << 10;
/// Streams of a descriptor: two sources, two destinations.
const STREAMS: usize = 2;
/// Ranges that a descriptor has been told it may read.
const EXTENTS: usize = 4;

/// An address that could not be accessed after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) address: u64,
    pub(crate) access: Access,
}

/// Bytes that follow each other.
#[derive(Debug, Clone, Default)]
struct Run {
    start: u64,
    bytes: Vec<u8>,
    /// Size of the look ahead that it came from.
    step: usize,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn overlaps(&self, range: &Range<u64>) -> bool {
        self.start < range.end && range.start < self.end()
    }
}

/// The streams of one descriptor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows {
    ahead: [Run; STREAMS],
    behind: [Run; STREAMS],
    extents: [Range<u64>; EXTENTS],
    /// Which of each is replaced next.
    turn: usize,
}

impl Windows {
    /// Another descriptor begins, or this one from its start.
    pub(crate) fn forget(&mut self) {
        for run in self.ahead.iter_mut().chain(&mut self.behind) {
            run.bytes.clear();
        }
        self.extents = Default::default();
    }

    /// The descriptor may read these bytes.
    pub(crate) fn allow(&mut self, start: u64, len: u64) {
        self.turn = self.turn.wrapping_add(1);
        self.extents[self.turn % EXTENTS] = start..start + len;
    }

    pub(crate) fn read(&mut self, pid: pid_t, addr: u64, into: &mut [u8]) -> Result<(), Fault> {
        let range = addr..addr + into.len() as u64;
        if self.behind.iter().any(|run| run.overlaps(&range)) {
            self.flush(pid)?;
        }
        let holds = |run: &&Run| run.start <= addr && range.end <= run.end();
        if let Some(run) = self.ahead.iter().find(holds) {
            let at = (addr - run.start) as usize;
            into.copy_from_slice(&run.bytes[at..at + into.len()]);
            return Ok(());
        }
        let allowed = self.extents.iter().find(|extent| extent.contains(&addr));
        let allowed = allowed.map_or(0, |extent| extent.end - addr);
        let follows = |run: &Run| !run.bytes.is_empty() && run.end() == addr;
        let (index, step) = match self.ahead.iter().position(follows) {
            Some(index) => (index, (self.ahead[index].step * 2).min(BLOCK)),
            None => (self.other(), FIRST),
        };
        let len = allowed.min(step as u64) as usize;
        let fault = |short: transfer::Short| Fault {
            address: addr + short.done as u64,
            access: Access::Read,
        };
        if len <= into.len() {
            return transfer::read(pid, addr, into).map_err(fault);
        }
        let run = &mut self.ahead[index];
        run.start = addr;
        run.step = step;
        run.bytes.resize(len, 0);
        let read = transfer::read(pid, addr, &mut run.bytes);
        if read.is_err() {
            run.bytes.clear();
        }
        read.map_err(fault)?;
        into.copy_from_slice(&run.bytes[..into.len()]);
        Ok(())
    }

    pub(crate) fn write(&mut self, pid: pid_t, addr: u64, from: &[u8]) -> Result<(), Fault> {
        let range = addr..addr + from.len() as u64;
        for run in &mut self.ahead {
            if run.overlaps(&range) {
                run.bytes.clear();
            }
        }
        if self.behind.iter().any(|run| run.overlaps(&range)) {
            self.flush(pid)?;
        }
        let follows = |run: &Run| {
            !run.bytes.is_empty() && run.end() == addr && run.bytes.len() + from.len() <= BLOCK
        };
        let index = match self.behind.iter().position(follows) {
            Some(index) => index,
            None => {
                let empty = self.behind.iter().position(|run| run.bytes.is_empty());
                let index = empty.unwrap_or_else(|| self.other());
                put(pid, &mut self.behind[index])?;
                self.behind[index].start = addr;
                index
            }
        };
        self.behind[index].bytes.extend_from_slice(from);
        Ok(())
    }

    /// Writes what has been collected.
    pub(crate) fn flush(&mut self, pid: pid_t) -> Result<(), Fault> {
        self.behind.iter_mut().try_for_each(|run| put(pid, run))
    }

    fn other(&mut self) -> usize {
        self.turn = self.turn.wrapping_add(1);
        self.turn % STREAMS
    }
}

fn put(pid: pid_t, run: &mut Run) -> Result<(), Fault> {
    let written = transfer::write(pid, run.start, &run.bytes);
    run.bytes.clear();
    written.map_err(|short| Fault {
        address: run.start + short.done as u64,
        access: Access::Write,
    })
}
