//! How much a result depends on each parameter: it is run again at both ends of the parameter's range.

use std::sync::Arc;

use dray_platform::Parameter;
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

/// The effects, of at least [`COUNTS`], of the parameters that `chosen` picks.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn effects(
    model: &Model,
    w: &Workload,
    chosen: impl Fn(&Parameter) -> bool + Sync,
) -> Result<Vec<Effect>, FiguresError> {
    let list = model.platform.list();
    // A core that does the work itself has parameters of its own, and a device has none of these.
    let software = |p: &Parameter| p.name.starts_with("cpu_");
    let applies = |p: &Parameter| match w.what {
        What::Software => software(p),
        What::BreakEven => true,
        _ => !software(p),
    };
    let positions: Vec<usize> = (0..list.len())
        .filter(|i| applies(&list[*i]) && chosen(&list[*i]))
        .collect();
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
                let change = (other - value).abs() / value.abs().max(f64::MIN_POSITIVE);
                if change < COUNTS {
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

/// The machine with another value for a parameter.
pub(crate) fn with(
    model: &Model,
    parameter: &Parameter,
    value: f64,
) -> Result<Model, FiguresError> {
    Ok(Model {
        platform: Arc::new(model.platform.with(&parameter.name, value)?),
        ..model.clone()
    })
}

/// What is run again and again.
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

    fn names(platform: &str, point: &[(&str, &str)], metric: Metric) -> Vec<String> {
        let model = model(platform);
        let point = point
            .iter()
            .fold(Point::default(), |p, (n, v)| match v.parse::<u64>() {
                Ok(number) => p.with(n, number),
                Err(_) => p.with(n, *v),
            });
        let w = Workload::from_point(&point).unwrap();
        let list = model.platform.list();
        let found = effects(&model, &w, |p| p.guess).unwrap();
        let of = found.iter().filter(|e| e.metric == metric);
        of.map(|e| list[e.parameter].name.clone()).collect()
    }

    #[test]
    fn guesses_are_found_by_the_mechanism_that_they_are_of() {
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
        (
            "cpu_string_start",
            &[("kind", "software"), ("size", "64"), ("core", "kernel")],
        ),
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
    ];

    #[test]
    fn no_guess_of_a_platform_file_is_unnamed() {
        for platform in dray_platform::builtin_names() {
            let file = dray_platform::builtin(platform).unwrap();
            for parameter in file.list().iter().filter(|p| p.guess) {
                let point = EXERCISES.iter().find(|(name, _)| *name == parameter.name);
                let (_, point) = point.unwrap_or_else(|| {
                    panic!("{platform}: no workload exercises {}", parameter.name)
                });
                let named = [Metric::Latency, Metric::Period, Metric::FaultPage]
                    .iter()
                    .any(|metric| names(platform, point, *metric).contains(&parameter.name));
                assert!(named, "{platform}: {} moves nothing", parameter.name);
            }
        }
    }
}
