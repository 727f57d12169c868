//! Results of runs by what they depend on: a run that many ask for is made once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dray_device::Payload;
use dray_idxd::Profile;
use dray_platform::{Parameter, Topology};

use crate::model::{Model, Window};
use crate::workload::{What, Workload};
use crate::{FiguresError, Metrics};

/// The metrics of closed loops that have run. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KnownRuns(Arc<Mutex<Vec<Configured>>>);

/// Metrics of the workloads that ran with some values of the parameters.
type Runs = HashMap<(Workload, Window), Metrics>;

/// Runs of one configuration, by the values of the parameters that they depend on.
#[derive(Debug)]
struct Configured {
    profile: Profile,
    payload: Payload,
    topology: Topology,
    by_values: HashMap<Box<[u64]>, Runs>,
}

/// Whether a core that does the work itself has the parameter. A device has none of these.
pub(crate) fn is_of_core(parameter: &Parameter) -> bool {
    parameter.name.starts_with("cpu_")
}

/// Whether a virtual switch has the parameter.
pub(crate) fn is_of_switch(parameter: &Parameter) -> bool {
    parameter.name.starts_with("vhost_")
}

/// Values of the parameters that a closed loop depends on.
fn values(model: &Model, what: What) -> Box<[u64]> {
    let software = what == What::Software;
    let parameters = model.platform.list().iter();
    parameters
        .filter(|p| is_of_core(p) == software && !is_of_switch(p))
        .map(|p| p.value.to_bits())
        .collect()
}

impl KnownRuns {
    /// The metrics of a closed loop: those that are known, or else those of `run`.
    ///
    /// # Errors
    /// What `run` returns. That is not kept.
    pub(crate) fn of(
        &self,
        model: &Model,
        w: &Workload,
        window: Window,
        run: impl FnOnce() -> Result<Metrics, FiguresError>,
    ) -> Result<Metrics, FiguresError> {
        let values = values(model, w.what);
        let found = self.with(model, |by_values| {
            by_values.get(&values)?.get(&(*w, window)).cloned()
        });
        if let Some(metrics) = found {
            return Ok(metrics);
        }
        let metrics = run()?;
        self.with(model, |by_values| {
            let runs = by_values.entry(values).or_default();
            runs.insert((*w, window), metrics.clone());
        });
        Ok(metrics)
    }

    /// Calls `then` with the runs of the model's configuration.
    fn with<T>(&self, model: &Model, then: impl FnOnce(&mut HashMap<Box<[u64]>, Runs>) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (payload, topology) = (model.payload, model.platform.topology);
        let same = |c: &Configured| {
            c.payload == payload && c.topology == topology && c.profile == model.profile
        };
        let index = all.iter().position(same).unwrap_or_else(|| {
            all.push(Configured {
                profile: model.profile.clone(),
                payload,
                topology,
                by_values: HashMap::new(),
            });
            all.len() - 1
        });
        then(&mut all[index].by_values)
    }
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;
    use crate::concurrent;

    fn model() -> Model {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        Model::new(platform, Profile::named("1e1w-d").unwrap())
    }

    /// The same machine with all parameters of the core, or all others, at the ends of their ranges.
    fn changed(model: &Model, of_core: bool, end: usize) -> Model {
        let mut platform = (*model.platform).clone();
        for parameter in model.platform.list() {
            if is_of_core(parameter) == of_core {
                platform = platform
                    .with(&parameter.name, parameter.range[end])
                    .unwrap();
            }
        }
        Model {
            platform: platform.into(),
            known: KnownRuns::default(),
            ..model.clone()
        }
    }

    #[test]
    fn a_device_has_no_parameter_of_the_core_and_a_core_none_of_the_device() {
        let model = model();
        let point = |values: &[(&str, &str)]| {
            values.iter().fold(Point::default(), |p, (name, value)| {
                match value.parse::<u64>() {
                    Ok(number) => p.with(name, number),
                    Err(_) => p.with(name, *value),
                }
            })
        };
        let software = [("kind", "software"), ("op", "memmove")];
        let random = [("kind", "software"), ("access", "random"), ("op", "crc")];
        for (values, of_core) in [
            (&[("mode", "async"), ("size", "4096")][..], false),
            (&[("submit", "enqcmd"), ("wait", "umwait")], false),
            (&[("batch", "8"), ("op", "crc"), ("mode", "async")], false),
            (&[("devices", "4"), ("dst_node", "cxl")], false),
            (&software, true),
            (&random, true),
        ] {
            let w = Workload::from_point(&point(values)).unwrap();
            let run = |model: &Model| concurrent::run(model, &w, Window::Probe).unwrap();
            let base = run(&model);
            let mut moved = false;
            for end in [0, 1] {
                assert_eq!(run(&changed(&model, !of_core, end)), base, "{values:?}");
                moved |= run(&changed(&model, of_core, end)) != base;
            }
            assert!(moved, "{values:?}");
        }
    }

    #[test]
    fn a_run_is_made_once_for_each_machine_that_it_depends_on() {
        let model = model();
        let w = Workload::from_point(&Point::default()).unwrap();
        let times = std::cell::Cell::new(0);
        let ask = |model: &Model, w: &Workload, window: Window| {
            let run = || {
                times.set(times.get() + 1);
                Ok(Metrics::default())
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
