//! How many pages in a row a call must move for the cost of a page to be low.
//!
//! x86 invalidates up to 33 pages one by one and flushes the whole TLB above; a call for 34 pages
//! costs less than one for 33. Where that is depends on the machine, so it is measured.

use std::time::Instant;

use crate::TierError;
use crate::error::system;
use crate::sys::uffd::{FEATURE_MOVE, REGISTER_MISSING, Uffd};
use crate::sys::{PAGE, memory};

/// Lengths that are tried, in pages.
const LENGTHS: [u64; 10] = [1, 8, 16, 32, 34, 48, 64, 128, 256, 512];
const ROUNDS: usize = 9;
/// Rounds that are repeated because a call failed.
const FAILURES: u32 = 8;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knee {
    /// The shortest run, in pages, whose cost is within a quarter of the longest run's.
    pub pages: u64,
    /// Nanoseconds a page to move out and in, by length of run.
    pub costs: Vec<(u64, u64)>,
}

/// Measures it on memory of its own: some 5 ms.
///
/// # Errors
/// userfaultfd is forbidden; no memory.
pub fn measure() -> Result<Knee, TierError> {
    let longest = LENGTHS[LENGTHS.len() - 1] * PAGE;
    let uffd = Uffd::open(FEATURE_MOVE).map_err(|errno| TierError::Forbidden { errno })?;
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
        let mut rounds = [0; ROUNDS];
        for round in &mut rounds {
            *round = loop {
                let start = Instant::now();
                let there_and_back = [(away, home), (home, away)].map(|(dst, src)| {
                    // SAFETY: memory of this function, without references into it.
                    unsafe { uffd.move_pages(dst, src, len, false) }
                });
                let Some((_, errno)) = there_and_back.into_iter().find_map(Result::err) else {
                    break start.elapsed().as_nanos() as u64 / pages;
                };
                failures += 1;
                if failures > FAILURES {
                    return Err(system("UFFDIO_MOVE")(errno));
                }
                uffd.unregister(home, 2 * longest)
                    .map_err(system("UFFDIO_UNREGISTER"))?;
                memory::empty(away, longest).map_err(system("madvise"))?;
                memory::advise(home, longest, libc::MADV_POPULATE_WRITE)
                    .map_err(system("madvise"))?;
                uffd.register(home, 2 * longest, REGISTER_MISSING)
                    .map_err(system("UFFDIO_REGISTER"))?;
            };
        }
        rounds.sort_unstable();
        costs.push((pages, rounds[ROUNDS / 2]));
    }
    let best = costs[costs.len() - 1].1;
    let pages = costs
        .iter()
        .find(|(_, cost)| *cost <= best + best / 4)
        .map_or(LENGTHS[LENGTHS.len() - 1], |(pages, _)| *pages);
    Ok(Knee { pages, costs })
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
