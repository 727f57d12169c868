//! What pages of a process hold, without a change to them: pages that are not there stay so.

use dray_device::Access;
use dray_ops::{CrcOptions, crc32c};

use crate::Spaces;
use crate::pagemap::PAGE;
use crate::process::{Known, Process};
use crate::transfer;

/// Bytes that are looked at; of larger ranges the first ones.
const MOST_BYTES: u64 = 4 << 20;

/// A page, or the part of it that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// The process itself cannot access it.
    Inaccessible,
    /// The process could access it, and it is neither in memory nor in swap.
    Absent,
    /// Swapped out, or being moved.
    Elsewhere,
    /// In memory.
    Present {
        /// It belongs to no file, and is shared with nobody: nothing but the program takes it away.
        private: bool,
        /// CRC-32C of its bytes.
        digest: u32,
    },
}

impl Spaces {
    /// The pages of a range, at most 4 MiB of it; none of an address space that is gone.
    pub fn look(&self, pasid: u32, address: u64, len: u64) -> Vec<PageState> {
        let Some(process) = self.get(pasid) else {
            return Vec::new();
        };
        let end = address.saturating_add(len.min(MOST_BYTES));
        let first = address / PAGE;
        let Some(count) = end.checked_sub(1).map(|last| last / PAGE + 1 - first) else {
            return Vec::new();
        };
        let entries = process.pages.entries(first, count as usize);
        let pages = (first..).zip(entries);
        let states = pages.map(|(page, entry)| {
            let start = (page * PAGE).max(address);
            let end = ((page + 1) * PAGE).min(end);
            state(&process, entry, start, end - start)
        });
        states.collect()
    }

    /// Bytes of the memory that `pasid` stands for; `None` if not all of them are in memory.
    pub fn read(&self, pasid: u32, address: u64, len: usize) -> Option<Vec<u8>> {
        let process = self.get(pasid)?;
        if process.pages.present(address, len as u64) < len as u64 {
            return None;
        }
        let mut bytes = vec![0; len];
        transfer::read(&process.target, address, &mut bytes).ok()?;
        Some(bytes)
    }
}

fn state(process: &Process, entry: crate::pagemap::Entry, start: u64, len: u64) -> PageState {
    if entry.is_present() {
        let mut bytes = [0; PAGE as usize];
        let bytes = &mut bytes[..len as usize];
        if transfer::read(&process.target, start, bytes).is_ok() {
            return PageState::Present {
                private: entry.is_private(),
                digest: crc32c(0, bytes, CrcOptions::default()),
            };
        }
    } else if entry.is_swapped() {
        return PageState::Elsewhere;
    }
    match process.permitted(start, 1, Access::Read, &mut Known::default()) {
        0 => PageState::Inaccessible,
        _ => PageState::Absent,
    }
}
