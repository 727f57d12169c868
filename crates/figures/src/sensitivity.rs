//! How much a result depends on each parameter: it is run again at both ends of the parameter's range.

use std::sync::Arc;

use dray_platform::{Parameter, Unit};
use rayon::prelude::*;

use crate::break_even::{self, BreakEven};
use crate::model::{Model, Window};
use crate::workload::{What, Workload};
use crate::{FiguresError, Metric, Metrics};

/// A change of a metric that counts, relative to its value: about the median error of the model
/// beside the published tables.
pub(crate) const COUNTS: f64 = 0.02;

/// How far a metric moves when one parameter takes the values of its range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effect {
    /// Position of the parameter in the platform's list.
    pub(crate) parameter: usize,
    /// Metric.
    pub(crate) metric: Metric,
    /// Largest change in either direction, relative to the value.
    pub(crate) change: f64,
}

/// Positions of the parameters that `chosen` picks. What a workload does not depend on costs no run:
/// its runs are known.
fn positions(model: &Model, chosen: impl Fn(&Parameter) -> bool) -> Vec<usize> {
    let list = model.platform.list();
    (0..list.len()).filter(|i| chosen(&list[*i])).collect()
}

/// The effects, of at least `least` of a metric's value, of the parameters that `chosen` picks.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn effects(
    least: f64,
    model: &Model,
    w: &Workload,
    chosen: impl Fn(&Parameter) -> bool + Sync,
) -> Result<Vec<Effect>, FiguresError> {
    let list = model.platform.list();
    let positions = positions(model, chosen);
    let probe = Probe::new(model, w)?;
    let base = probe.run(model)?;
    let of = |position: &usize| -> Result<Vec<Effect>, FiguresError> {
        let parameter = &list[*position];
        let mut found: Vec<Effect> = Vec::new();
        for end in parameter.range {
            if end == parameter.value {
                continue;
            }
            let there = probe.run(&with(model, parameter, end)?)?;
            for (metric, value) in base.iter() {
                let Some(other) = there.get(metric) else {
                    continue;
                };
                let change = relative(value, other);
                if change < least {
                    continue;
                }
                match found.iter_mut().find(|e| e.metric == metric) {
                    Some(effect) => effect.change = effect.change.max(change),
                    None => found.push(Effect {
                        parameter: *position,
                        metric,
                        change,
                    }),
                }
            }
        }
        Ok(found)
    };
    let each: Vec<Vec<Effect>> = positions
        .par_iter()
        .map(of)
        .collect::<Result<_, FiguresError>>()?;
    Ok(each.into_iter().flatten().collect())
}

/// The guesses that move one of `metrics` by at least [`COUNTS`], each with its metric: what
/// [`effects`] finds of them, without how much, and without those that are `known` already.
///
/// A guess is tried at the worse end of its range first: the longest time, the lowest bandwidth. One
/// that leaves the result the same there, to the last bit, has no part in it or does not limit it,
/// and limits it even less at the other end. A count is tried at both ends: it may be a size from
/// which another way is taken.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn guesses_behind(
    model: &Model,
    w: &Workload,
    metrics: &[Metric],
    known: &[(Metric, usize)],
) -> Result<Vec<(Metric, usize)>, FiguresError> {
    let list = model.platform.list();
    let probe = Probe::new(model, w)?;
    let base = probe.run(model)?;
    let drawn: Vec<(Metric, f64)> = base.iter().filter(|(m, _)| metrics.contains(m)).collect();
    let of = |position: &usize| -> Result<Vec<(Metric, usize)>, FiguresError> {
        let parameter = &list[*position];
        let wanted = |metric: Metric| !known.contains(&(metric, *position));
        let mut left: Vec<(Metric, f64)> =
            drawn.iter().copied().filter(|(m, _)| wanted(*m)).collect();
        let mut found = Vec::new();
        for end in worse_first(parameter) {
            if left.is_empty() {
                break;
            }
            if end == parameter.value {
                continue;
            }
            let there = probe.run(&with(model, parameter, end)?)?;
            if there == base && parameter.unit != Unit::Count {
                break;
            }
            left.retain(|(metric, value)| {
                let other = there.get(*metric);
                let moved = other.is_some_and(|other| relative(*value, other) >= COUNTS);
                if moved {
                    found.push((*metric, *position));
                }
                !moved
            });
        }
        Ok(found)
    };
    let each: Vec<Vec<(Metric, usize)>> = positions(model, |p| p.guess)
        .par_iter()
        .map(of)
        .collect::<Result<_, FiguresError>>()?;
    Ok(each.into_iter().flatten().collect())
}

/// Both ends of a parameter's range, the one that slows the machine down first.
fn worse_first(parameter: &Parameter) -> [f64; 2] {
    let [low, high] = parameter.range;
    match parameter.unit {
        Unit::Ns | Unit::Ratio => [high, low],
        Unit::GigabytesPerSecond | Unit::Count => [low, high],
    }
}

fn relative(value: f64, other: f64) -> f64 {
    (other - value).abs() / value.abs().max(f64::MIN_POSITIVE)
}

/// The machine with another value for a parameter.
pub(crate) fn with(
    model: &Model,
    parameter: &Parameter,
    value: f64,
) -> Result<Model, FiguresError> {
    Ok(Model {
        platform: Arc::new(model.platform.with(parameter.name, value)?),
        ..model.clone()
    })
}

/// What is run with each varied parameter.
enum Probe {
    /// The workload itself.
    Workload(Box<Workload>),
    /// Device and core at the size where they are even: when one of them changes, that size does.
    Even(Box<[Option<Workload>; 2]>),
}

impl Probe {
    fn new(model: &Model, w: &Workload) -> Result<Probe, FiguresError> {
        if w.what != What::BreakEven {
            return Ok(Probe::Workload(Box::new(*w)));
        }
        let found = BreakEven::find(model, w)?;
        let at = |size: Option<u32>| size.map(|size| Workload { size, ..*w });
        let both = [at(found.throughput), at(found.core_time)];
        Ok(Probe::Even(Box::new(both)))
    }

    fn run(&self, model: &Model) -> Result<Metrics, FiguresError> {
        match self {
            Probe::Workload(w) => model.run_for(w, Window::Probe),
            Probe::Even(both) => {
                let [throughput, core_time] = **both;
                let mut metrics = Metrics::default();
                if let Some(w) = throughput {
                    metrics = metrics.with(Metric::BreakEven, break_even::gain(model, &w)?);
                }
                if let Some(w) = core_time {
                    let gain = break_even::core_gain(model, &w)?;
                    metrics = metrics.with(Metric::CoreBreakEven, gain);
                }
                Ok(metrics)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_idxd::Profile;

    use super::*;

    fn model(platform: &str) -> Model {
        let platform = dray_platform::builtin(platform).unwrap();
        Model::new(platform, Profile::named("1e1w-d").unwrap())
    }

    fn pointed(values: &[(&str, &str)]) -> Point {
        let values = values.iter();
        values.fold(Point::default(), |p, (n, v)| match v.parse::<u64>() {
            Ok(number) => p.with(n, number),
            Err(_) => p.with(n, *v),
        })
    }

    fn names(platform: &str, point: &[(&str, &str)], metric: Metric) -> Vec<String> {
        let model = model(platform);
        let w = Workload::from_point(&pointed(point)).unwrap();
        let list = model.platform.list();
        let found = effects(COUNTS, &model, &w, |p| p.guess).unwrap();
        let of = found.iter().filter(|e| e.metric == metric);
        of.map(|e| list[e.parameter].name.to_owned()).collect()
    }

    #[test]
    fn guesses_are_found_where_their_mechanism_is_used() {
        let of = |point| names("spr-2s", point, Metric::Latency);
        let has = |found: Vec<String>, name: &str| found.iter().any(|n| n == name);
        assert!(has(of(&[("wait", "umwait")]), "umwait_wake"));
        assert!(!has(of(&[]), "umwait_wake"));
        assert!(has(of(&[("dst_node", "cxl")]), "cxl_extra"));
        assert!(has(of(&[("batch", "4"), ("size", "64")]), "batch_dispatch"));
        let software = of(&[("kind", "software"), ("op", "crc")]);
        assert_eq!(software, ["cpu_crc_line"]);
        let even = [("kind", "break-even"), ("op", "crc")];
        let found = names("spr-2s", &even, Metric::BreakEven);
        assert!(has(found, "cpu_crc_line"));
    }

    /// The read buffers of the second generation are a guess that decides what one device reads.
    #[test]
    fn a_guess_of_another_platform_is_found() {
        let point = [("size", "65536"), ("mode", "async")];
        let found = names("dsa2-2s", &point, Metric::Throughput);
        assert!(found.iter().any(|name| name == "read_buffers"), "{found:?}");
    }

    /// A workload for each guess that a built-in platform has.
    const EXERCISES: &[(&str, &[(&str, &str)])] = &[
        ("prepare", &[("size", "64")]),
        (
            "portal_lines_in_flight",
            &[("mode", "async"), ("portal", "rotating"), ("size", "64")],
        ),
        (
            "enqcmd_accept",
            &[
                ("submit", "enqcmd"),
                ("mode", "async"),
                ("cores", "32"),
                ("op", "noop"),
                ("engines", "4"),
            ],
        ),
        (
            "enqcmd_contention",
            &[
                ("submit", "enqcmd"),
                ("mode", "async"),
                ("cores", "32"),
                ("op", "noop"),
                ("engines", "4"),
            ],
        ),
        (
            "enqcmd_accept_remote",
            &[
                ("submit", "enqcmd"),
                ("mode", "async"),
                ("cores", "32"),
                ("op", "noop"),
                ("engines", "4"),
                ("core_node", "remote"),
            ],
        ),
        (
            "enqcmd_remote",
            &[
                ("submit", "enqcmd"),
                ("core_node", "remote"),
                ("size", "64"),
            ],
        ),
        ("submit_remote", &[("core_node", "remote"), ("size", "64")]),
        ("pause", &[("wait", "pause"), ("size", "64")]),
        ("umwait_wake", &[("wait", "umwait"), ("size", "64")]),
        (
            "read_buffer_bytes",
            &[("read_buffers", "16"), ("mode", "async"), ("size", "65536")],
        ),
        ("remote_extra", &[("src_node", "remote"), ("size", "64")]),
        ("cxl_extra", &[("src_node", "cxl"), ("size", "64")]),
        ("read_spread_llc", &[("placement", "llc"), ("size", "4096")]),
        ("batch_dispatch", &[("batch", "4"), ("size", "64")]),
        (
            "batch_shared",
            &[("batch", "4"), ("size", "64"), ("submit", "enqcmd")],
        ),
        (
            "fault_detect",
            &[
                ("kind", "fault"),
                ("fault", "touch-read"),
                ("op", "compval"),
                ("size", "4096"),
            ],
        ),
        (
            "node_read",
            &[("devices", "4"), ("mode", "async"), ("size", "65536")],
        ),
        (
            "node_write",
            &[
                ("devices", "4"),
                ("mode", "async"),
                ("size", "65536"),
                ("op", "fill"),
            ],
        ),
        (
            "socket_link",
            &[
                ("devices", "4"),
                ("mode", "async"),
                ("size", "65536"),
                ("src_node", "remote"),
            ],
        ),
        (
            "cxl_read",
            &[("src_node", "cxl"), ("mode", "async"), ("size", "65536")],
        ),
        (
            "cxl_write",
            &[("dst_node", "cxl"), ("mode", "async"), ("size", "65536")],
        ),
        ("cpu_string_from", &[("kind", "software"), ("size", "3072")]),
        ("cpu_copy_start", &[("kind", "software"), ("size", "1024")]),
        (
            "cpu_line_latency",
            &[("kind", "software"), ("size", "1024"), ("access", "random")],
        ),
        (
            "cpu_nt_fill_line",
            &[("kind", "software"), ("op", "nt_fill")],
        ),
        ("cpu_crc_line", &[("kind", "software"), ("op", "crc")]),
        (
            "cpu_dualcast_line",
            &[("kind", "software"), ("op", "dualcast")],
        ),
        (
            "cpu_scale_llc",
            &[("kind", "software"), ("placement", "llc")],
        ),
        (
            "cpu_scale_remote",
            &[("kind", "software"), ("src_node", "remote")],
        ),
        (
            "cpu_scale_cxl",
            &[("kind", "software"), ("src_node", "cxl")],
        ),
        ("cpu_copy_line", &[("kind", "software")]),
        ("vhost_ring", &[("kind", "vhost"), ("size", "64")]),
        ("vhost_forward", &[("kind", "vhost"), ("size", "64")]),
        ("vhost_async", &[("kind", "vhost"), ("size", "64")]),
        (
            "vhost_lock",
            &[
                ("kind", "vhost"),
                ("queues", "locked"),
                ("cores", "4"),
                ("batch", "8"),
                ("size", "64"),
            ],
        ),
        (
            "vhost_copy_line",
            &[("kind", "vhost"), ("copier", "core"), ("size", "1518")],
        ),
        (
            "vhost_refetch",
            &[
                ("kind", "vhost"),
                ("copier", "core"),
                ("batch", "32"),
                ("size", "1518"),
            ],
        ),
        (
            "port_read",
            &[("mode", "async"), ("size", "65536"), ("op", "compval")],
        ),
        (
            "port_write",
            &[("mode", "async"), ("size", "65536"), ("op", "fill")],
        ),
        (
            "engine_issue",
            &[
                ("batch", "32"),
                ("size", "64"),
                ("mode", "async"),
                ("depth", "4"),
            ],
        ),
        ("read_buffers", &[("mode", "async"), ("size", "65536")]),
        ("engine_transform", &[("op", "crc"), ("size", "64")]),
    ];

    #[test]
    fn every_guess_of_a_platform_file_is_found() {
        for platform in dray_platform::builtin_names() {
            let file = dray_platform::builtin(platform).unwrap();
            for parameter in file.list().iter().filter(|p| p.guess) {
                let point = EXERCISES.iter().find(|(name, _)| *name == parameter.name);
                let (_, point) = point.unwrap_or_else(|| {
                    panic!("{platform}: no workload exercises {}", parameter.name)
                });
                let named = [Metric::Latency, Metric::Period, Metric::FaultPage]
                    .iter()
                    .any(|metric| {
                        names(platform, point, *metric)
                            .iter()
                            .any(|name| name == parameter.name)
                    });
                assert!(named, "{platform}: {} moves nothing", parameter.name);
            }
        }
    }

    /// The shorter search finds what varying every guess to both ends finds.
    #[test]
    fn guesses_are_the_same_by_both_searches() {
        for platform in ["spr-2s", "dsa2-2s"] {
            let model = model(platform);
            for (name, point) in EXERCISES {
                let w = Workload::from_point(&pointed(point)).unwrap();
                let metrics = [Metric::Throughput, Metric::Latency, Metric::FaultPage];
                let all = effects(COUNTS, &model, &w, |p| p.guess).unwrap();
                let mut all: Vec<_> = all.iter().map(|e| (e.metric, e.parameter)).collect();
                all.retain(|(metric, _)| metrics.contains(metric));
                let mut found = guesses_behind(&model, &w, &metrics, &[]).unwrap();
                all.sort_by_key(|(metric, position)| (metric.name(), *position));
                found.sort_by_key(|(metric, position)| (metric.name(), *position));
                assert_eq!(found, all, "{platform}, {name}");
                assert_eq!(guesses_behind(&model, &w, &metrics, &all).unwrap(), []);
            }
        }
    }
}
