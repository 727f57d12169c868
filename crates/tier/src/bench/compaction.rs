//! The kernel's own migration, as a measure: what compaction costs a page.

use std::fmt;
use std::fs;

use serde::Serialize;

use super::Quartiles;
use super::memory::Mapped;
use crate::TierError;
use crate::sys::{PAGE, memory, thread_cpu_ns};

/// Where one byte written has the kernel compact all of its memory.
const CONTROL: &str = "/proc/sys/vm/compact_memory";

/// Compaction, with its copies: the kernel does not separate the two.
#[derive(Debug, Clone, Serialize)]
pub struct Compaction {
    /// Core time of the calling thread for a page that moved, the search for pages and their copies
    /// included.
    pub core_ns: Quartiles,
    /// Rounds in which a thousand pages moved or more.
    pub rounds: usize,
    /// Pages that moved in them.
    pub pages: u64,
}

impl fmt::Display for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = &self.core_ns;
        write!(
            f,
            "kernel compaction, search and copies included: {} ns a page ({} to {}), {} pages in {} rounds",
            ns.median, ns.lower, ns.upper, self.pages, self.rounds
        )
    }
}

/// Has the kernel compact memory of which every second page of `bytes` was freed, so often. `None` where
/// that is not allowed, or nothing moves.
///
/// # Errors
/// No memory.
pub fn compaction(bytes: u64, rounds: usize) -> Result<Option<Compaction>, TierError> {
    let (mut core, mut pages) = (Vec::new(), 0);
    for _ in 0..rounds {
        let memory = Mapped::new(bytes, false)?;
        for page in (0..bytes / PAGE).step_by(2) {
            // SAFETY: the benchmark's own memory, without references into it.
            let _ = unsafe { memory::empty(memory.start + page * PAGE, PAGE) };
        }
        let (before, start) = (migrated(), thread_cpu_ns());
        if fs::write(CONTROL, "1").is_err() {
            return Ok(None);
        }
        let spent = thread_cpu_ns() - start;
        let moved = migrated().saturating_sub(before);
        if moved >= 1000 {
            core.push(spent / moved);
            pages += moved;
        }
    }
    Ok((!core.is_empty()).then(|| Compaction {
        rounds: core.len(),
        core_ns: Quartiles::of(core),
        pages,
    }))
}

/// Pages that the kernel has migrated since it runs.
fn migrated() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("pgmigrate_success "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}
