//! What is read ahead and written behind, so that a descriptor costs few system calls.
//!
//! The device moves a page at a time; a call to another process costs as much as moving one. So reads
//! of consecutive bytes fetch more than the page, within what the descriptor may read, and consecutive
//! writes are collected. The order in which bytes are seen is kept: what is written is never older than
//! what is read, and nothing is left behind when the descriptor ends.

use std::ops::Range;

use crate::threads::Target;
use crate::transfer;
use dray_device::Access;

/// Bytes of the first look ahead; each one that follows on is twice as large.
const FIRST: usize = 16 << 10;
/// Bytes of the largest transfer.
const BLOCK: usize = 256 << 10;
/// Bytes that a copy moves at a time: they stay in a core's second cache meanwhile.
const COPY: usize = 128 << 10;
/// Streams of a descriptor: two sources, two destinations.
const STREAMS: usize = 2;
/// Ranges that a descriptor was allowed to read.
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
    /// What the descriptor has written over bytes that it may read: where, and what was there.
    overwritten: Vec<(u64, Vec<u8>)>,
    /// Which of each is replaced next.
    turn: usize,
    /// What is being copied; empty before the first copy.
    passing: Vec<u8>,
}

impl Windows {
    /// Another descriptor begins, or this one from its start.
    pub(crate) fn forget(&mut self) {
        for run in self.ahead.iter_mut().chain(&mut self.behind) {
            run.bytes.clear();
        }
        self.extents = Default::default();
        self.overwritten.clear();
    }

    /// Puts back what was written over what the descriptor may read, the last first: it begins anew.
    pub(crate) fn put_back(&mut self, target: &Target) {
        for run in &mut self.behind {
            run.bytes.clear();
        }
        while let Some((start, bytes)) = self.overwritten.pop() {
            // What is not there any more cannot be read either.
            let _ = transfer::write(target, start, &bytes);
        }
    }

    /// The descriptor may read these bytes.
    pub(crate) fn allow(&mut self, start: u64, len: u64) {
        self.turn = self.turn.wrapping_add(1);
        self.extents[self.turn % EXTENTS] = start..start + len;
    }

    pub(crate) fn read(
        &mut self,
        target: &Target,
        addr: u64,
        into: &mut [u8],
    ) -> Result<(), Fault> {
        let range = addr..addr + into.len() as u64;
        if self.behind.iter().any(|run| run.overlaps(&range)) {
            self.flush(target)?;
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
            return transfer::read(target, addr, into).map_err(fault);
        }
        let run = &mut self.ahead[index];
        run.start = addr;
        run.step = step;
        run.bytes.resize(len, 0);
        let read = transfer::read(target, addr, &mut run.bytes);
        if read.is_err() {
            run.bytes.clear();
        }
        read.map_err(fault)?;
        into.copy_from_slice(&run.bytes[..into.len()]);
        Ok(())
    }

    pub(crate) fn write(&mut self, target: &Target, addr: u64, from: &[u8]) -> Result<(), Fault> {
        let range = addr..addr + from.len() as u64;
        for run in &mut self.ahead {
            if run.overlaps(&range) {
                run.bytes.clear();
            }
        }
        if self.behind.iter().any(|run| run.overlaps(&range)) {
            self.flush(target)?;
        }
        let follows = |run: &Run| {
            !run.bytes.is_empty() && run.end() == addr && run.bytes.len() + from.len() <= BLOCK
        };
        let index = match self.behind.iter().position(follows) {
            Some(index) => index,
            None => {
                let empty = self.behind.iter().position(|run| run.bytes.is_empty());
                let index = empty.unwrap_or_else(|| self.other());
                self.put(target, index)?;
                self.behind[index].start = addr;
                index
            }
        };
        self.behind[index].bytes.extend_from_slice(from);
        Ok(())
    }

    /// Moves bytes between places that do not overlap.
    pub(crate) fn copy(
        &mut self,
        target: &Target,
        from: u64,
        to: u64,
        len: u64,
    ) -> Result<(), Fault> {
        self.flush(target)?;
        for run in &mut self.ahead {
            run.bytes.clear();
        }
        let fault = |place: u64, access| {
            move |short: transfer::Short| Fault {
                address: place + short.done as u64,
                access,
            }
        };
        self.passing.resize(COPY.max(self.passing.len()), 0);
        let mut done = 0;
        while done < len {
            let part = &mut self.passing[..(len - done).min(COPY as u64) as usize];
            transfer::read(target, from + done, part).map_err(fault(from + done, Access::Read))?;
            transfer::write(target, to + done, part).map_err(fault(to + done, Access::Write))?;
            done += part.len() as u64;
        }
        Ok(())
    }

    /// Writes what has been collected.
    pub(crate) fn flush(&mut self, target: &Target) -> Result<(), Fault> {
        (0..STREAMS).try_for_each(|index| self.put(target, index))
    }

    /// Writes one stream, and keeps what was there if the descriptor may read it.
    fn put(&mut self, target: &Target, index: usize) -> Result<(), Fault> {
        let run = &mut self.behind[index];
        if run.bytes.is_empty() {
            return Ok(());
        }
        let range = run.start..run.end();
        let reads = |extent: &Range<u64>| extent.start < range.end && range.start < extent.end;
        if self.extents.iter().any(reads) {
            let mut before = vec![0; run.bytes.len()];
            if let Err(short) = transfer::read(target, run.start, &mut before) {
                before.truncate(short.done);
            }
            self.overwritten.push((run.start, before));
        }
        let written = transfer::write(target, run.start, &run.bytes);
        run.bytes.clear();
        written.map_err(|short| Fault {
            address: range.start + short.done as u64,
            access: Access::Write,
        })
    }

    fn other(&mut self) -> usize {
        self.turn = self.turn.wrapping_add(1);
        self.turn % STREAMS
    }
}
