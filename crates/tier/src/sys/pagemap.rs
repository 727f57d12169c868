//! `PAGEMAP_SCAN` (Linux 6.7): which pages are present, huge, written, without a walk of our own.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::errno;

/// Written since the last scan that protected it.
pub const WRITTEN: u64 = 1 << 1;
/// Backed by a file.
pub const FILE: u64 = 1 << 2;
/// In memory.
pub const PRESENT: u64 = 1 << 3;
/// The shared page of zeros.
pub const ZERO: u64 = 1 << 5;
/// Mapped by a huge page.
pub const HUGE_PAGE: u64 = 1 << 6;

/// Written since `/proc/PID/clear_refs` cleared it, or mapped since.
pub const SOFT_DIRTY: u64 = 1 << 7;

const WP_MATCHING: u64 = 1;
const CHECK_WPASYNC: u64 = 2;
const IOC_SCAN: u64 = 0xc060_6610;

#[repr(C)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const _: () = assert!(size_of::<ScanArg>() == 96);

/// Whether a page has a frame or its content is in swap, by an open `/proc/PID/pagemap`: eight bytes a
/// page, of which bits 63 and 62 say so (Documentation/admin-guide/mm/pagemap.rst). What cannot be read
/// is taken to be there.
pub fn is_there(pagemap: &File, page: u64) -> bool {
    let mut entry = [0u8; 8];
    match pagemap.read_exact_at(&mut entry, page / super::PAGE * 8) {
        Ok(()) => u64::from_ne_bytes(entry) >> 62 != 0,
        Err(_) => true,
    }
}

/// Bit 56 of an entry: this process alone maps the page.
const EXCLUSIVE: u64 = 1 << 56;
/// The frame's number; 0 without CAP_SYS_ADMIN.
const FRAME: u64 = (1 << 55) - 1;

/// What `/proc/PID/pagemap` says of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// No other process maps it.
    pub fn exclusive(self) -> bool {
        self.0 & EXCLUSIVE != 0
    }

    /// Number of its frame; nothing if there is none, or to those without CAP_SYS_ADMIN.
    pub fn frame(self) -> Option<u64> {
        let present = self.0 >> 63 != 0;
        Some(self.0 & FRAME).filter(|frame| present && *frame != 0)
    }
}

/// A run of pages with the same categories.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Run {
    /// First byte.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
    /// Those of `return_mask` that hold.
    pub categories: u64,
}

/// Which pages to report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// All of these hold.
    pub all: u64,
    /// None of these holds.
    pub none: u64,
    /// What to report of each.
    pub report: u64,
    /// Protects what is reported again: its next write is seen. Needs `WP_ASYNC`.
    pub protect: bool,
}

/// Runs that a call reports at most.
const RUNS: usize = 1024;
const FEW_RUNS: usize = 8;

/// A process's page map.
#[derive(Debug)]
pub struct PageMap {
    file: File,
    runs: Vec<Run>,
}

impl PageMap {
    /// Over a file that is open: it shows the memory that was this process's when it was opened.
    pub fn over(file: File) -> PageMap {
        let runs = vec![Run::default(); RUNS];
        PageMap { file, runs }
    }

    /// This process's.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn own() -> io::Result<PageMap> {
        PageMap::open("/proc/self/pagemap")
    }

    /// This process's, for ranges that are alike: the kernel has room for a few runs made with each scan.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn own_for_few_runs() -> io::Result<PageMap> {
        File::open("/proc/self/pagemap").map(PageMap::over_for_few_runs)
    }

    /// As [`PageMap::own_for_few_runs`], over a file that is open.
    pub fn over_for_few_runs(file: File) -> PageMap {
        let mut map = PageMap::over(file);
        map.runs.truncate(FEW_RUNS);
        map
    }

    /// Another process's.
    ///
    /// # Errors
    /// No such process, or no right to look.
    pub fn of(pid: i32) -> io::Result<PageMap> {
        PageMap::open(&format!("/proc/{pid}/pagemap"))
    }

    fn open(path: &str) -> io::Result<PageMap> {
        Ok(PageMap::over(File::open(path)?))
    }

    /// The entries of `start..end`, page by page. Pages whose entry cannot be read have none.
    ///
    /// # Errors
    /// The process has ended.
    pub fn entries(
        &self,
        start: u64,
        end: u64,
        mut each: impl FnMut(u64, Entry),
    ) -> io::Result<()> {
        let mut words = [0u8; 8 * RUNS];
        let mut at = start;
        while at < end {
            let pages = ((end - at) / super::PAGE).min(RUNS as u64) as usize;
            let got = self
                .file
                .read_at(&mut words[..8 * pages], at / super::PAGE * 8)?;
            if got < 8 {
                return Ok(());
            }
            for word in words[..got].chunks_exact(8) {
                let word: [u8; 8] = word.try_into().expect("chunks of eight bytes");
                each(at, Entry(u64::from_ne_bytes(word)));
                at += super::PAGE;
            }
        }
        Ok(())
    }

    /// Calls `each` for runs in `start..end`.
    ///
    /// # Errors
    /// The error number: `ENOTTY` before Linux 6.7.
    pub fn scan(
        &mut self,
        start: u64,
        end: u64,
        wanted: Wanted,
        mut each: impl FnMut(Run),
    ) -> Result<(), i32> {
        let mut at = start;
        while at < end {
            let mut arg = ScanArg {
                size: size_of::<ScanArg>() as u64,
                flags: match wanted.protect {
                    true => WP_MATCHING | CHECK_WPASYNC,
                    false => 0,
                },
                start: at,
                end,
                walk_end: 0,
                vec: self.runs.as_mut_ptr().expose_provenance() as u64,
                vec_len: self.runs.len() as u64,
                max_pages: 0,
                category_inverted: wanted.none,
                category_mask: wanted.all | wanted.none,
                category_anyof_mask: 0,
                return_mask: wanted.report,
            };
            // SAFETY: the structure is the one that the call takes, and the vector has that length.
            let got = unsafe { libc::ioctl(self.file.as_raw_fd(), IOC_SCAN, &raw mut arg) };
            if got < 0 {
                return Err(errno());
            }
            self.runs[..got as usize]
                .iter()
                .copied()
                .for_each(&mut each);
            if arg.walk_end <= at {
                return Err(libc::EIO);
            }
            at = arg.walk_end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{PAGE, memory};

    #[test]
    fn touched_pages_are_present() {
        let start = memory::reserve(16 * PAGE, PAGE).expect("memory");
        for page in [2u64, 3, 7] {
            let byte = std::ptr::with_exposed_provenance_mut::<u8>((start + page * PAGE) as usize);
            // SAFETY: mapped above.
            unsafe { byte.write_volatile(1) };
        }
        let mut map = PageMap::own().expect("/proc");
        let mut seen = Vec::new();
        let wanted = Wanted {
            all: PRESENT,
            report: PRESENT,
            ..Wanted::default()
        };
        let scan = map.scan(start, start + 16 * PAGE, wanted, |run| {
            seen.push(((run.start - start) / PAGE, (run.end - start) / PAGE));
        });
        assert_eq!(scan, Ok(()));
        assert_eq!(seen, [(2, 4), (7, 8)]);
        let mut there = Vec::new();
        map.entries(start, start + 16 * PAGE, |page, entry| {
            if entry.exclusive() {
                there.push((page - start) / PAGE);
            }
        })
        .expect("our own");
        assert_eq!(there, [2, 3, 7]);
        // SAFETY: ours.
        unsafe { memory::unmap(start, 16 * PAGE) };
    }
}
