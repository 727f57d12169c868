//! Which pages are there: `/proc/PID/pagemap`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub(crate) const PAGE: u64 = 4096;
/// Bit 63: in memory (Documentation/admin-guide/mm/pagemap.rst). A page that has been swapped out, or
/// never touched, has it not, and a device that looks it up has a page fault.
const PRESENT: u64 = 1 << 63;
/// Bit 62: in swap, or being moved. Bit 61: of a file, or shared.
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
/// Entries at a time.
const ENTRIES: usize = 512;

/// The page table of a process, as far as the kernel shows it.
///
/// The file belongs to the address space, not to the number of the process: it reads as empty as soon
/// as the process has ended or executes another program (fs/proc/task_mmu.c, `pagemap_read`), also if
/// the number has come to stand for another process since.
#[derive(Debug)]
pub(crate) struct Pagemap(File);

/// A page, as the kernel shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(u64);

impl Entry {
    pub(crate) fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    pub(crate) fn is_swapped(self) -> bool {
        self.0 & SWAPPED != 0
    }

    pub(crate) fn is_private(self) -> bool {
        self.0 & OF_FILE == 0
    }
}

impl Pagemap {
    /// Pages from `page` on; fewer than `count` where the address space ends.
    pub(crate) fn entries(&self, page: u64, count: usize) -> Vec<Entry> {
        let mut bytes = vec![0; count * 8];
        let mut read = 0;
        while read < bytes.len() {
            match self.read(page + read as u64 / 8, &mut bytes[read..]) {
                Ok(more) if more >= 8 => read += more / 8 * 8,
                _ => break,
            }
        }
        let entries = bytes[..read].as_chunks().0.iter();
        entries
            .map(|entry| Entry(u64::from_ne_bytes(*entry)))
            .collect()
    }

    pub(crate) fn new(file: File) -> Pagemap {
        Pagemap(file)
    }

    /// Whether there is an address space still; `addr` is a valid address in it.
    pub(crate) fn is_there(&self, addr: u64) -> bool {
        let mut entry = [0; 8];
        matches!(self.read(addr / PAGE, &mut entry), Ok(8))
    }

    /// Bytes from `addr` on, at most `len`, before the first page that is not there.
    pub(crate) fn present(&self, addr: u64, len: u64) -> u64 {
        let mut buffer = [0; 8 * ENTRIES];
        let end = addr.saturating_add(len);
        let mut reached = addr;
        while reached < end {
            let page = reached / PAGE;
            let pages = ((end - 1) / PAGE - page + 1).min(ENTRIES as u64);
            let entries = &mut buffer[..pages as usize * 8];
            let Ok(read) = self.read(page, entries) else {
                break;
            };
            let there = entries[..read].chunks_exact(8).take_while(|entry| {
                let entry = <[u8; 8]>::try_from(*entry).map_or(0, u64::from_ne_bytes);
                entry & PRESENT != 0
            });
            let there = there.count() as u64;
            reached = page.saturating_add(there).saturating_mul(PAGE).max(reached);
            if there < pages {
                break;
            }
        }
        reached.min(end) - addr
    }

    fn read(&self, page: u64, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read_at(into, page * 8) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}
