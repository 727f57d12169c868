//! A run of the chosen experiments, and its report.

use std::hash::{DefaultHasher, Hash, Hasher};

use dray_device::Payload;
use dray_experiment::{Outcome, Progress, Run, Store, Task, figures, thread_pool};
use dray_platform::PlatformFile;
use rayon::prelude::*;

use crate::check::check_table;
use crate::device::{DeviceBench, MeasuredDevice, NotMeasured, why_not};
use crate::guess::GuessIndex;
use crate::measured::{Bench, Machine};
use crate::model::Window;
use crate::phase::Phases;
use crate::request::{GENERATOR, Request, Summary};
use crate::task::{Backend, Job, Measured, Planned, tasks};
use crate::{
    CheckedTable, Ends, FiguresError, KnownRuns, Metrics, Model, catalog, interval, output,
    reference_tables,
};

/// Runs the experiments and writes the report.
///
/// Nothing is written before every point is known to be runnable. Results of finished points are
/// kept below the output directory until the report is complete, so that a stopped run goes on.
///
/// # Errors
/// Bad input, before anything is written; [`FiguresError::Interrupted`]; a directory or file that
/// cannot be written.
pub fn run(request: &Request, progress: &dyn Progress) -> Result<Summary, FiguresError> {
    let selection = catalog::select(request.protocol, &request.only, &request.set)?;
    let narrowed = selection.lines().collect();
    let mut experiments = selection.experiments;
    let (platform, profile) = (&request.platform, &request.profile);
    // What is wrong with the profile itself is said before what a point asks of it.
    if profile
        .devices()?
        .iter()
        .all(|device| device.work_queues.is_empty())
    {
        return Err(FiguresError::NoWorkQueue);
    }
    // Beside a measured device stands a measured core.
    let measured = Measured {
        core: request.measure_cpu || request.device.is_some(),
        device: request.device.as_ref(),
    };
    let Planned { tasks, refused } =
        tasks(&experiments, platform, profile, measured, &request.set)?;
    // Of the others nothing is left; the reasons are in `refused`.
    experiments.retain(|experiment| tasks.iter().any(|task| task.experiment == experiment.id));
    let model = Model {
        platform: platform.clone().into(),
        profile: profile.clone(),
        payload: match request.move_bytes {
            true => Payload::Moved,
            false => Payload::Skipped,
        },
        known: KnownRuns::default(),
    };
    let phases = Phases {
        progress,
        out: &request.out,
    };
    let pool = thread_pool(request.jobs, tasks.len());
    let pool = pool.map_err(|source| FiguresError::Threads { source })?;
    let store = Store::open(&request.out, &fingerprint(request))?;
    let running = Run::start(&store, progress, tasks.len());
    let modelled_tasks: Vec<&Task<Job>> = tasks
        .iter()
        .filter(|task| !task.work.backend.is_measured())
        .collect();
    let modelled = pool.install(|| {
        running.parallel(&modelled_tasks, |task| {
            named(task, model.run(&task.work.workload)).map(Metrics::into_vec)
        })
    })?;
    let (on_device, device) = measure_device(&running, &tasks, request)?;
    let (measured, machine) = measure(&running, &tasks)?;
    let (mut modelled, mut measured) = (modelled.into_iter(), measured.into_iter());
    let mut on_device = on_device.into_iter();
    let outcomes = tasks.iter().map(|task| match task.work.backend {
        Backend::Device => on_device.next().flatten(),
        Backend::Measured => measured.next().flatten(),
        _ => modelled.next().flatten(),
    });
    let complete: Option<Vec<Outcome>> = outcomes.collect();
    let Some(outcomes) = complete else {
        return Err(FiguresError::Interrupted {
            out: request.out.clone(),
        });
    };
    let figures = figures(experiments, &tasks, outcomes);
    let ends = match request.intervals {
        true => pool.install(|| Ends::run(&model, &figures, &modelled_tasks, phases))?,
        false => Ends::default(),
    };
    let mut summary = Summary {
        ends,
        guesses: pool.install(|| GuessIndex::find(&model, &figures, phases))?,
        intervals: pool.install(|| interval::intervals(&model, &figures, phases))?,
        figures,
        checked: pool.install(|| checked_tables(platform, &model.known, Some(phases)))?,
        machine,
        device,
        refused,
        narrowed,
        resumed: store.resumed(),
        files: Vec::new(),
    };
    phases.go_on()?;
    summary.files = pool.install(|| output::write(request, &summary, phases))?;
    store.finish()?;
    Ok(summary)
}

/// The model beside every published table, each on the platform that stands for its machine.
///
/// # Errors
/// A point that cannot run.
pub fn accuracy(platform: &PlatformFile) -> Result<Vec<CheckedTable>, FiguresError> {
    checked_tables(platform, &KnownRuns::default(), None)
}

fn checked_tables(
    platform: &PlatformFile,
    known: &KnownRuns,
    phases: Option<Phases<'_>>,
) -> Result<Vec<CheckedTable>, FiguresError> {
    let tables = reference_tables()?;
    let run = |table: dray_experiment::ReferenceTable| {
        let own = match table.platform == platform.name {
            true => platform.clone(),
            false => dray_platform::builtin(&table.platform)?,
        };
        check_table(&own, &table, Window::Full, known)
    };
    match phases {
        Some(phases) => phases.each("published tables", tables, run),
        None => tables.into_par_iter().map(run).collect(),
    }
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
    if let Some(device) = &request.device {
        (&device.queue, dray::hw::is_virtual()).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// An error with the experiment and the point that it belongs to.
fn named<T>(task: &Task<Job>, result: Result<T, FiguresError>) -> Result<T, FiguresError> {
    result.map_err(|source| FiguresError::Point {
        experiment: task.experiment.clone(),
        point: task.point.to_string(),
        source: Box::new(source),
    })
}

/// Outcomes of the measured points; what was measured on, if there were any.
type Outcomes<M> = (Vec<Option<Outcome>>, Option<M>);

/// What is measured here comes last and alone, on a thread of its own that may be pinned.
fn measure(running: &Run<'_>, tasks: &[Task<Job>]) -> Result<Outcomes<Machine>, FiguresError> {
    let measured: Vec<&Task<Job>> = tasks
        .iter()
        .filter(|task| task.work.backend == Backend::Measured)
        .collect();
    if measured.is_empty() {
        return Ok((Vec::new(), None));
    }
    let measure = || -> Result<Outcomes<Machine>, FiguresError> {
        let mut bench = Bench::new().map_err(|source| FiguresError::Memory { source })?;
        let machine = bench.machine();
        let mut outcomes = Vec::with_capacity(measured.len());
        for task in measured {
            outcomes.push(running.point(task, |job| {
                named(task, bench.run(&job.workload)).map(Metrics::into_vec)
            })?);
        }
        Ok((outcomes, Some(machine)))
    };
    std::thread::scope(|scope| match scope.spawn(measure).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// The file of raw samples, one line for each point.
const SAMPLES: &str = "device-samples.jsonl";

/// What is measured on a device comes alone, on a thread of its own that may be pinned; points that need
/// one configuration follow each other. The device is put back as it was, however this ends.
fn measure_device(
    running: &Run<'_>,
    tasks: &[Task<Job>],
    request: &Request,
) -> Result<Outcomes<MeasuredDevice>, FiguresError> {
    let of = |backend: Backend| {
        tasks
            .iter()
            .filter(move |task| task.work.backend == backend)
    };
    let points: Vec<&Task<Job>> = of(Backend::Device).collect();
    let Some(device) = request.device.as_ref() else {
        return Ok((Vec::new(), None));
    };
    let mut not_measured = NotMeasured::default();
    for task in of(Backend::Model) {
        if let Some(missing) = why_not(&task.work.workload, &request.profile, device) {
            not_measured.add(&task.experiment, missing);
        }
    }
    let samples = request.out.join(SAMPLES);
    if running.resumed() == 0 {
        // Lines of a run that was complete.
        dray_output::write(&samples, b"")?;
    }
    let mut order: Vec<(String, usize)> = points
        .iter()
        .map(|task| DeviceBench::configuration(&request.profile, &task.work.workload))
        .zip(0..)
        .collect();
    order.sort();
    let measure = || -> Result<Outcomes<MeasuredDevice>, FiguresError> {
        let mut bench = DeviceBench::new(device, &samples)?;
        let mut outcomes = vec![None; points.len()];
        for (_, index) in order {
            let task = points[index];
            let outcome = running.point(task, |job| {
                let (figure, point) = (&task.experiment, task.point.to_string());
                let found = bench.run(&request.profile, &job.workload, figure, &point);
                named(task, found).map(Metrics::into_vec)
            });
            outcomes[index] = match outcome {
                Ok(outcome) => outcome,
                Err(failure) => return Err(bench.abandon(failure)),
            };
        }
        Ok((outcomes, Some(bench.finish(not_measured)?)))
    };
    std::thread::scope(|scope| match scope.spawn(measure).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
