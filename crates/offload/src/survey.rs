//! What a survey counts: each place in a program that copies, fills or compares, in a file that all
//! processes of the session have mapped.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::calls::Call;

/// Buckets of sizes, and of times between calls: powers of two.
pub const BUCKETS: usize = 40;
/// Places that there is room for.
pub const MOST_SITES: usize = 4096;
/// Bytes of a file's name that are kept: its end.
pub const PATH_BYTES: usize = 192;
const MAGIC: u64 = u64::from_le_bytes(*b"draysur2");

/// Where an operand begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alignment {
    /// At a page.
    pub page: u64,
    /// At a cache line, and at no page.
    pub line: u64,
    /// Elsewhere.
    pub other: u64,
}

#[derive(Debug)]
#[repr(C)]
struct Counter {
    calls: AtomicU64,
    bytes: AtomicU64,
    /// Calls both of whose operands' first pages were an operand's before.
    seen: AtomicU64,
    /// Calls whose destination begins at a cache line.
    aligned: AtomicU64,
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct RawSite {
    /// 0: free.
    key: AtomicU64,
    /// 1: what follows is written.
    ready: AtomicU64,
    call: AtomicU64,
    process: AtomicU64,
    /// Offset in the file of the return address.
    offset: AtomicU64,
    path: [AtomicU8; PATH_BYTES],
    sizes: [Counter; BUCKETS],
    /// Of the destination, or the second operand of a comparison: page, line, other.
    to: [AtomicU64; 3],
    from: [AtomicU64; 3],
    /// Cycles since the call before, of whatever thread.
    gaps: [AtomicU64; BUCKETS],
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct RawSurvey {
    magic: AtomicU64,
    processes: AtomicU64,
    /// Calls of places for which there was no room.
    lost: AtomicU64,
    /// Calls whose recording was timed, and its cycles.
    timed: AtomicU64,
    cycles: AtomicU64,
    sites: [RawSite; MOST_SITES],
}

/// The file, mapped.
#[derive(Debug, Clone, Copy)]
pub struct SurveyFile {
    raw: &'static RawSurvey,
}

/// A call that is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// The function.
    pub call: Call,
    /// Address of what it writes, or of the second operand of a comparison.
    pub to: usize,
    /// Address of what it reads; `None` for a fill.
    pub from: Option<usize>,
    /// Bytes.
    pub len: usize,
    /// Both operands were an operand before.
    pub again: bool,
    /// Cycles since the call before.
    pub gap: u64,
}

/// The processor's time stamp counter.
pub fn cycles() -> u64 {
    // SAFETY: the processor has a time stamp counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

fn bucket(value: u64) -> usize {
    (value.max(1).ilog2() as usize).min(BUCKETS - 1)
}

/// Index of an address that begins at no cache line, in what [`alignment`] gives.
const UNALIGNED: usize = 2;

fn alignment(address: usize) -> usize {
    match address {
        address if address.is_multiple_of(4096) => 0,
        address if address.is_multiple_of(64) => 1,
        _ => UNALIGNED,
    }
}

impl SurveyFile {
    /// A new file.
    ///
    /// # Errors
    /// It is there already, or cannot be made or mapped.
    pub fn create(path: &Path) -> io::Result<SurveyFile> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        file.set_len(size_of::<RawSurvey>() as u64)?;
        let survey = SurveyFile::map(&file)?;
        survey.raw.magic.store(MAGIC, Ordering::Release);
        Ok(survey)
    }

    /// A file that [`SurveyFile::create`] has made.
    ///
    /// # Errors
    /// It cannot be read, or is another file.
    pub fn open(path: &Path) -> io::Result<SurveyFile> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let other = || io::Error::new(io::ErrorKind::InvalidData, "no file of a survey");
        if file.metadata()?.len() != size_of::<RawSurvey>() as u64 {
            return Err(other());
        }
        let survey = SurveyFile::map(&file)?;
        match survey.raw.magic.load(Ordering::Acquire) == MAGIC {
            true => Ok(survey),
            false => Err(other()),
        }
    }

    fn map(file: &File) -> io::Result<SurveyFile> {
        // SAFETY: a new mapping wherever there is room.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<RawSurvey>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it stays mapped, is aligned to a page, and consists of atomics, of which any bytes
        // are a value.
        let raw = unsafe { &*base.cast::<RawSurvey>() };
        Ok(SurveyFile { raw })
    }

    /// A process has begun.
    pub fn begun(&self) {
        self.raw.processes.fetch_add(1, Ordering::Relaxed);
    }

    /// The recording of one call has taken so many cycles.
    pub fn timed(&self, cycles: u64) {
        self.raw.timed.fetch_add(1, Ordering::Relaxed);
        self.raw.cycles.fetch_add(cycles, Ordering::Relaxed);
    }

    /// Counts a call of a place, whose file and offset `place` finds when it is new: it writes the
    /// end of the path to where it is named, and gives the offset.
    pub fn record(
        &self,
        process: u32,
        site: usize,
        seen: &Seen,
        place: impl FnOnce(&mut [u8; PATH_BYTES]) -> u64,
    ) {
        let Some(found) = self.find(process, site, seen.call, place) else {
            self.raw.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let size = &found.sizes[bucket(seen.len as u64)];
        size.calls.fetch_add(1, Ordering::Relaxed);
        size.bytes.fetch_add(seen.len as u64, Ordering::Relaxed);
        if seen.again {
            size.seen.fetch_add(1, Ordering::Relaxed);
        }
        if alignment(seen.to) < UNALIGNED {
            size.aligned.fetch_add(1, Ordering::Relaxed);
        }
        found.to[alignment(seen.to)].fetch_add(1, Ordering::Relaxed);
        if let Some(from) = seen.from {
            found.from[alignment(from)].fetch_add(1, Ordering::Relaxed);
        }
        found.gaps[bucket(seen.gap)].fetch_add(1, Ordering::Relaxed);
    }

    fn find(
        &self,
        process: u32,
        site: usize,
        call: Call,
        place: impl FnOnce(&mut [u8; PATH_BYTES]) -> u64,
    ) -> Option<&'static RawSite> {
        let mixed = (site as u64 ^ u64::from(process) << 40 ^ (call as u64) << 60)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = mixed | 1;
        let start = (mixed >> 40) as usize % MOST_SITES;
        for step in 0..64 {
            let raw = &self.raw.sites[(start + step) % MOST_SITES];
            let held = raw.key.load(Ordering::Acquire);
            if held == key {
                return Some(raw);
            }
            if held != 0 {
                continue;
            }
            match raw
                .key
                .compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    let mut path = [0; PATH_BYTES];
                    let offset = place(&mut path);
                    for (byte, value) in raw.path.iter().zip(path) {
                        byte.store(value, Ordering::Relaxed);
                    }
                    raw.offset.store(offset, Ordering::Relaxed);
                    raw.call.store(call as u64, Ordering::Relaxed);
                    raw.process.store(process.into(), Ordering::Relaxed);
                    raw.ready.store(1, Ordering::Release);
                    return Some(raw);
                }
                Err(other) if other == key => return Some(raw),
                Err(_) => {}
            }
        }
        None
    }

    /// All of it, as it is now.
    pub fn read(&self) -> Survey {
        let get = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let align = |values: &[AtomicU64; 3]| Alignment {
            page: get(&values[0]),
            line: get(&values[1]),
            other: get(&values[2]),
        };
        let sites = self.raw.sites.iter();
        let sites = sites.filter(|site| site.ready.load(Ordering::Acquire) == 1);
        let sites = sites.map(|site| {
            let path: Vec<u8> = site
                .path
                .iter()
                .map(|byte| byte.load(Ordering::Relaxed))
                .take_while(|byte| *byte != 0)
                .collect();
            let sizes = site.sizes.iter().enumerate();
            Site {
                call: Call::ALL[get(&site.call) as usize % 4],
                process: get(&site.process) as u32,
                path: String::from_utf8_lossy(&path).into_owned(),
                offset: get(&site.offset),
                sizes: sizes
                    .map(|(at, size)| Size {
                        from_bytes: 1 << at,
                        calls: get(&size.calls),
                        bytes: get(&size.bytes),
                        seen: get(&size.seen),
                        aligned: get(&size.aligned),
                    })
                    .filter(|size| size.calls > 0)
                    .collect(),
                to: align(&site.to),
                from: align(&site.from),
                gaps: site.gaps.iter().map(get).collect(),
            }
        });
        Survey {
            processes: get(&self.raw.processes),
            lost: get(&self.raw.lost),
            timed: get(&self.raw.timed),
            cycles: get(&self.raw.cycles),
            sites: sites.collect(),
        }
    }
}

/// Calls of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// From this, in bytes, to below its double.
    pub from_bytes: u64,
    /// Calls.
    pub calls: u64,
    /// Bytes.
    pub bytes: u64,
    /// Calls whose operands were operands before.
    pub seen: u64,
    /// Calls whose destination, or second operand of a comparison, begins at a cache line.
    pub aligned: u64,
}

/// A place that calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What it calls.
    pub call: Call,
    /// Its process.
    pub process: u32,
    /// The file that its code is in; empty if it is in none.
    pub path: String,
    /// Where in the file the call returns to.
    pub offset: u64,
    /// By size.
    pub sizes: Vec<Size>,
    /// Where destinations begin, or second operands of comparisons.
    pub to: Alignment,
    /// Where sources begin.
    pub from: Alignment,
    /// Calls by cycles since the call before: powers of two.
    pub gaps: Vec<u64>,
}

/// What was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Programs that were started.
    pub processes: u64,
    /// Calls of places for which there was no room.
    pub lost: u64,
    /// Calls whose recording was timed.
    pub timed: u64,
    /// Cycles of those.
    pub cycles: u64,
    /// The places.
    pub sites: Vec<Site>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_site_size_and_alignment() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("survey");
        let survey = SurveyFile::create(&path).expect("a file");
        let other = SurveyFile::open(&path).expect("the same");
        let seen = Seen {
            call: Call::Memcpy,
            to: 8192,
            from: Some(64),
            len: 5000,
            again: true,
            gap: 1000,
        };
        let name = |path: &mut [u8; PATH_BYTES]| {
            path[..2].copy_from_slice(b"/a");
            0x1234
        };
        other.record(7, 0x5000, &seen, name);
        other.record(
            7,
            0x5000,
            &Seen {
                to: 1,
                again: false,
                ..seen
            },
            |_| 0,
        );
        survey.record(
            8,
            0x5000,
            &Seen {
                call: Call::Memset,
                from: None,
                ..seen
            },
            name,
        );
        let read = survey.read();
        assert_eq!(read.sites.len(), 2);
        let site = read.sites.iter().find(|site| site.process == 7);
        let site = site.expect("it is there");
        assert_eq!((site.path.as_str(), site.offset), ("/a", 0x1234));
        let size = Size {
            from_bytes: 4096,
            calls: 2,
            bytes: 10_000,
            seen: 1,
            aligned: 1,
        };
        assert_eq!(site.sizes, [size]);
        assert_eq!((site.to.page, site.to.line, site.to.other), (1, 0, 1));
        assert_eq!(site.from.line, 2);
        assert_eq!(site.gaps[9], 2);
    }

    #[test]
    fn calls_beyond_the_table_are_counted_as_lost() {
        let directory = tempfile::tempdir().expect("a directory");
        let survey = SurveyFile::create(&directory.path().join("s")).expect("a file");
        let seen = Seen {
            call: Call::Memcmp,
            to: 0,
            from: Some(0),
            len: 1,
            again: false,
            gap: 0,
        };
        for site in 0..2 * MOST_SITES {
            survey.record(1, site * 16, &seen, |_| 0);
        }
        let read = survey.read();
        let calls: u64 = read
            .sites
            .iter()
            .flat_map(|s| &s.sizes)
            .map(|s| s.calls)
            .sum();
        assert_eq!(calls + read.lost, 2 * MOST_SITES as u64);
        assert!(read.lost > 0 && calls > 0);
    }
}
