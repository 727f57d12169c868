//! Memory at which a descriptor has a page fault somewhere, and whose lines are written in any order.

use std::cell::Cell;

use dray_device::{Access, AddressSpace, Memory, Task, View};

use super::Plan;
use super::plan::shuffled;
use crate::SharedMemory;

const PAGE: u64 = 4096;
/// What is written at once (spec 3.9 orders nothing within a descriptor).
const LINE: u64 = 64;
/// Bytes that wait to be written at most; more are written in parts.
const MOST_BYTES: usize = 1 << 20;
/// Bytes of a copy that are read at once.
const CHUNK: u64 = 64 << 10;
/// Parts in which what waits is written at most: where it is more, they are several lines.
const MOST_PARTS: u64 = 256;

/// Bytes that are to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.address + self.bytes.len() as u64
    }

    fn overlaps(&self, start: u64, len: u64) -> bool {
        self.address < start.saturating_add(len) && start < self.end()
    }
}

/// Where the page fault is.
#[derive(Debug, Clone, Copy)]
enum FaultAt {
    Nowhere,
    /// In one of the operands that are still to be looked at.
    Ahead(u64),
    /// On this page.
    Page(u64),
}

/// The memory of one descriptor.
#[derive(Debug)]
pub(crate) struct ChaoticMemory<'a, M> {
    inner: &'a mut M,
    fault: Cell<FaultAt>,
    lines: Option<u64>,
    waiting: Vec<Piece>,
    waiting_bytes: usize,
    /// Accesses before those of operands: that of the record.
    before_operands: u32,
    /// The page of the record is not there.
    unrecorded: bool,
    blocks: bool,
}

impl<'a, M: SharedMemory> ChaoticMemory<'a, M> {
    /// For a descriptor that is about to be executed.
    pub(crate) fn new(inner: &'a mut M, task: &Task, plan: &Plan) -> ChaoticMemory<'a, M> {
        ChaoticMemory {
            inner,
            fault: Cell::new(plan.fault.map_or(FaultAt::Nowhere, FaultAt::Ahead)),
            lines: plan.lines,
            waiting: Vec::new(),
            waiting_bytes: 0,
            before_operands: 1 + u32::from(task.record.is_some()),
            unrecorded: plan.unrecorded,
            blocks: false,
        }
    }

    pub(crate) fn enter(&mut self, view: View) {
        self.before_operands = self.before_operands.saturating_sub(1);
        self.blocks = view.blocks;
        self.inner.enter(view);
    }

    /// Writes what waits, in the order of the plan; with `tear` not all of it: the rest is for later.
    pub(crate) fn write_out(mut self, tear: bool) -> Vec<Piece> {
        let mut parts = self.parts();
        let kept = match (self.lines, tear && parts.len() > 1) {
            (Some(choice), true) => choice as usize % parts.len(),
            _ => 0,
        };
        let rest = parts.split_off(parts.len() - kept);
        for part in &parts {
            self.inner.write(part.address, &part.bytes);
        }
        rest
    }

    /// What waits, in lines, in any order.
    fn parts(&mut self) -> Vec<Piece> {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(choice) = self.lines else {
            return waiting;
        };
        let bytes = std::mem::take(&mut self.waiting_bytes) as u64;
        let step = bytes.div_ceil(MOST_PARTS).next_multiple_of(LINE);
        let mut parts = Vec::new();
        for piece in waiting {
            let mut start = piece.address;
            while start < piece.end() {
                let end = (start / LINE * LINE + step).min(piece.end());
                let range = (start - piece.address) as usize..(end - piece.address) as usize;
                parts.push(Some(Piece {
                    address: start,
                    bytes: piece.bytes[range].to_vec(),
                }));
                start = end;
            }
        }
        let order = shuffled(choice, parts.len());
        order
            .into_iter()
            .filter_map(|index| parts[index].take())
            .collect()
    }

    /// Writes all that waits.
    fn spill(&mut self) {
        for part in self.parts() {
            self.inner.write(part.address, &part.bytes);
        }
    }

    /// Where the fault is among `len` bytes.
    fn fault_in(&self, addr: u64, len: u64) -> Option<u64> {
        if let FaultAt::Ahead(choice) = self.fault.get() {
            // It is the next operand, half of the time; an operand behind the last one has none.
            let here = choice & 1 == 1;
            let page = (addr + (choice >> 8) % len) / PAGE * PAGE;
            let rest = choice >> 8 << 8 | (choice & 0xff) >> 1;
            self.fault.set(match here {
                true => FaultAt::Page(page),
                false => FaultAt::Ahead(rest),
            });
        }
        let FaultAt::Page(page) = self.fault.get() else {
            return None;
        };
        let at = page.max(addr);
        (at < addr + len && at - page < PAGE).then_some(at)
    }
}

impl<M: SharedMemory> Memory for ChaoticMemory<'_, M> {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let bytes = self.inner.accessible(addr, len, access);
        if self.before_operands > 0 && self.unrecorded && !self.blocks {
            return 0;
        }
        if self.before_operands > 0 || self.blocks || bytes == 0 {
            return bytes;
        }
        self.fault_in(addr, bytes).map_or(bytes, |at| at - addr)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.inner.read(addr, into);
        let len = into.len() as u64;
        for piece in self.waiting.iter().filter(|p| p.overlaps(addr, len)) {
            let (start, end) = (addr.max(piece.address), (addr + len).min(piece.end()));
            let from = (start - piece.address) as usize..(end - piece.address) as usize;
            let to = (start - addr) as usize..(end - addr) as usize;
            into[to].copy_from_slice(&piece.bytes[from]);
        }
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        if self.lines.is_none() {
            return self.inner.write(addr, from);
        }
        let len = from.len() as u64;
        let full = self.waiting_bytes + from.len() > MOST_BYTES;
        if full || self.waiting.iter().any(|piece| piece.overlaps(addr, len)) {
            self.spill();
        }
        self.waiting_bytes += from.len();
        self.waiting.push(Piece {
            address: addr,
            bytes: from.to_vec(),
        });
    }

    fn copy(&mut self, from: u64, to: u64, len: u64) {
        let overlaps = from.abs_diff(to) < len;
        if self.lines.is_none() || overlaps && len > MOST_BYTES as u64 {
            self.spill();
            return self.inner.copy(from, to, len);
        }
        let step = if overlaps { len } else { CHUNK };
        let mut buffer = Vec::new();
        let mut done = 0;
        while done < len {
            buffer.resize(step.min(len - done) as usize, 0);
            self.read(from + done, &mut buffer);
            self.write(to + done, &buffer);
            done += buffer.len() as u64;
        }
    }

    fn flush(&mut self, addr: u64, len: u64) {
        self.inner.flush(addr, len);
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        self.spill();
        self.inner.alternate(space)
    }
}
