//! How far a comparison of two replays can be off within the ranges of the platform's parameters.

use dray_figures::{FiguresError, Model, interval_90};
use rayon::prelude::*;

use crate::ReplayError;
use crate::program::Program;
use crate::replay::{Replayed, replay};
use crate::way::{Placement, Think, Way};

/// One way beside another, as ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// Core time by the other's.
    pub core: f64,
    /// Its 90 % interval.
    pub core_90: (f64, f64),
    /// Run time by the other's.
    pub run: f64,
    /// Its 90 % interval.
    pub run_90: (f64, f64),
    /// Core time of the other, ns.
    pub by_core_ns: f64,
    /// Run time of the other, ns.
    pub by_run_ns: f64,
}

fn ratios(of: &Replayed, by: &Replayed) -> [f64; 2] {
    let ratio = |a: f64, b: f64| a.max(f64::MIN_POSITIVE) / b.max(f64::MIN_POSITIVE);
    [ratio(of.core_ns, by.core_ns), ratio(of.run_ns, by.run_ns)]
}

/// Compares a way with another, both on the same machine, with the 90 % intervals of `dray figures`: each parameter that the
/// replays depend on at both ends of its range.
///
/// # Errors
/// What the platform or the configuration cannot run.
pub fn compare(
    program: &Program,
    (model, way): (&Model, Way),
    (other_model, other): (&Model, Way),
    placement: Placement,
    think: Think,
) -> Result<Compared, ReplayError> {
    let run = |model: &Model, way| replay(model, program, way, placement, think);
    let base = run(model, way)?;
    let base_other = run(other_model, other)?;
    let [core, run_time] = ratios(&base, &base_other);
    let list = model.platform.list();
    let ends: Vec<[[f64; 2]; 2]> = list
        .par_iter()
        .filter(|parameter| parameter.range[0] < parameter.range[1])
        .map(|parameter| -> Result<[[f64; 2]; 2], ReplayError> {
            let mut found = [[core, run_time]; 2];
            for (place, end) in found.iter_mut().zip(parameter.range) {
                let platform = model.platform.with(parameter.name, end);
                let platform = platform.map_err(FiguresError::from)?;
                let same = base.reads.same_in(&platform) && base_other.reads.same_in(&platform);
                if end == parameter.value || same {
                    continue;
                }
                let [of, by] = [(model, way), (other_model, other)].map(|(model, way)| {
                    let there = Model {
                        platform: platform.clone().into(),
                        ..model.clone()
                    };
                    run(&there, way)
                });
                *place = ratios(&of?, &by?);
            }
            Ok(found)
        })
        .collect::<Result<_, _>>()?;
    let of = |metric: usize, value: f64| {
        interval_90(
            value,
            ends.iter().map(|[low, high]| [low[metric], high[metric]]),
        )
    };
    Ok(Compared {
        core,
        core_90: of(0, core),
        run: run_time,
        run_90: of(1, run_time),
        by_core_ns: base_other.core_ns,
        by_run_ns: base_other.run_ns,
    })
}
