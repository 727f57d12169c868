//! Which blocks are accessed: the best that the machine has, and which that is.
//!
//! A tracker is called once an interval. It enters accesses in the engine's blocks and returns what that
//! cost. One by hardware samples (PEBS) or by the userfaultfd mode for reads (RWP) would be one
//! more implementation of [`Tracker`].

mod damon;
mod scan;

pub use damon::DamonTracker;
pub use scan::ScanTracker;

use std::path::Path;
use std::time::Duration;

use crate::error::TierError;
use crate::mechanism::{BLOCK, Blocks, Engine};
use crate::sys::HUGE;
use crate::sys::damon::{Damon, DamonError};
use crate::sys::pagemap::{FILE, HUGE_PAGE, PRESENT, PageMap, Wanted, ZERO};

/// Memory that is entered into the books under one lock.
const STRETCH: u64 = 64 * BLOCK;

/// What tracking did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tracked {
    /// Whether memory was looked at.
    pub scanned: bool,
    /// Hints that were put out, and that were touched since the last time.
    pub armed: u64,
    /// As above.
    pub touched: u64,
    /// What this thread used, and what it estimates that program and kernel did.
    pub cost: Duration,
}

/// Finds out which blocks are accessed.
pub trait Tracker: Send {
    /// Which it is.
    fn tracking(&self) -> Tracking;

    /// One interval, with `overhead` percent of a core.
    ///
    /// # Errors
    /// It cannot track any more: another tracker is to be taken.
    fn step(&mut self, engine: &Engine, overhead: u64) -> Result<Tracked, DamonError>;
}

/// The trackers that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// [`ScanTracker`] with hints, in strict order.
    ScanAndHints,
    /// [`ScanTracker`] with hints, in shared-read order, where no writes are tracked.
    Hints,
    /// [`DamonTracker`].
    Damon,
    /// [`ScanTracker`] without hints, in strict order.
    Writes,
    /// [`ScanTracker`] without hints, in shared-read order, and from outside where there is no way: which pages there
    /// are.
    Nothing,
    /// From outside, by the kernel's idle page tracking.
    IdlePages,
    /// From outside, by DAMON on physical addresses.
    PhysicalDamon,
    /// From outside, by soft-dirty bits.
    SoftDirty,
}

/// All of them.
pub const TRACKINGS: [Tracking; 8] = [
    Tracking::ScanAndHints,
    Tracking::Hints,
    Tracking::Damon,
    Tracking::Writes,
    Tracking::Nothing,
    Tracking::IdlePages,
    Tracking::PhysicalDamon,
    Tracking::SoftDirty,
];

impl Tracking {
    /// As it is said.
    pub fn name(self) -> &'static str {
        match self {
            Self::ScanAndHints => "writes by PAGEMAP_SCAN, reads by hint faults",
            Self::Hints => "reads and writes by hint faults",
            Self::Damon => "reads and writes by DAMON (fvaddr)",
            Self::Writes => "writes by PAGEMAP_SCAN, no reads",
            Self::Nothing => "no accesses",
            Self::IdlePages => "reads and writes by idle page tracking (page_idle)",
            Self::PhysicalDamon => "reads and writes by DAMON (paddr), coarsely",
            Self::SoftDirty => "writes by soft-dirty bits, no reads",
        }
    }
}

/// Which tracker is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Choice {
    /// Inside a program what holds no page out and needs no rights: scans for writes. From outside the best that there
    /// is.
    #[default]
    Best,
    /// DAMON or nothing.
    Damon,
    /// Scans for writes, and hints.
    Hints,
}

/// Whether a program can be tracked as asked for: before it starts, so that nothing runs in vain.
///
/// # Errors
/// DAMON alone was asked for and cannot be had.
pub fn check(choice: Choice, damon: &Path) -> Result<(), TierError> {
    if choice != Choice::Damon {
        return Ok(());
    }
    // It is given back at once.
    let taken = Damon::take(damon, std::process::id());
    taken.map(drop).map_err(|cause| TierError::Damon { cause })
}

/// The tracker for the memory of an engine, which is that of process `pid`.
///
/// # Errors
/// DAMON was asked for and cannot be had; `/proc` is not there.
pub fn choose(
    choice: Choice,
    engine: &Engine,
    damon: &Path,
    pid: i32,
) -> Result<Box<dyn Tracker>, TierError> {
    if choice != Choice::Damon {
        let hints = choice == Choice::Hints;
        let tracker = ScanTracker::new(engine.pagemap()?, engine.config().order, hints);
        return Ok(Box::new(tracker));
    }
    let taken = DamonTracker::take(damon, pid).map_err(|error| TierError::System {
        call: "opening /proc/PID/pagemap",
        errno: error.raw_os_error().unwrap_or(0),
    })?;
    match taken {
        Ok(tracker) => Ok(Box::new(tracker)),
        Err(cause) => Err(TierError::Damon { cause }),
    }
}

/// Memory whose blocks are tracked: the engine's, or another process's.
pub(crate) trait Books {
    /// Which pages are there is found elsewhere: trackers leave it as it is.
    const COUNTS_PAGES: bool = false;

    /// Its ranges, in order and apart.
    fn regions(&self) -> Vec<(u64, u64)>;

    /// Has what is known of a range changed, if it is still tracked.
    fn change(&self, start: u64, end: u64, change: impl FnOnce(&mut Blocks));
}

impl Books for Engine {
    fn regions(&self) -> Vec<(u64, u64)> {
        Engine::regions(self)
    }

    fn change(&self, start: u64, end: u64, change: impl FnOnce(&mut Blocks)) {
        self.with_blocks(start, end, change);
    }
}

/// Calls `each` for the stretches of all tracked memory, each with its first byte and what is behind
/// the last.
pub(crate) fn stretches(books: &impl Books, mut each: impl FnMut(u64, u64)) {
    for (start, end) in books.regions() {
        let mut at = start;
        while at < end {
            let until = ((at / STRETCH + 1) * STRETCH).min(end);
            each(at, until);
            at = until;
        }
    }
}

/// Enters which pages of a stretch are there and which of them are huge, and, with `round`, that all blocks have been
/// looked at once more; then what `then` knows of it.
pub(crate) fn enter_present<B: Books>(
    pagemap: &mut PageMap,
    books: &B,
    start: u64,
    end: u64,
    round: bool,
    then: impl FnOnce(&mut Blocks),
) {
    let mut present = Vec::new();
    let wanted = Wanted {
        all: PRESENT,
        none: FILE | ZERO,
        report: HUGE_PAGE,
        protect: false,
    };
    if !B::COUNTS_PAGES {
        // What has been unmapped meanwhile is not there next time.
        let _ = pagemap.scan(start, end, wanted, |run| present.push(run));
    }
    books.change(start, end, |blocks| {
        blocks.change_known(start, end, |block, pages| {
            if !B::COUNTS_PAGES {
                block.present &= !pages;
                block.huge = false;
            }
            if round {
                block.idle = block.idle.saturating_add(1);
                block.touched <<= 1;
            }
        });
        for run in &present {
            blocks.change_range(run.start, run.end, |block, pages| {
                block.present |= pages;
                block.huge |= run.categories & HUGE_PAGE != 0;
            });
        }
        then(blocks);
    });
}

pub(crate) fn access(block: &mut crate::mechanism::Block, weight: u32) {
    block.touched |= 1;
    block.idle = 0;
    block.heat = block.heat.saturating_add(weight);
}

/// The range that moves as a whole with a block: its huge page, or itself.
pub(crate) fn unit(number: u64, huge: bool) -> (u64, u64) {
    let start = number * BLOCK;
    match huge {
        true => (start / HUGE * HUGE, HUGE),
        false => (start, BLOCK),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tracking_damon_is_checked_and_released() {
        let root = tempfile::tempdir().expect("a directory");
        let absent = check(Choice::Damon, root.path()).expect_err("there is none");
        assert!(
            matches!(
                absent,
                TierError::Damon {
                    cause: DamonError::Absent
                }
            ),
            "{absent}"
        );
        assert!(check(Choice::Best, root.path()).is_ok());
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        put("nr_kdamonds", "0");
        put("0/contexts/nr_contexts", "0");
        put("0/contexts/0/avail_operations", "vaddr\nfvaddr\n");
        put("0/contexts/0/operations", "vaddr");
        check(Choice::Damon, root.path()).expect("it is free");
        let count = fs::read_to_string(root.path().join("nr_kdamonds"));
        assert_eq!(count.expect("a file"), "0");
        let other = Damon::take(root.path(), 1).expect("it is free");
        let in_use = check(Choice::Damon, root.path()).expect_err("somebody has it");
        assert!(
            in_use.hint().is_some_and(|hint| hint.contains("best")),
            "{in_use}"
        );
        drop(other);
    }
}
