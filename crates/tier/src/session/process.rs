//! Counters of one process.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Reason, Text};
use crate::mechanism::{OUTCOMES, Outcome, Outcomes};
use crate::tracking::{TRACKINGS, Tracking};

/// What a note is about: a process has one of each, the last one that it said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Note {
    /// Why it cannot be tiered.
    Failure,
    /// What to do about that.
    Hint,
    /// Why its accesses are not tracked better.
    Tracking,
    /// Why pages could not be copied, or frames not be given back.
    Mechanism,
    /// Why pages stay where they are.
    Group,
}

const NOTES: usize = Note::Group as usize + 1;

/// Whether pages of a process move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "command",
    derive(serde::Serialize),
    serde(rename_all = "kebab-case")
)]
#[repr(u64)]
pub enum ProcessState {
    /// Not until the fast tier is full.
    Waits = 0,
    /// They move.
    Tiers = 1,
    /// They cannot.
    Failed = 2,
}

impl ProcessState {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Tiers => "tiers",
            Self::Failed => "failed",
        }
    }
}

/// Counters of one process.
#[derive(Debug)]
#[repr(C)]
pub struct Process {
    /// Its number; 0 where there is none.
    pub pid: AtomicU64,
    /// A [`ProcessState`].
    state: AtomicU64,
    /// 1 more than the index of its tracker in [`TRACKINGS`]; 0 before it has one.
    tracking: AtomicU64,
    /// Values, in the order of [`VALUES`].
    pub values: [AtomicU64; VALUES.len()],
    /// Pages by outcome, in the order of [`OUTCOMES`].
    pub outcomes: [AtomicU64; OUTCOMES.len()],
    notes: [Text<64>; NOTES],
}

/// Names of a process's values.
pub const VALUES: [&str; 16] = [
    "fast_bytes",
    "slow_bytes",
    "managed_bytes",
    "regions",
    "demoted_pages",
    "promoted_pages",
    "ping_pongs",
    "missing_faults",
    "write_protect_faults",
    "layout_changes",
    "hints_armed",
    "hints_touched",
    "scans",
    "tracking_ns",
    "agent_cpu_ns",
    "knee_pages",
];

/// One of [`VALUES`].
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
#[allow(missing_docs, reason = "their names are those of VALUES")]
pub enum Value {
    FastBytes,
    SlowBytes,
    ManagedBytes,
    Regions,
    DemotedPages,
    PromotedPages,
    PingPongs,
    MissingFaults,
    WriteProtectFaults,
    LayoutChanges,
    HintsArmed,
    HintsTouched,
    Scans,
    TrackingNs,
    AgentCpuNs,
    KneePages,
}

impl Process {
    /// A value.
    pub fn get(&self, value: Value) -> u64 {
        self.values[value as usize].load(Ordering::Relaxed)
    }

    /// Sets a value.
    pub fn put(&self, value: Value, to: u64) {
        self.values[value as usize].store(to, Ordering::Relaxed);
    }

    /// Adds to a value.
    pub fn add(&self, value: Value, by: u64) {
        self.values[value as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Counts what became of pages that were to move for a reason.
    pub fn moved(&self, reason: Reason, outcomes: &Outcomes) {
        let value = match reason {
            Reason::Demotion => Value::DemotedPages,
            Reason::NumaMisplaced => Value::PromotedPages,
        };
        self.add(value, outcomes.get(Outcome::Moved));
        for (word, (_, pages)) in self.outcomes.iter().zip(outcomes.iter()) {
            word.fetch_add(pages, Ordering::Relaxed);
        }
    }

    /// What its accesses are tracked with.
    pub fn tracking(&self) -> Option<Tracking> {
        let index = self.tracking.load(Ordering::Relaxed).checked_sub(1)?;
        TRACKINGS.get(index as usize).copied()
    }

    /// Whether its pages move.
    pub fn state(&self) -> ProcessState {
        match self.state.load(Ordering::Relaxed) {
            0 => ProcessState::Waits,
            1 => ProcessState::Tiers,
            _ => ProcessState::Failed,
        }
    }

    /// Says that its pages move from now on.
    pub fn begin_tiering(&self) {
        self.state
            .store(ProcessState::Tiers as u64, Ordering::Relaxed);
    }

    /// Says what its accesses are tracked with from now on.
    pub fn tracks(&self, tracking: Tracking) {
        let index = TRACKINGS.iter().position(|known| *known == tracking);
        let word = index.map_or(0, |index| index as u64 + 1);
        self.tracking.store(word, Ordering::Relaxed);
    }

    /// Says why it cannot be tiered, and what to do about that.
    pub fn fail(&self, text: &str, hint: &str) {
        self.note(Note::Failure, text);
        self.note(Note::Hint, hint);
        self.state
            .store(ProcessState::Failed as u64, Ordering::Release);
    }

    /// Sets the note of this kind, in place of the former one.
    pub fn note(&self, about: Note, text: &str) {
        self.notes[about as usize].put(text);
    }

    /// The last note of this kind; empty if there is none.
    pub fn said(&self, about: Note) -> String {
        self.notes[about as usize].get()
    }

    /// All that it said, but for hints.
    pub fn notes(&self) -> Vec<String> {
        let all = [Note::Failure, Note::Tracking, Note::Mechanism, Note::Group];
        let texts = all.into_iter().map(|about| self.said(about));
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// Adds the counts to those of another process and clears them.
    pub(super) fn fold_into(&self, other: &Process) {
        for (ours, theirs) in self.outcomes.iter().zip(&other.outcomes) {
            theirs.fetch_add(ours.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        for (index, (ours, theirs)) in self.values.iter().zip(&other.values).enumerate() {
            let value = ours.swap(0, Ordering::Relaxed);
            // The state of an ended process is dropped; its counts are kept.
            let counts = index >= Value::DemotedPages as usize && index < Value::KneePages as usize;
            if counts {
                theirs.fetch_add(value, Ordering::Relaxed);
            }
        }
        for (ours, theirs) in self.notes.iter().zip(&other.notes) {
            // Of several that have ended the first is kept, of each kind.
            ours.move_to(theirs);
        }
        self.tracking.store(0, Ordering::Relaxed);
        let state = self
            .state
            .swap(ProcessState::Waits as u64, Ordering::Relaxed);
        if state == ProcessState::Failed as u64 {
            other.state.store(state, Ordering::Relaxed);
        }
    }
}
