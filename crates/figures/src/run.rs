//! A run: every point of the chosen experiments, in parallel, interruptible and resumable.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use dray_device::Payload;
use dray_experiment::{Experiment, Outcome, Point, Store};
use dray_idxd::Profile;
use dray_platform::PlatformFile;
use rayon::prelude::*;

use crate::measured::{Bench, Machine};
use crate::task::{Backend, Task, tasks};
use crate::{
    CheckedTable, FiguresError, Model, Protocol, catalog, check, output, reference_tables,
};

/// Program and version, as it stands in every file that is written.
pub const GENERATOR: &str = concat!("dray ", env!("CARGO_PKG_VERSION"));

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Request {
    /// The machine.
    pub platform: PlatformFile,
    /// The device's configuration.
    pub profile: Profile,
    /// What to call it.
    pub profile_name: String,
    /// Figures by name; empty: all.
    pub only: Vec<String>,
    /// Parameters and the values that they get instead, in the notation of sweeps.
    pub set: Vec<(String, String)>,
    /// How the experiments are understood.
    pub protocol: Protocol,
    /// Also measure software on a core of this machine.
    pub measure_cpu: bool,
    /// Move payload bytes and check them, not only their time.
    pub move_bytes: bool,
    /// Output directory.
    pub out: PathBuf,
    /// Threads; 0: one per core.
    pub jobs: usize,
}

/// Hears of a run while it goes on, and may stop it.
pub trait Progress: Sync {
    /// There are so many points, of which so many are known from an interrupted run.
    fn start(&self, points: usize, resumed: usize);
    /// One more is done.
    fn done(&self);
    /// Whether to stop; asked between points.
    fn stopped(&self) -> bool;
}

/// An experiment with what came out of it.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The experiment.
    pub experiment: Experiment,
    /// Outcomes in the order of the points, backend after backend.
    pub outcomes: Vec<Outcome>,
    index: HashMap<String, usize>,
}

impl Figure {
    /// An experiment with its outcomes.
    pub fn new(experiment: Experiment, outcomes: Vec<Outcome>) -> Figure {
        let keys = outcomes.iter().enumerate().map(|(i, o)| (o.point.key(), i));
        Figure {
            index: keys.collect(),
            experiment,
            outcomes,
        }
    }

    /// What came out of a point, named with its backend.
    pub fn outcome(&self, point: &Point) -> Option<&Outcome> {
        self.index.get(&point.key()).map(|i| &self.outcomes[*i])
    }
}

/// All that a run gave.
#[derive(Debug)]
pub struct Summary {
    /// The figures, in their order.
    pub figures: Vec<Figure>,
    /// The model beside the published numbers.
    pub checked: Vec<CheckedTable>,
    /// This machine, if it was measured.
    pub machine: Option<Machine>,
    /// Points known from an interrupted run.
    pub resumed: usize,
    /// Files written.
    pub files: Vec<PathBuf>,
}

/// Runs the experiments and writes the report.
///
/// Nothing is written before every point is known to be runnable. Results of finished points are
/// kept below the output directory until the report is complete, so that a stopped run goes on.
///
/// # Errors
/// Bad input, before anything is written; [`FiguresError::Interrupted`]; a directory or file that
/// cannot be written.
pub fn run(request: &Request, progress: &dyn Progress) -> Result<Summary, FiguresError> {
    let experiments = catalog::select(request.protocol, &request.only, &request.set)?;
    let (platform, profile) = (&request.platform, &request.profile);
    // What is wrong with the profile itself is said before what a point asks of it.
    if profile
        .devices()?
        .iter()
        .all(|device| device.work_queues.is_empty())
    {
        return Err(FiguresError::NoWorkQueue);
    }
    let tasks = tasks(&experiments, platform, profile, request.measure_cpu)?;
    let model = Model {
        platform: platform.clone().into(),
        profile: profile.clone(),
        payload: match request.move_bytes {
            true => Payload::Moved,
            false => Payload::Skipped,
        },
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(request.jobs)
        .build();
    let pool = pool.map_err(|source| FiguresError::Threads { source })?;
    let store = Store::open(&request.out, &fingerprint(request))?;
    progress.start(tasks.len(), store.resumed());

    let runner = Runner {
        experiments: &experiments,
        store: &store,
        progress,
    };
    let modelled = |task: &Task| runner.point(task, || model.run(&task.workload));
    let mut outcomes: Vec<Option<Outcome>> = pool.install(|| {
        let run = |task: &Task| match task.backend {
            Backend::Measured => Ok(None),
            _ => modelled(task),
        };
        tasks
            .par_iter()
            .map(run)
            .collect::<Result<_, FiguresError>>()
    })?;
    let machine = runner.measure(&tasks, &mut outcomes)?;
    let complete: Option<Vec<Outcome>> = outcomes.into_iter().collect();
    let Some(outcomes) = complete else {
        return Err(FiguresError::Interrupted {
            out: request.out.clone(),
        });
    };
    let checked = pool.install(|| accuracy(platform))?;

    let mut grouped: Vec<Vec<Outcome>> = vec![Vec::new(); experiments.len()];
    for (task, outcome) in tasks.iter().zip(outcomes) {
        grouped[task.experiment].push(outcome);
    }
    let figures = experiments.into_iter().zip(grouped);
    let mut summary = Summary {
        figures: figures.map(|(e, o)| Figure::new(e, o)).collect(),
        checked,
        machine,
        resumed: store.resumed(),
        files: Vec::new(),
    };
    summary.files = output::write(request, &summary)?;
    store.finish()?;
    Ok(summary)
}

/// The model beside every published table, each on the platform that stands for its machine.
///
/// # Errors
/// A point that cannot run.
pub fn accuracy(platform: &PlatformFile) -> Result<Vec<CheckedTable>, FiguresError> {
    let tables = reference_tables()?;
    let run = |table: &dray_experiment::ReferenceTable| {
        let own = match table.platform == platform.name {
            true => platform.clone(),
            false => dray_platform::builtin(&table.platform)?,
        };
        check(&own, std::slice::from_ref(table))
    };
    let checked: Vec<Vec<CheckedTable>> = tables
        .par_iter()
        .map(run)
        .collect::<Result<_, FiguresError>>()?;
    Ok(checked.into_iter().flatten().collect())
}

/// What the outcomes of a run depend on besides their points.
fn fingerprint(request: &Request) -> String {
    let mut hasher = DefaultHasher::new();
    GENERATOR.hash(&mut hasher);
    // A program that was built anew may model something else under the same version.
    if let Ok(found) = std::env::current_exe().and_then(std::fs::metadata) {
        (found.len(), found.modified().ok()).hash(&mut hasher);
    }
    let platform = &request.platform;
    format!("{:?} {:?}", platform.topology, platform.list()).hash(&mut hasher);
    (&platform.name, &platform.device).hash(&mut hasher);
    request.profile.to_json().hash(&mut hasher);
    (request.protocol, &request.set, request.move_bytes).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

struct Runner<'a> {
    experiments: &'a [Experiment],
    store: &'a Store,
    progress: &'a dyn Progress,
}

impl Runner<'_> {
    /// A point from the store, or run now; `None` once the run is to stop.
    fn point(
        &self,
        task: &Task,
        run: impl FnOnce() -> Result<crate::Metrics, FiguresError>,
    ) -> Result<Option<Outcome>, FiguresError> {
        let id = &self.experiments[task.experiment].id;
        if let Some(known) = self.store.get(id, &task.point) {
            return Ok(Some(known));
        }
        if self.progress.stopped() {
            return Ok(None);
        }
        let metrics = run().map_err(|source| FiguresError::Point {
            experiment: id.clone(),
            point: task.point.to_string(),
            source: Box::new(source),
        })?;
        let outcome = Outcome {
            point: task.point.clone(),
            metrics: metrics.into_vec(),
            provenance: task.backend.provenance().to_owned(),
            executor: task.backend.executor().to_owned(),
        };
        self.store.put(id, &outcome)?;
        self.progress.done();
        Ok(Some(outcome))
    }

    /// What is measured here comes last and alone, on a thread of its own that may be pinned.
    fn measure(
        &self,
        tasks: &[Task],
        outcomes: &mut [Option<Outcome>],
    ) -> Result<Option<Machine>, FiguresError> {
        if tasks.iter().all(|task| task.backend != Backend::Measured) {
            return Ok(None);
        }
        let measure = || -> Result<Machine, FiguresError> {
            let mut bench = Bench::new();
            let machine = bench.machine();
            for (task, outcome) in tasks.iter().zip(outcomes) {
                if task.backend == Backend::Measured {
                    *outcome = self.point(task, || bench.run(&task.workload))?;
                }
            }
            Ok(machine)
        };
        let machine = std::thread::scope(|scope| match scope.spawn(measure).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })?;
        Ok(Some(machine))
    }
}
