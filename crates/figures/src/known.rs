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
