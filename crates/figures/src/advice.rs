//! What is advised for one case, and how far the advice rests on guesses.

use std::sync::Arc;

use dray_platform::Parameter;

use crate::break_even::{BreakEven, Comparison, Verdict};
use crate::guess::{self, CORE_TIME};
use crate::workload::{What, Workload};
use crate::{FiguresError, Metric, Model};

/// Halvings of the way from a guess to the end of its range.
const HALVINGS: u32 = 12;

/// Device against core for one case.
#[derive(Debug, Clone)]
pub struct Advice {
    /// Both, side by side.
    pub compared: Comparison,
    /// The sizes from which the device wins.
    pub from: BreakEven,
    /// What of it is guessed.
    pub guesses: Guesses,
    /// Guesses which turn the verdict within their range.
    pub doubts: Vec<Doubt>,
    /// Each size at its smallest and its largest, one guess at a time anywhere in its range.
    pub within: (BreakEven, BreakEven),
}

/// The guessed parameters that a comparison rests on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guesses {
    /// Behind the device's numbers.
    pub device: Vec<Parameter>,
    /// Behind the core's own numbers.
    pub core: Vec<Parameter>,
    /// Behind the core time of an offloaded operation.
    pub core_time: Vec<Parameter>,
}

/// A guess that turns the verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// The parameter, with the value that was used.
    pub parameter: Parameter,
    /// The value nearest to it that turns the verdict.
    pub at: f64,
    /// The comparison with the value at the end of the range.
    pub end: Comparison,
    /// That end.
    pub end_value: f64,
}

impl Guesses {
    /// Of a workload on a modelled machine.
    pub fn of(model: &Model, w: &Workload) -> Guesses {
        let shared = guess::is_shared(&model.profile);
        let behind = |what, metric| {
            let found = guess::behind(&Workload { what, ..*w }, &model.platform, shared, metric);
            found.into_iter().cloned().collect()
        };
        Guesses {
            device: behind(What::Offload, Metric::Period.name()),
            core: behind(What::Software, Metric::Period.name()),
            core_time: behind(What::Offload, CORE_TIME),
        }
    }

    /// Whether what a verdict compares rests on any of them.
    pub fn are_behind(&self, verdict: Verdict) -> bool {
        let throughput = !(self.device.is_empty() && self.core.is_empty());
        throughput || verdict != Verdict::Offload && !self.core_time.is_empty()
    }

    /// Each once.
    pub fn all(&self) -> Vec<&Parameter> {
        let mut all: Vec<&Parameter> = Vec::new();
        for p in self.device.iter().chain(&self.core).chain(&self.core_time) {
            if all.iter().all(|known| known.name != p.name) {
                all.push(p);
            }
        }
        all
    }
}

impl Advice {
    /// Runs a case, and runs it again at both ends of the range of each guess behind it.
    ///
    /// # Errors
    /// What the profile or the platform cannot run.
    pub fn of(model: &Model, w: &Workload) -> Result<Advice, FiguresError> {
        let compared = Comparison::run(model, w)?;
        let from = BreakEven::of(model, w)?;
        let guesses = Guesses::of(model, w);
        let mut doubts = Vec::new();
        let mut within = (from, from);
        for parameter in guesses.all() {
            for end_value in parameter.range {
                if end_value == parameter.value {
                    continue;
                }
                let there = changed(model, &parameter.name, end_value)?;
                let found = BreakEven::of(&there, w)?;
                within.0 = within.0.each(found, |a, b| size(a).min(size(b)));
                within.1 = within.1.each(found, |a, b| size(a).max(size(b)));
                let end = Comparison::run(&there, w)?;
                if end.verdict() != compared.verdict() {
                    doubts.push(Doubt {
                        at: turns(model, w, parameter, end_value, compared.verdict())?,
                        parameter: parameter.clone(),
                        end,
                        end_value,
                    });
                }
            }
        }
        Ok(Advice {
            compared,
            from,
            guesses,
            doubts,
            within,
        })
    }
}

/// A size that there is not is larger than all others.
fn size(bytes: Option<u32>) -> u32 {
    bytes.unwrap_or(u32::MAX)
}

impl BreakEven {
    fn each(self, other: BreakEven, choose: fn(Option<u32>, Option<u32>) -> u32) -> BreakEven {
        let chosen = |a, b| Some(choose(a, b)).filter(|size| *size < u32::MAX);
        BreakEven {
            throughput: chosen(self.throughput, other.throughput),
            core_time: chosen(self.core_time, other.core_time),
        }
    }
}

/// The value nearest to the guess from which the verdict is another one.
fn turns(
    model: &Model,
    w: &Workload,
    parameter: &Parameter,
    end: f64,
    verdict: Verdict,
) -> Result<f64, FiguresError> {
    let (mut same, mut other) = (parameter.value, end);
    for _ in 0..HALVINGS {
        let between = (same + other) / 2.0;
        let there = changed(model, &parameter.name, between)?;
        match Comparison::run(&there, w)?.verdict() == verdict {
            true => same = between,
            false => other = between,
        }
    }
    Ok(other)
}

/// The machine with another value for a parameter.
fn changed(model: &Model, parameter: &str, value: f64) -> Result<Model, FiguresError> {
    Ok(Model {
        platform: Arc::new(model.platform.with(parameter, value)?),
        ..model.clone()
    })
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_idxd::Profile;

    use super::*;

    fn advice(point: Point) -> Advice {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("1e1w-d").unwrap());
        Advice::of(&model, &Workload::from_point(&point).unwrap()).unwrap()
    }

    fn names(of: &[Parameter]) -> Vec<&str> {
        of.iter().map(|p| p.name.as_str()).collect()
    }

    #[test]
    fn a_verdict_that_a_guess_turns_says_where() {
        let case = Point::default()
            .with("op", "compare")
            .with("placement", "llc")
            .with("depth", 32u64)
            .with("size", 65536u64);
        let advice = advice(case);
        assert_eq!(advice.compared.verdict(), Verdict::SparesTheCore);
        assert_eq!(names(&advice.guesses.core), ["cpu_scale_llc"]);
        assert_eq!(advice.from.throughput, None);
        assert!(advice.within.0.throughput.is_some());
        assert_eq!(advice.within.1.throughput, None);
        let doubt = &advice.doubts[0];
        assert_eq!(doubt.parameter.name, "cpu_scale_llc");
        assert_eq!(doubt.end.verdict(), Verdict::Offload);
        assert!(doubt.at > 0.4 && doubt.at < 0.5, "{}", doubt.at);
    }

    #[test]
    fn a_verdict_that_no_guess_turns_stands() {
        let case = Point::default().with("size", 65536u64).with("depth", 8u64);
        let advice = advice(case);
        assert_eq!(advice.compared.verdict(), Verdict::Offload);
        assert!(advice.doubts.is_empty(), "{:?}", advice.doubts);
        assert!(advice.guesses.device.is_empty() && advice.guesses.core.is_empty());
        assert_eq!(names(&advice.guesses.core_time), ["prepare", "umwait_wake"]);
    }
}
