//! Executing points: in parallel, interruptible, and resumed from a [`Store`].

use std::collections::HashMap;

use rayon::prelude::*;

use crate::file::Experiment;
use crate::point::Point;
use crate::provenance::Provenance;
use crate::result::Outcome;
use crate::store::{Store, StoreError};

/// Threads that a run may have at most; more than the points that there are do not help.
const MAX_THREADS: usize = 256;

/// Follows a run while it goes on, and may stop it.
pub trait Progress: Sync {
    /// There are so many points, of which so many are known from an interrupted run.
    fn start(&self, points: usize, resumed: usize);
    /// The points are done, and something else begins that has so many steps.
    fn phase(&self, name: &str, steps: usize);
    /// One more point, or step of a phase, is done.
    fn done(&self);
    /// Whether to stop; asked between points, and between steps.
    fn stopped(&self) -> bool;
}

/// A point to execute, and what executes it.
#[derive(Clone, Debug)]
pub struct Task<W> {
    /// The experiment's id.
    pub experiment: String,
    /// The point, with its backend.
    pub point: Point,
    /// Where its metrics come from.
    pub provenance: Provenance,
    /// Who executes it.
    pub executor: &'static str,
    /// What is executed.
    pub work: W,
}

/// What a point gave: names with their unit (`latency_ns`), and values.
pub type MetricList = Vec<(String, f64)>;

/// A run in progress.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    store: &'a Store,
    progress: &'a dyn Progress,
}

impl<'a> Run<'a> {
    /// Starts a run of so many points, whose outcomes are kept in `store`.
    pub fn start(store: &'a Store, progress: &'a dyn Progress, points: usize) -> Run<'a> {
        progress.start(points, store.resumed());
        Run { store, progress }
    }

    /// Points known from an interrupted run.
    pub fn resumed(&self) -> usize {
        self.store.resumed()
    }

    /// The outcome of a point: from the store, or executed now. `None` once the run is to stop.
    ///
    /// # Errors
    /// Those of `execute`, and an outcome that cannot be kept.
    pub fn point<W, E: From<StoreError>>(
        &self,
        task: &Task<W>,
        execute: impl FnOnce(&W) -> Result<MetricList, E>,
    ) -> Result<Option<Outcome>, E> {
        if let Some(known) = self.store.get(&task.experiment, &task.point) {
            return Ok(Some(known));
        }
        if self.progress.stopped() {
            return Ok(None);
        }
        let outcome = Outcome {
            point: task.point.clone(),
            metrics: execute(&task.work)?,
            provenance: task.provenance,
            executor: task.executor.to_owned(),
        };
        self.store.put(&task.experiment, &outcome)?;
        self.progress.done();
        Ok(Some(outcome))
    }

    /// The outcomes of all points, in their order, executed on the threads of the current pool. They are executed in
    /// another order, in which the first ones are a sample of all: the time that is left can be told from them.
    ///
    /// # Errors
    /// The first error of any point.
    pub fn parallel<W: Sync, E: From<StoreError> + Send>(
        &self,
        tasks: &[&Task<W>],
        execute: impl Fn(&Task<W>) -> Result<MetricList, E> + Sync,
    ) -> Result<Vec<Option<Outcome>>, E> {
        let spread = |index: usize| (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_unstable_by_key(|index| spread(*index));
        // One at a time, so that threads do not begin in different halves.
        let outcomes = order.par_iter().with_max_len(1).map(|index| {
            let task = tasks[*index];
            Ok((*index, self.point(task, |_| execute(task))?))
        });
        let mut outcomes: Vec<(usize, Option<Outcome>)> = outcomes.collect::<Result<_, E>>()?;
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }
}

/// Threads for a run of so many points: `jobs` of them (0: one per core), but no more than points.
///
/// # Errors
/// The system has no more threads.
pub fn thread_pool(
    jobs: usize,
    points: usize,
) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
    let threads = jobs.min(points.max(1)).min(MAX_THREADS);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build()
}

/// An experiment with its outcomes.
#[derive(Clone, Debug)]
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

    /// The outcome of a point, named with its backend.
    pub fn outcome(&self, point: &Point) -> Option<&Outcome> {
        self.index.get(&point.key()).map(|i| &self.outcomes[*i])
    }
}

/// The outcomes of a run by experiment, in the order of `experiments`.
pub fn figures<W>(
    experiments: Vec<Experiment>,
    tasks: &[Task<W>],
    outcomes: Vec<Outcome>,
) -> Vec<Figure> {
    let mut grouped: HashMap<&str, Vec<Outcome>> = HashMap::new();
    for (task, outcome) in tasks.iter().zip(outcomes) {
        grouped.entry(&task.experiment).or_default().push(outcome);
    }
    let with_outcomes = experiments.into_iter().map(|experiment| {
        let outcomes = grouped.remove(experiment.id.as_str()).unwrap_or_default();
        Figure::new(experiment, outcomes)
    });
    with_outcomes.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Count {
        limit: usize,
        done: AtomicUsize,
    }

    impl Progress for Count {
        fn start(&self, _points: usize, _resumed: usize) {}

        fn phase(&self, _name: &str, _steps: usize) {}

        fn done(&self) {
            self.done.fetch_add(1, Ordering::Relaxed);
        }

        fn stopped(&self) -> bool {
            self.done.load(Ordering::Relaxed) >= self.limit
        }
    }

    fn tasks() -> Vec<Task<u64>> {
        let task = |n: u64| Task {
            experiment: "squares".to_owned(),
            point: Point::default().with("n", n),
            provenance: Provenance::Modelled,
            executor: "test",
            work: n,
        };
        (0..8).map(task).collect()
    }

    fn run(dir: &std::path::Path, limit: usize) -> (Vec<Option<Outcome>>, usize) {
        let store = Store::open(dir, "1").unwrap();
        let progress = Count {
            limit,
            done: AtomicUsize::new(0),
        };
        let tasks = tasks();
        let run = Run::start(&store, &progress, tasks.len());
        let each: Vec<&Task<u64>> = tasks.iter().collect();
        let pool = thread_pool(1, tasks.len()).unwrap();
        let square = |task: &Task<u64>| {
            let metric = ("square_ns".to_owned(), (task.work * task.work) as f64);
            Ok::<_, StoreError>(vec![metric])
        };
        let outcomes = pool.install(|| run.parallel(&each, square)).unwrap();
        (outcomes, progress.done.into_inner())
    }

    #[test]
    fn a_stopped_run_keeps_its_finished_points() {
        let directory = tempfile::tempdir().unwrap();
        let (first, done) = run(directory.path(), 3);
        assert_eq!((first.iter().flatten().count(), done), (3, 3));
        let (rest, done) = run(directory.path(), usize::MAX);
        assert_eq!((rest.iter().flatten().count(), done), (8, 5));
        let squares = rest.iter().flatten().filter_map(|o| o.metric("square_ns"));
        assert!(squares.eq((0..8).map(|n| f64::from(n * n))));
    }

    #[test]
    fn the_number_of_threads_is_limited_to_the_points() {
        assert_eq!(thread_pool(100_000, 5).unwrap().current_num_threads(), 5);
    }
}
