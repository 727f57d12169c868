//! Results of runs by what they depend on: a run that many ask for is made once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dray_device::Payload;
use dray_idxd::Profile;
use dray_model::Reads;
use dray_platform::Topology;

use crate::model::{Model, Window};
use crate::tiers::KnownPrograms;
use crate::workload::Workload;
use crate::{FiguresError, Metrics};

/// The metrics of what has run. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KnownRuns {
    configured: Arc<Mutex<Vec<Configured>>>,
    /// Programs on two tiers.
    pub(crate) programs: KnownPrograms,
}

/// Runs of one configuration, by workload and window: one for each machine that they differ on.
#[derive(Debug)]
struct Configured {
    profile: Profile,
    payload: Payload,
    topology: Topology,
    runs: HashMap<(Workload, Window), Vec<KnownRun>>,
}

/// A run, and the parameters that it has read: it is the same on every machine with the same values of these.
#[derive(Debug)]
struct KnownRun {
    reads: Reads,
    metrics: Metrics,
}

impl KnownRuns {
    /// The metrics of a workload: those that are known, or else those of `run`.
    ///
    /// # Errors
    /// What `run` returns. That is not kept.
    pub(crate) fn of(
        &self,
        model: &Model,
        w: &Workload,
        window: Window,
        run: impl FnOnce() -> Result<(Metrics, Reads), FiguresError>,
    ) -> Result<Metrics, FiguresError> {
        let found = self.with(model, |runs| {
            let same = |run: &&KnownRun| run.reads.same_in(&model.platform);
            let run = runs.get(&(*w, window))?.iter().find(same)?;
            Some(run.metrics.clone())
        });
        if let Some(metrics) = found {
            return Ok(metrics);
        }
        let (metrics, reads) = run()?;
        let known = KnownRun {
            reads,
            metrics: metrics.clone(),
        };
        self.with(model, |runs| {
            runs.entry((*w, window)).or_default().push(known);
        });
        Ok(metrics)
    }

    /// Calls `then` with the runs of the model's configuration.
    fn with<T>(
        &self,
        model: &Model,
        then: impl FnOnce(&mut HashMap<(Workload, Window), Vec<KnownRun>>) -> T,
    ) -> T {
        let all = self.configured.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        let (payload, topology) = (model.payload, model.platform.topology);
        let same = |c: &Configured| {
            c.payload == payload && c.topology == topology && c.profile == model.profile
        };
        let index = all.iter().position(same).unwrap_or_else(|| {
            all.push(Configured {
                profile: model.profile.clone(),
                payload,
                topology,
                runs: HashMap::new(),
            });
            all.len() - 1
        });
        then(&mut all[index].runs)
    }
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_platform::PlatformFile;

    use super::*;
    use crate::concurrent;

    fn model() -> Model {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        Model::new(platform, Profile::named("1e1w-d").unwrap())
    }

    /// One point of every kind.
    const POINTS: [&[(&str, &str)]; 14] = [
        &[("mode", "async"), ("size", "4096")],
        &[("submit", "enqcmd"), ("wait", "umwait")],
        &[("submit", "enqcmd"), ("cores", "4"), ("mode", "async")],
        &[("core_node", "remote"), ("wait", "pause")],
        &[("batch", "8"), ("op", "crc"), ("mode", "async")],
        &[("devices", "4"), ("dst_node", "cxl"), ("mode", "async")],
        &[
            ("read_buffers", "16"),
            ("dst_align", "8"),
            ("mode", "async"),
        ],
        &[("portal", "rotating"), ("src_node", "remote")],
        &[("kind", "burst")],
        &[("kind", "fault"), ("fault", "touch-read")],
        &[("kind", "vhost"), ("size", "64")],
        &[("kind", "vhost"), ("copier", "core")],
        &[("kind", "software"), ("op", "memmove")],
        &[("kind", "software"), ("access", "random"), ("op", "crc")],
    ];

    fn pointed(values: &[(&str, &str)]) -> Point {
        let values = values.iter();
        values.fold(Point::default(), |p, (name, value)| {
            match value.parse::<u64>() {
                Ok(number) => p.with(name, number),
                Err(_) => p.with(name, *value),
            }
        })
    }

    /// What a workload has read, known by its runs on this model.
    fn reads(model: &Model, w: &Workload) -> Vec<Reads> {
        let _ = model.run_for(w, Window::Probe).unwrap();
        model.known.with(model, |runs| {
            let runs = runs.values().flatten();
            runs.map(|run| run.reads.clone()).collect()
        })
    }

    /// A machine on which all parameters that a run does not depend on have other values.
    #[test]
    fn a_run_depends_only_on_the_parameters_that_it_has_read() {
        for values in POINTS {
            let w = Workload::from_point(&pointed(values)).unwrap();
            let model = model();
            let base = model.run_for(&w, Window::Probe).unwrap();
            let reads = reads(&model, &w);
            let same = |platform: &PlatformFile| reads.iter().all(|r| r.same_in(platform));
            assert!(!reads.is_empty() && same(&model.platform), "{values:?}");
            for end in [0, 1] {
                let mut other = (*model.platform).clone();
                let (mut moved, mut kept) = (0, 0);
                for parameter in model.platform.list() {
                    let there = other.with(parameter.name, parameter.range[end]).unwrap();
                    match same(&there) {
                        true => (other, moved) = (there, moved + 1),
                        false => kept += 1,
                    }
                }
                // Each workload has its part of the parameters, and none has all of them.
                assert!(moved > 20 && kept > 1, "{values:?}: {moved} and {kept}");
                let other = Model {
                    platform: other.into(),
                    known: KnownRuns::default(),
                    ..model.clone()
                };
                let there = other.run_for(&w, Window::Probe).unwrap();
                assert_eq!(there, base, "{values:?}");
            }
        }
    }

    #[test]
    fn a_run_is_repeated_only_where_a_parameter_it_read_differs() {
        let model = model();
        let w = Workload::from_point(&Point::default()).unwrap();
        let times = std::cell::Cell::new(0);
        let ask = |model: &Model, w: &Workload, window: Window| {
            let run = || {
                times.set(times.get() + 1);
                concurrent::run_for(model, w, Window::Probe)
            };
            model.known.of(model, w, window, run).unwrap();
            times.get()
        };
        assert_eq!(ask(&model, &w, Window::Full), 1);
        assert_eq!(ask(&model.clone(), &w, Window::Full), 1);
        assert_eq!(ask(&model, &w, Window::Short), 2);
        let larger = Workload { size: 8192, ..w };
        assert_eq!(ask(&model, &larger, Window::Full), 3);
        let with = |name: &str| {
            let mut list = model.platform.list().iter();
            let parameter = list.find(|p| p.name == name).unwrap();
            let platform = model.platform.with(name, parameter.range[0]).unwrap();
            Model {
                platform: platform.into(),
                ..model.clone()
            }
        };
        // The core's own copy has no part in the device's.
        assert_eq!(ask(&with("cpu_copy_line"), &w, Window::Full), 3);
        assert_eq!(ask(&with("dispatch"), &w, Window::Full), 4);
        let shared = Model {
            profile: Profile::named("1e1w-s").unwrap(),
            ..model.clone()
        };
        assert_eq!(ask(&shared, &w, Window::Full), 5);
        let moved = Model {
            payload: Payload::Moved,
            ..model.clone()
        };
        assert_eq!(ask(&moved, &w, Window::Full), 6);
        let refused = model
            .known
            .of(&with("dispatch"), &larger, Window::Full, || {
                Err(FiguresError::NoWorkQueue)
            });
        assert!(refused.is_err());
    }
}
