//! How many pages in a row a call must move for the cost of a page to be low.
//!
//! x86 invalidates up to 33 pages one by one and flushes the whole TLB above; a call for 34 pages
//! costs less than one for 33. Where that is depends on the machine, so it is measured.

use super::engine::refused;
use crate::TierError;
use crate::error::system;
use crate::sys::uffd::{FEATURE_MOVE, REGISTER_MISSING, Uffd};
use crate::sys::{PAGE, memory, thread_cpu_ns};

/// Lengths that are tried, in pages.
const LENGTHS: [u64; 10] = [1, 8, 16, 32, 34, 48, 64, 128, 256, 512];
const ROUNDS: usize = 9;
/// Rounds that are repeated because a call failed.
const FAILURES: u32 = 8;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knee {
    /// The shortest run, in pages, of which a page costs at most twice as much as of the cheapest.
    pub pages: u64,
    /// Nanoseconds of core time a page to move out and in, by length of run: the least of all rounds, for whatever
    /// else runs on the machine only adds to it.
    pub costs: Vec<(u64, u64)>,
}

/// Measures it on memory of its own: some 5 ms.
///
/// # Errors
/// userfaultfd is forbidden; no memory.
pub fn measure() -> Result<Knee, TierError> {
    measure_by(&open()?)
}

/// What [`measure_by`] needs.
pub(super) fn open() -> Result<Uffd, TierError> {
    Uffd::open(FEATURE_MOVE).map_err(refused)
}

/// As [`measure`], with what was opened before.
pub(super) fn measure_by(uffd: &Uffd) -> Result<Knee, TierError> {
    let longest = LENGTHS[LENGTHS.len() - 1] * PAGE;
    let memory = Scratch::new(2 * longest)?;
    let (home, away) = (memory.start, memory.start + longest);
    memory::advise(home, longest, libc::MADV_POPULATE_WRITE).map_err(system("madvise"))?;
    uffd.register(home, 2 * longest, REGISTER_MISSING)
        .map_err(system("UFFDIO_REGISTER"))?;
    // The kernel may be moving these very frames (compaction), and then a call fails now and then.
    let mut failures = 0;
    let mut costs = Vec::new();
    for pages in LENGTHS {
        let len = pages * PAGE;
        let mut least = u64::MAX;
        for _ in 0..ROUNDS {
            let cost = loop {
                let start = thread_cpu_ns();
                let there_and_back = [(away, home), (home, away)].map(|(dst, src)| {
                    // SAFETY: memory of this function, without references into it.
                    unsafe { uffd.move_pages(dst, src, len, false) }
                });
                let Some((_, errno)) = there_and_back.into_iter().find_map(Result::err) else {
                    break (thread_cpu_ns() - start) / pages;
                };
                failures += 1;
                if failures > FAILURES {
                    return Err(system("UFFDIO_MOVE")(errno));
                }
                uffd.unregister(home, 2 * longest)
                    .map_err(system("UFFDIO_UNREGISTER"))?;
                // SAFETY: memory of this function, without references into it.
                let emptied = unsafe { memory::empty(away, longest) };
                emptied.map_err(system("madvise"))?;
                memory::advise(home, longest, libc::MADV_POPULATE_WRITE)
                    .map_err(system("madvise"))?;
                uffd.register(home, 2 * longest, REGISTER_MISSING)
                    .map_err(system("UFFDIO_REGISTER"))?;
            };
            least = least.min(cost);
        }
        costs.push((pages, least));
    }
    Ok(Knee {
        pages: knee(&costs),
        costs,
    })
}

/// Where costs, by length of run, stop to fall steeply.
fn knee(costs: &[(u64, u64)]) -> u64 {
    let cheapest = costs.iter().map(|(_, cost)| *cost).min().unwrap_or(0);
    let cheap = costs.iter().find(|(_, cost)| *cost <= 2 * cheapest);
    cheap.map_or(1, |(pages, _)| *pages)
}

struct Scratch {
    start: u64,
    len: u64,
}

impl Scratch {
    fn new(len: u64) -> Result<Scratch, TierError> {
        let start = memory::reserve(len, PAGE).map_err(system("mmap"))?;
        let _ = memory::advise(start, len, libc::MADV_NOHUGEPAGE);
        Ok(Scratch { start, len })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { memory::unmap(self.start, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_costs_no_longer_fall() {
        // As measured: nanoseconds of both calls by pages in a row.
        let costs = [
            (1, 3501),
            (16, 600),
            (32, 507),
            (34, 149),
            (64, 120),
            (128, 106),
            (512, 120),
        ];
        assert_eq!(knee(&costs), 34);
        assert_eq!(knee(&[(1, 90), (512, 80)]), 1);
        assert_eq!(knee(&[]), 1);
    }
}
