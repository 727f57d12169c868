//! Calls of migrations by reason: pages, times, bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::mechanism::Report;

/// Bins of a histogram: powers of two of pages.
pub const BINS: usize = 16;

/// Why pages migrate, as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// To the slow tier.
    Demotion,
    /// To the fast tier.
    NumaMisplaced,
}

impl Reason {
    /// The kernel's name (`enum migrate_reason`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Demotion => "demotion",
            Self::NumaMisplaced => "numa_misplaced",
        }
    }
}

/// Both reasons. The mode of both is `MIGRATE_ASYNC`: pages that are busy are left.
pub const REASONS: [Reason; 2] = [Reason::Demotion, Reason::NumaMisplaced];

/// Phases of a migration, as they are timed.
pub const PHASES: [&str; 6] = [
    "frames", "protect", "move_out", "copy", "move_in", "release",
];

/// Who copies.
pub const EXECUTORS: [&str; 3] = ["core", "cores", "device"];

/// Calls by number of pages, times and bytes of one reason.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Histogram {
    /// Calls by log2 of their pages; the last bin holds all longer ones.
    pub bins: [AtomicU64; BINS],
    /// Calls.
    pub calls: AtomicU64,
    /// Pages in them.
    pub pages: AtomicU64,
    /// Nanoseconds of each of [`PHASES`].
    pub phases: [AtomicU64; PHASES.len()],
    /// Bytes by each of [`EXECUTORS`].
    pub bytes: [AtomicU64; EXECUTORS.len()],
}

impl Histogram {
    /// Empties it.
    pub(super) fn clear(&self) {
        let all = self.bins.iter();
        let all = all.chain([&self.calls, &self.pages]);
        let all = all.chain(&self.phases).chain(&self.bytes);
        all.for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Adds a call of one page or more.
    pub(super) fn record(&self, report: &Report) {
        let add = |word: &AtomicU64, by: u64| {
            word.fetch_add(by, Ordering::Relaxed);
        };
        let bin = (report.pages.max(1).ilog2() as usize).min(BINS - 1);
        add(&self.bins[bin], 1);
        add(&self.calls, 1);
        add(&self.pages, report.pages);
        let phases = [
            report.frames,
            report.protect,
            report.out,
            report.copy,
            report.back,
            report.release,
        ];
        for (word, phase) in self.phases.iter().zip(phases) {
            add(word, phase.as_nanos() as u64);
        }
        let copied = &report.copied;
        let bytes = [copied.core, copied.cores, copied.device];
        for (word, bytes) in self.bytes.iter().zip(bytes) {
            add(word, bytes);
        }
    }
}
