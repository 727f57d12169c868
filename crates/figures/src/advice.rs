//! What is advised for one case, and how far the advice follows from parameters that are not known
//! exactly.

use dray_platform::Parameter;

use crate::break_even::{BreakEven, Comparison, Verdict, asleep, on_core, on_device};
use crate::coverage::interval_90;
use crate::sensitivity::{COUNTS, WIDENS, effects, with};
use crate::workload::{What, Workload};
use crate::{FiguresError, Metric, Model};

/// Halvings of the way from a value to the end of its range.
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
    /// What each parameter that matters does within its range, the one that moves the size most
    /// first.
    pub ranges: Vec<RangeEffect>,
    /// The 90 % interval of each size, all parameters anywhere in their ranges.
    pub interval: (BreakEven, BreakEven),
    /// The case at both ends of the range of each parameter that moves it.
    ends: Vec<[Comparison; 2]>,
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

/// What one parameter does to an advice, anywhere in its range.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeEffect {
    /// The parameter, with the value that was used.
    pub parameter: Parameter,
    /// The sizes from which the device wins, at their smallest and their largest.
    pub within: (BreakEven, BreakEven),
    /// Where the parameter turns the verdict.
    pub turns: Option<Turn>,
}

/// A value of a parameter that turns the verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The value nearest to the one that was used.
    pub at: f64,
    /// The end of the range beyond it.
    pub towards: f64,
    /// The comparison there.
    pub end: Comparison,
}

impl Guesses {
    /// Of a workload on a modelled machine.
    ///
    /// # Errors
    /// What the profile or the platform cannot run.
    pub fn of(model: &Model, w: &Workload) -> Result<Guesses, FiguresError> {
        let behind = |w: Workload| -> Result<Vec<Parameter>, FiguresError> {
            moving(model, &w, COUNTS, |p| p.guess)
        };
        Ok(Guesses {
            device: behind(on_device(w))?,
            core: behind(on_core(w))?,
            core_time: behind(asleep(w))?,
        })
    }

    /// Whether what a verdict compares rests on any of them.
    pub fn are_behind(&self, verdict: Verdict) -> bool {
        let throughput = !(self.device.is_empty() && self.core.is_empty());
        throughput || verdict != Verdict::Offload && !self.core_time.is_empty()
    }
}

/// The parameters that move the period of a workload, or the time that its core is busy, and the
/// sizes from which the device wins.
fn moving(
    model: &Model,
    w: &Workload,
    least: f64,
    chosen: impl Fn(&Parameter) -> bool + Sync,
) -> Result<Vec<Parameter>, FiguresError> {
    let list = model.platform.list();
    let counts = |metric: Metric| {
        let named = matches!(metric, Metric::Period | Metric::Latency | Metric::BusyShare);
        named || metric.is_break_even()
    };
    let effects = effects(model, w, least, chosen)?;
    let mut positions: Vec<usize> = effects
        .iter()
        .filter(|effect| counts(effect.metric))
        .map(|effect| effect.parameter)
        .collect();
    positions.sort_unstable();
    positions.dedup();
    Ok(positions.into_iter().map(|i| list[i].clone()).collect())
}

/// The parameters that have a part in an advice, wherever in their ranges they are.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn candidates(model: &Model, w: &Workload) -> Result<Vec<Parameter>, FiguresError> {
    let even = Workload {
        what: What::BreakEven,
        ..*w
    };
    let mut candidates: Vec<Parameter> = Vec::new();
    for probe in [even, on_device(w), on_core(w), asleep(w)] {
        for parameter in moving(model, &probe, WIDENS, |_| true)? {
            if candidates.iter().all(|known| known.name != parameter.name) {
                candidates.push(parameter);
            }
        }
    }
    Ok(candidates)
}

impl Advice {
    /// Runs a case, and runs it again at both ends of the range of each parameter that moves it.
    ///
    /// # Errors
    /// What the profile or the platform cannot run.
    pub fn of(model: &Model, w: &Workload) -> Result<Advice, FiguresError> {
        let compared = Comparison::run(model, w)?;
        let from = BreakEven::of(model, w)?;
        let (mut ranges, mut ends) = (Vec::new(), Vec::new());
        for parameter in candidates(model, w)? {
            let (effect, at) = range_effect(model, w, parameter, from, &compared)?;
            ranges.push(effect);
            ends.push(at);
        }
        let interval = |of: fn(&BreakEven) -> Option<u32>| {
            let within = ranges.iter().map(|effect| {
                let (least, most) = &effect.within;
                [of(least), of(most)]
            });
            size_interval(of(&from), within)
        };
        let (throughput, core_time) = (
            interval(|even| even.throughput),
            interval(|even| even.core_time),
        );
        ranges.sort_by_key(|effect| std::cmp::Reverse(width(effect.within)));
        Ok(Advice {
            compared,
            from,
            guesses: Guesses::of(model, w)?,
            ranges,
            interval: (
                BreakEven {
                    throughput: throughput.0,
                    core_time: core_time.0,
                },
                BreakEven {
                    throughput: throughput.1,
                    core_time: core_time.1,
                },
            ),
            ends,
        })
    }

    /// The 90 % interval of a number of the comparison, all parameters anywhere in their ranges.
    pub fn interval_of(&self, of: impl Fn(&Comparison) -> f64) -> (f64, f64) {
        let ends = self.ends.iter().map(|[low, high]| [of(low), of(high)]);
        interval_90(of(&self.compared), ends)
    }

    /// The parameter whose range moves the size from which the device wins most.
    pub fn dominant(&self) -> Option<&RangeEffect> {
        self.ranges
            .first()
            .filter(|effect| width(effect.within) > 0)
    }
}

fn range_effect(
    model: &Model,
    w: &Workload,
    parameter: Parameter,
    from: BreakEven,
    compared: &Comparison,
) -> Result<(RangeEffect, [Comparison; 2]), FiguresError> {
    let verdict = compared.verdict();
    let (mut within, mut turns) = ((from, from), None);
    let mut ends = [compared.clone(), compared.clone()];
    for (at, end_value) in ends.iter_mut().zip(parameter.range) {
        if end_value == parameter.value {
            continue;
        }
        let there = with(model, &parameter, end_value)?;
        let found = BreakEven::near(&there, w)?;
        within = widened(within, (found, found));
        let end = Comparison::run(&there, w)?;
        at.clone_from(&end);
        if end.verdict() != verdict {
            turns = Some(Turn {
                at: turning(model, w, &parameter, end_value, verdict)?,
                towards: end_value,
                end,
            });
        }
    }
    let effect = RangeEffect {
        parameter,
        within,
        turns,
    };
    Ok((effect, ends))
}

/// A size that there is not is larger than all others.
fn size(bytes: Option<u32>) -> u32 {
    bytes.unwrap_or(u32::MAX)
}

/// The 90 % interval of a size by the least and the most of it within the range of each parameter.
pub(crate) fn size_interval(
    from: Option<u32>,
    within: impl IntoIterator<Item = [Option<u32>; 2]>,
) -> (Option<u32>, Option<u32>) {
    let size = |bytes: Option<u32>| bytes.map_or(f64::INFINITY, f64::from);
    let ends = within.into_iter().map(|ends| ends.map(size));
    let (least, most) = interval_90(size(from), ends);
    let bytes = |size: f64| Some(size.round() as u32).filter(|_| size.is_finite());
    (bytes(least), bytes(most))
}

fn width((least, most): (BreakEven, BreakEven)) -> u32 {
    size(most.throughput) - size(least.throughput)
}

fn widened(
    (least, most): (BreakEven, BreakEven),
    (low, high): (BreakEven, BreakEven),
) -> (BreakEven, BreakEven) {
    (
        least.each(low, |a, b| size(a).min(size(b))),
        most.each(high, |a, b| size(a).max(size(b))),
    )
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

/// The value nearest to the one used from which the verdict is another one.
fn turning(
    model: &Model,
    w: &Workload,
    parameter: &Parameter,
    end: f64,
    verdict: Verdict,
) -> Result<f64, FiguresError> {
    let (mut same, mut other) = (parameter.value, end);
    for _ in 0..HALVINGS {
        let between = (same + other) / 2.0;
        let there = with(model, parameter, between)?;
        match Comparison::run(&there, w)?.verdict() == verdict {
            true => same = between,
            false => other = between,
        }
    }
    Ok(other)
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

    fn named<'a>(advice: &'a Advice, name: &str) -> Option<&'a RangeEffect> {
        advice.ranges.iter().find(|e| e.parameter.name == name)
    }

    #[test]
    fn a_verdict_that_depends_on_a_parameter_names_the_value() {
        let case = Point::default()
            .with("op", "compare")
            .with("placement", "llc")
            .with("depth", 32u64)
            .with("size", 65536u64);
        let advice = advice(case);
        assert_eq!(advice.compared.verdict(), Verdict::SparesTheCore);
        assert_eq!(advice.from.throughput, None);
        assert!(advice.interval.0.throughput.is_some());
        assert_eq!(advice.interval.1.throughput, None);
        let turn = named(&advice, "cpu_scale_llc").unwrap().turns.as_ref();
        let turn = turn.unwrap();
        assert_eq!(turn.end.verdict(), Verdict::Offload);
        assert!(turn.at > 0.4 && turn.at < 0.5, "{}", turn.at);
    }

    /// Each end of the ports' ranges moves it by less than 2 %.
    #[test]
    fn the_ranges_of_the_ports_widen_the_interval_of_what_they_limit() {
        let advice = advice(
            Point::default()
                .with("size", 16384u64)
                .with("depth", 128u64),
        );
        let time = |c: &Comparison| c.device.get(Metric::Period).unwrap();
        let (low, high) = advice.interval_of(time);
        assert!(high / low > 1.01 && high / low < 1.06, "{low} to {high}");
    }

    /// The range of a parameter that has a source counts as that of a guess does.
    #[test]
    fn the_time_of_a_copy_on_the_core_dominates_its_break_even() {
        let advice = advice(Point::default().with("size", 16384u64).with("depth", 1u64));
        let dominant = advice.dominant().unwrap();
        assert_eq!(dominant.parameter.name, "cpu_copy_line");
        assert!(!dominant.parameter.guess);
        let (least, most) = advice.interval;
        let (dominant_least, dominant_most) = dominant.within;
        // Wider than by the one parameter that moves it most, less a tenth of its range.
        let wide = |least: BreakEven, most: BreakEven| {
            f64::from(most.throughput.unwrap()) / f64::from(least.throughput.unwrap())
        };
        assert!(wide(least, most) > wide(dominant_least, dominant_most).powf(0.95));
        let (low, high) = advice.interval_of(|compared| compared.period().0);
        let period = advice.compared.period().0;
        assert!(low < period && period < high);
        assert!(least.throughput.unwrap() < 10_000, "{least:?}");
        assert!(most.throughput.unwrap() > 25_000, "{most:?}");
    }

    #[test]
    fn no_parameter_range_changes_the_verdict_for_a_large_copy() {
        let case = Point::default()
            .with("size", 1u64 << 20)
            .with("depth", 8u64);
        let advice = advice(case);
        assert_eq!(advice.compared.verdict(), Verdict::Offload);
        assert!(advice.ranges.iter().all(|effect| effect.turns.is_none()));
    }
}
