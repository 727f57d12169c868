//! One point of an experiment on one backend, and whether the profile can run it.

use dray_experiment::{BACKEND, Experiment, Point, Provenance, Task, Value};
use dray_idxd::Profile;
use dray_platform::PlatformFile;
use dray_workload::Op;

use crate::FiguresError;
use crate::device::{self, DeviceRequest};
use crate::measured;
use crate::refused::RefusedPoints;
use crate::setup;
use crate::workload::Workload;

/// Who executes a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The modelled device.
    Model,
    /// A DSA of this machine.
    Device,
    /// The modelled core.
    Cpu,
    /// A core of this machine.
    Measured,
}

impl Backend {
    /// All of them, in the order in which they are drawn.
    pub const ALL: [Backend; 4] = [
        Backend::Model,
        Backend::Device,
        Backend::Cpu,
        Backend::Measured,
    ];

    /// Name in the results.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Model => "model",
            Backend::Device => "device",
            Backend::Cpu => "cpu",
            Backend::Measured => "measured",
        }
    }

    /// What experiment files call it: a device is a device and a core a core, modelled or measured.
    pub(crate) fn role(self) -> &'static str {
        match self {
            Backend::Model | Backend::Device => "model",
            Backend::Cpu | Backend::Measured => "cpu",
        }
    }

    /// Whether it is of this machine, and not of the model.
    pub(crate) fn is_measured(self) -> bool {
        matches!(self, Backend::Device | Backend::Measured)
    }

    /// Whether it is a device, and not a core.
    pub(crate) fn is_device(self) -> bool {
        self.role() == Backend::Model.name()
    }

    /// Where its numbers come from.
    pub(crate) fn provenance(self) -> Provenance {
        match self.is_measured() {
            true => Provenance::Measured,
            false => Provenance::Modelled,
        }
    }

    /// Word of the results for who did the work.
    pub(crate) fn executor(self) -> &'static str {
        match self {
            Backend::Model => "model",
            Backend::Device if dray::hw::is_virtual() => "virtual",
            Backend::Device => "hardware",
            Backend::Cpu => "model-cpu",
            Backend::Measured => "cpu",
        }
    }
}

/// Parameters that mean something to a core that does the work itself.
const SOFTWARE: &[&str] = &[
    "op",
    "size",
    "src_node",
    "dst_node",
    "placement",
    "access",
    "core",
    "pages",
    "layout",
    "slow",
    "direction",
];

/// The point of an experiment as `backend` runs it: a core knows no queues, so that all points
/// which differ only in these are one.
pub(crate) fn reduced(point: &Point, backend: Backend) -> Point {
    let kept = point
        .iter()
        .filter(|(name, _)| backend.is_device() || SOFTWARE.contains(name))
        .map(|(name, value)| (name.to_owned(), value.clone()));
    let kept: Point = kept.collect();
    kept.with(BACKEND, Value::Text(backend.name().to_owned()))
}

/// What executes a point.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Who executes it.
    pub(crate) backend: Backend,
    /// The point, read.
    pub(crate) workload: Workload,
}

/// Every point of the experiments that the profile and the platform can run. `asked`: names and values that
/// were asked for.
///
/// # Errors
/// A point that cannot be read, or that cannot run and has a value that was asked for; no point that can run.
pub(crate) fn tasks(
    experiments: &[Experiment],
    platform: &PlatformFile,
    profile: &Profile,
    measured: Measured<'_>,
    asked: &[(String, String)],
) -> Result<Planned, FiguresError> {
    let mut tasks: Vec<Task<Job>> = Vec::new();
    let mut refused = RefusedPoints::default();
    let mut first = None;
    for experiment in experiments {
        let mut seen = std::collections::HashSet::new();
        let points = experiment.points();
        for backend in backends(experiment, measured) {
            for point in &points {
                let point = reduced(point, backend);
                if !seen.insert(point.key()) {
                    continue;
                }
                let named = |source| FiguresError::Point {
                    experiment: format!("{} with profile {}", experiment.id, profile.title()),
                    point: point.to_string(),
                    source: Box::new(source),
                };
                let run = match backend.is_device() {
                    true => point.clone(),
                    false => point.with("kind", "software"),
                };
                let workload = Workload::from_point(&run).map_err(named)?;
                let possible = match backend {
                    Backend::Model => true,
                    Backend::Device => measured.device.is_some_and(|request| {
                        device::why_not(&workload, profile, request).is_none()
                    }),
                    // There is no software that does nothing as a NOOP does.
                    Backend::Cpu => workload.op != Op::Nop,
                    Backend::Measured => measured::can(&workload),
                };
                if !possible {
                    continue;
                }
                // What would fail later is refused before anything runs or is written.
                if let Err(error) = setup::check(platform, profile, &workload) {
                    let is_left_out = match backend {
                        // The point of the model, which is the same, is counted.
                        _ if backend.is_measured() => true,
                        _ => refused.add(&experiment.id, profile, &workload, asked, &error),
                    };
                    let error = named(error);
                    match is_left_out {
                        true => _ = first.get_or_insert(error),
                        false => return Err(error),
                    }
                    continue;
                }
                tasks.push(Task {
                    experiment: experiment.id.clone(),
                    point: point.clone(),
                    provenance: backend.provenance(),
                    executor: backend.executor(),
                    work: Job { backend, workload },
                });
            }
        }
    }
    match first {
        Some(error) if tasks.is_empty() => Err(error),
        _ => Ok(Planned { tasks, refused }),
    }
}

/// What a run does.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Every point, in the order of the experiments, each once.
    pub(crate) tasks: Vec<Task<Job>>,
    /// Points that the profile or the platform cannot have.
    pub(crate) refused: RefusedPoints,
}

/// What of this machine is measured beside the model.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured<'a> {
    /// A core.
    pub(crate) core: bool,
    /// A device.
    pub(crate) device: Option<&'a DeviceRequest>,
}

/// The backends that an experiment is run on.
pub(crate) fn backends(experiment: &Experiment, measured: Measured<'_>) -> Vec<Backend> {
    let applies = |backend: &Backend| {
        experiment.backends.iter().any(|b| b == backend.role())
            && match backend {
                Backend::Measured => measured.core,
                Backend::Device => measured.device.is_some(),
                _ => true,
            }
    };
    Backend::ALL.into_iter().filter(applies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Protocol, select};

    fn planned(figure: &str, set: &[(&str, &str)], profile: &str) -> Result<Planned, FiguresError> {
        let set: Vec<(String, String)> = set
            .iter()
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect();
        let chosen = select(Protocol::Paper, &[figure.to_owned()], &set)?.experiments;
        let platform = dray_platform::builtin("spr-2s")?;
        tasks(
            &chosen,
            &platform,
            &Profile::named(profile)?,
            Measured::default(),
            &set,
        )
    }

    #[test]
    fn a_core_runs_each_of_its_points_once() {
        let tasks = planned("fig2", &[], "1e1w-d").unwrap().tasks;
        let count = |backend| tasks.iter().filter(|t| t.work.backend == backend).count();
        assert_eq!(
            (count(Backend::Model), count(Backend::Cpu)),
            (8 * 2 * 7, 8 * 7)
        );
    }

    #[test]
    fn points_outside_the_limits_are_refused_before_the_run() {
        let message = |r: Result<Planned, FiguresError>| {
            let error = r.unwrap_err();
            let source = std::error::Error::source(&error).map(|s| s.to_string());
            format!("{error}: {}", source.unwrap_or_default())
        };
        let batch = message(planned("fig3", &[("batch", "1,64")], "1e1w-d-bs32"));
        assert!(
            batch.contains("batch 64 is above the work queue's limit of 32"),
            "{batch}"
        );
        assert!(
            batch.contains("1e1w-d-bs32") && batch.contains("max_batch_size"),
            "{batch}"
        );
        let size = message(planned("fig3", &[("size", "4M")], "1e1w-d"));
        assert!(
            size.contains("size 4194304 is above the work queue's limit of 2097152"),
            "{size}"
        );
        let queue = message(planned("fig4", &[("wq_size", "256")], "1e1w-d"));
        assert!(queue.contains("256") && queue.contains("128"), "{queue}");
        // Nothing is left of the figure.
        let all = message(planned("fig4", &[], "1e1w-d-bs32-xfer128"));
        assert!(all.contains("the work queue's limit of 128"), "{all}");
    }

    #[test]
    fn shipped_points_above_the_limits_are_left_out_and_listed() {
        let of = |figure, profile| {
            let planned = planned(figure, &[], profile).unwrap();
            let lines: Vec<String> = planned.refused.lines().collect();
            (planned.tasks.len(), planned.refused.count(), lines)
        };
        let (all, none, _) = of("fig3", "1e1w-d");
        assert_eq!(none, 0);
        let (left, out, lines) = of("fig3", "1e1w-d-bs32");
        assert_eq!((left + out, out), (all, all / 4));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0] == "fig3: 14 points are left out: batch above 32 (max_batch_size)",
            "{lines:?}"
        );
        // Two work queues of 128 entries are more than a device has.
        let (left, out, lines) = of("fig4", "1e2w-d");
        let (all, ..) = of("fig4", "1e1w-d");
        assert_eq!((left + out, out), (all, all / 8));
        assert!(
            lines.len() == 1 && lines[0].contains("wq_size 128: size is 256 for all work queues"),
            "{lines:?}"
        );
    }
}
