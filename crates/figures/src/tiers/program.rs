//! A program on two tiers.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dray_tier::modelled::{
    Accesses, CopyTimes, MigrationParameters, Pages, Pattern, Sample, TieredProgram,
};
use dray_tier::policy;

use super::{HUGE, Slow, Tiers, WorkingSet, built_in, copies};
use crate::model::{Model, Window};
use crate::workload::Workload;
use crate::{FiguresError, Metric, Metrics};

/// Seconds of the first and of the last phase.
const PHASE_S: usize = 10;

/// Latency of a line of the fast and of the slow tier, in ns.
pub(super) fn lines(model: &Model, slow: Option<Slow>, p: &MigrationParameters) -> [f64; 2] {
    let near = model.platform.parameters().cpu_line_latency.as_ns();
    let far = match slow {
        None | Some(Slow::Dram) => p.line_dram,
        Some(Slow::Cxl) => p.line_cxl,
        Some(Slow::Pm | Slow::PmAsCxl) => p.line_pm,
    };
    [near, far]
}

/// Programs that have run, and what they access. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownPrograms {
    /// By what they depend on, so that the seconds of one run are not many runs.
    runs: Shared<String, OnceLock<Vec<Sample>>>,
    /// By bytes that are allocated and accessed: all runs of a working set have the same ones.
    accesses: Shared<(u64, u64), OnceLock<Arc<Accesses>>>,
}

type Shared<K, V> = Arc<Mutex<HashMap<K, Arc<V>>>>;

/// What is kept by a key.
fn kept<K: Eq + Hash, V: Default>(of: &Shared<K, V>, key: K) -> Arc<V> {
    let mut all = of.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry(key).or_default().clone()
}

impl KnownPrograms {
    fn run(&self, key: String) -> Arc<OnceLock<Vec<Sample>>> {
        kept(&self.runs, key)
    }

    fn accesses(&self, pattern: &Pattern) -> Arc<Accesses> {
        let of = kept(&self.accesses, (pattern.bytes, pattern.accessed_bytes));
        of.get_or_init(|| Arc::new(Accesses::of(pattern))).clone()
    }
}

/// A program on two tiers.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn tiering(
    model: &Model,
    w: &Workload,
    window: Window,
) -> Result<Metrics, FiguresError> {
    let p = built_in();
    let m = w.tiers;
    let down = copies(model, w, false, window)?;
    let up = copies(model, w, true, window)?;
    if matches!(window, Window::Probe) {
        return Ok(cost_of_a_unit(w, [&down, &up], p));
    }
    let lines = lines(model, m.slow, p);
    let pattern = m.working_set.pattern();
    let seconds = m.seconds();
    let key = format!(
        "{pattern:?} {:?} {} {down:?} {up:?} {lines:?} {seconds}",
        m.system, m.policy
    );
    let known = &model.known.programs;
    let run = known.run(key);
    let samples = run.get_or_init(|| {
        let policy = policy::by_index(m.policy);
        let accesses = known.accesses(&pattern);
        TieredProgram::new(pattern, accesses, m.system, policy, p, [&down, &up], lines).run(seconds)
    });
    Ok(metrics(samples, &m))
}

/// The metrics of one second of a run, or of a phase.
fn metrics(samples: &[Sample], m: &Tiers) -> Metrics {
    let a_second = |second: u64| (second as usize * samples_per_second(samples.len(), m)).max(1);
    let part = match m.second {
        Some(second) => {
            let end = a_second(second).min(samples.len());
            &samples[end.saturating_sub(a_second(1))..end]
        }
        None => {
            let len = (PHASE_S * samples_per_second(samples.len(), m)).min(samples.len());
            match m.stable {
                true => &samples[samples.len() - len..],
                false => &samples[..len],
            }
        }
    };
    let count = part.len().max(1) as f64;
    let mean = |of: fn(&Sample) -> f64| part.iter().map(of).sum::<f64>() / count;
    let moved = part.last().map_or(0, |last| last.demoted + last.promoted);
    Metrics::single(Metric::Migrated, moved as f64 / 1e9)
        .with(Metric::Accesses, mean(|s| s.mega_accesses))
        .with(Metric::FastShare, mean(|s| s.fast_share))
}

fn samples_per_second(samples: usize, m: &Tiers) -> usize {
    samples / m.seconds() as usize
}

/// Replaces a run in the search for the parameters that a run depends on: the time to move 2 MiB down and up,
/// as a huge page and as base pages.
pub(super) fn cost_of_a_unit(
    w: &Workload,
    copies: [&CopyTimes; 2],
    p: &MigrationParameters,
) -> Metrics {
    let of = |pages: Pages, copies: &CopyTimes| w.tiers.system.call(pages, p, copies).total();
    let huge = Pages { huge: 1, base: 0 };
    let base = Pages {
        huge: 0,
        base: u64::from(HUGE),
    };
    let all = match w.tiers.working_set {
        WorkingSet::Graph500 => copies.iter().map(|c| of(huge, c)).sum::<f64>(),
        _ => copies.iter().map(|c| of(huge, c) + of(base, c)).sum(),
    };
    Metrics::single(Metric::Migrated, all)
        .with(Metric::Accesses, all)
        .with(Metric::FastShare, all)
}
