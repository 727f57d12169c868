//! What a session has done, to be printed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::knobs::KNOBS;
use crate::mechanism::OUTCOMES;
use crate::policy::POLICIES;
use crate::session::{EXECUTORS, Note, PHASES, Process, ProcessState, REASONS, Session, VALUES};
use crate::tracking::Tracking;

/// A session at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Snapshot {
    /// What moves pages: `kernel` or `uffd`.
    pub back_end: &'static str,
    /// Name of the policy.
    pub policy: &'static str,
    /// What becomes of the frames that pages leave.
    pub frames: &'static str,
    /// Bytes of the fast and the slow tier; absent where a node is the limit.
    #[serde(rename = "tier_bytes")]
    pub tiers: [Option<u64>; 2],
    /// Controls by name.
    pub knobs: BTreeMap<&'static str, u64>,
    /// Those that have ended, as one without a number, and those that live.
    pub processes: Vec<ProcessSnapshot>,
    /// Processes that were seen and ended before they were looked at.
    pub missed_processes: u64,
    /// Programs that are not tiered.
    pub untiered: Untiered,
    /// What the timer has recorded.
    pub timer: Vec<TimerSnapshot>,
}

/// Programs that descend from the first one and do not load the preload library.
#[derive(Debug, Clone, Serialize)]
pub struct Untiered {
    /// How many.
    pub count: u64,
    /// Of the first ones: which, and why.
    pub named: Vec<String>,
}

/// One process.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessSnapshot {
    /// Its number; 0 is all that have ended.
    pub pid: u64,
    /// Whether its pages move.
    pub state: ProcessState,
    /// What its accesses are tracked with; absent before it is tiered.
    pub tracking: Option<&'static str>,
    /// Why it failed, what failed in it, why accesses are not tracked better.
    pub notes: Vec<String>,
    /// What to do about a failure; empty if there is none, or nothing to be done.
    pub hint: String,
    /// Values by name.
    pub values: BTreeMap<&'static str, u64>,
    /// Pages that were to move, by what became of them.
    pub outcomes: BTreeMap<&'static str, u64>,
}

/// The calls of one reason and mode.
#[derive(Debug, Clone, Serialize)]
pub struct TimerSnapshot {
    /// As the kernel names it.
    pub reason: &'static str,
    /// As the kernel names it.
    pub mode: &'static str,
    /// Calls.
    pub calls: u64,
    /// Pages in them.
    pub pages: u64,
    /// Calls by pages: from 2^n on, below 2^(n+1).
    pub pages_per_call: Vec<u64>,
    /// Nanoseconds by phase.
    pub phase_ns: BTreeMap<&'static str, u64>,
    /// Bytes by who copied them.
    pub bytes: BTreeMap<&'static str, u64>,
}

fn read(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

fn named(
    names: impl IntoIterator<Item = &'static str>,
    words: &[AtomicU64],
) -> BTreeMap<&'static str, u64> {
    names.into_iter().zip(words.iter().map(read)).collect()
}

/// Reads a session.
pub fn snapshot(session: &Session) -> Snapshot {
    let setup = session.setup();
    let shared = session.shared();
    let timer = REASONS
        .iter()
        .zip(&shared.histograms)
        .map(|(reason, histogram)| TimerSnapshot {
            reason: reason.name(),
            mode: "MIGRATE_ASYNC",
            calls: read(&histogram.calls),
            pages: read(&histogram.pages),
            pages_per_call: histogram.bins.iter().map(read).collect(),
            phase_ns: named(PHASES, &histogram.phases),
            bytes: named(EXECUTORS, &histogram.bytes),
        });
    let (count, named) = session.untiered();
    let (back_end, missed_processes) = session.back_end();
    Snapshot {
        back_end,
        policy: POLICIES.get(setup.policy).copied().unwrap_or("none"),
        frames: setup.release.name(),
        tiers: setup
            .bytes
            .map(|bytes| (bytes != u64::MAX).then_some(bytes)),
        knobs: KNOBS
            .iter()
            .map(|knob| (knob.name, session.knob(knob.knob)))
            .collect(),
        processes: session.processes().map(process).collect(),
        missed_processes,
        untiered: Untiered { count, named },
        timer: timer.collect(),
    }
}

fn process(process: &'static Process) -> ProcessSnapshot {
    ProcessSnapshot {
        pid: read(&process.pid),
        state: process.state(),
        tracking: process.tracking().map(Tracking::name),
        notes: process.notes(),
        hint: process.said(Note::Hint),
        values: named(VALUES, &process.values),
        outcomes: named(OUTCOMES.map(crate::Outcome::name), &process.outcomes),
    }
}

impl Snapshot {
    /// Pages with an outcome, over all processes.
    pub fn outcome(&self, name: &str) -> u64 {
        let all = self.processes.iter();
        all.filter_map(|process| process.outcomes.get(name)).sum()
    }

    /// A value, summed over all processes.
    pub fn value(&self, name: &str) -> u64 {
        let all = self.processes.iter();
        all.filter_map(|process| process.values.get(name)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Setup, Value};
    use crate::tracking::Choice;

    #[test]
    fn a_session_is_printed_as_json() {
        let session = Session::private(&Setup {
            bytes: [1 << 20, u64::MAX],
            nodes: [None; 2],
            policy: 1,
            shared_read: false,
            release: crate::Release::Kernel,
            device: 1,
            tracking: Choice::Best,
            filters: 0,
        })
        .expect("memory");
        let process = session.claim(4).expect("room");
        process.add(Value::DemotedPages, 9);
        process.tracks(Tracking::Damon);
        process.note(Note::Tracking, "why not");
        process.fail("why", "");
        let snapshot = snapshot(&session);
        assert_eq!(snapshot.value("demoted_pages"), 9);
        let json = serde_json::to_value(&snapshot).expect("plain data");
        assert_eq!(json["policy"], "memtis");
        assert_eq!(json["frames"], "new frames");
        assert_eq!(json["tier_bytes"], serde_json::json!([1 << 20, null]));
        assert_eq!(json["processes"][0]["state"], "failed");
        assert_eq!(
            json["processes"][0]["notes"],
            serde_json::json!(["why", "why not"])
        );
        assert_eq!(
            json["processes"][0]["tracking"],
            "reads and writes by DAMON (fvaddr)"
        );
        assert_eq!(json["knobs"]["limit_chans"], 8);
    }
}
