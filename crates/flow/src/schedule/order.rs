//! The order in which jobs would end if all ran at once, and rates by it.
//!
//! Jobs that share an edge in equal parts all end late. One after the other, in the order in which they would end
//! together, each ends no later than together, and most end earlier (Friedman and Henderson, "Fairness and Efficiency in Web
//! Server Protocols", SIGMETRICS 2003, show it for one server). On a fabric that holds for most jobs; what keeps the edge with
//! the most work full comes first, so that the last job ends no later.

use crate::error::FlowError;
use crate::estimate::Estimator;

use super::policy::{Running, View};

/// An edge has the most work if it has this part of the most.
const CRITICAL: f64 = 0.98;
/// What is less than this part of an edge is not left.
const FULL: f64 = 0.999;
/// A job with more than this part of its edge's work is not put first for the edge's sake: it would end last anyway.
const DOMINANT: f64 = 0.6;
/// Edges that are filled for their work in one decision.
const REPAIRS: usize = 3;

/// A job as if all jobs ran at once.
#[derive(Clone, Copy, Debug)]
struct Together {
    job: usize,
    remaining: f64,
    rate: f64,
}

/// The jobs as if all ran at once, as far as now.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    now: f64,
    jobs: Vec<Together>,
    /// By job: when it would have ended, if that is over.
    ended: Vec<Option<f64>>,
}

impl Order {
    pub(super) fn new(jobs: usize) -> Order {
        Order {
            ended: vec![None; jobs],
            ..Order::default()
        }
    }

    /// Has the jobs run together until now, and the new ones join them.
    fn advance(
        &mut self,
        view: &View<'_, '_>,
        estimator: &dyn Estimator,
        new: impl Iterator<Item = usize>,
    ) -> Result<(), FlowError> {
        while let Some(next) = self.first_end().filter(|end| *end <= view.now) {
            self.pass(next, view);
            self.share(view, estimator)?;
        }
        self.pass(view.now, view);
        self.jobs.extend(new.map(|job| Together {
            job,
            remaining: view.jobs[job].size,
            rate: 0.0,
        }));
        self.share(view, estimator)
    }

    fn first_end(&self) -> Option<f64> {
        let ends = self
            .jobs
            .iter()
            .map(|one| self.now + one.remaining / one.rate);
        ends.reduce(f64::min)
    }

    fn pass(&mut self, until: f64, view: &View<'_, '_>) {
        let span = until - self.now;
        let (now, ended) = (self.now, &mut self.ended);
        self.jobs.retain_mut(|one| {
            let last = now + one.remaining / one.rate <= until;
            one.remaining -= one.rate * span;
            let done = last || one.remaining <= view.jobs[one.job].size * super::run::DONE;
            if done {
                ended[one.job] = Some(until);
            }
            !done
        });
        self.now = until;
    }

    fn share(&mut self, view: &View<'_, '_>, estimator: &dyn Estimator) -> Result<(), FlowError> {
        let who = self.jobs.iter().map(|one| one.job);
        let rates = view
            .classes
            .rates(view.network, view.jobs, estimator, who)?;
        for (one, rate) in self.jobs.iter_mut().zip(rates) {
            one.rate = rate;
        }
        Ok(())
    }

    /// When each job would end: those that would have ended already first.
    fn ends(&self) -> Vec<f64> {
        let mut ends: Vec<f64> = (self.ended.iter())
            .map(|end| end.map_or(f64::INFINITY, |end| end - self.now))
            .collect();
        for one in &self.jobs {
            ends[one.job] = one.remaining / one.rate;
        }
        ends
    }

    /// Starts all that waits, and gives all jobs that run their rates: 0 to those that others are before.
    pub(super) fn decide(
        &mut self,
        view: &View<'_, '_>,
        estimator: &dyn Estimator,
        waiting: &mut Vec<usize>,
        running: &mut Vec<Running>,
    ) -> Result<(), FlowError> {
        self.advance(view, estimator, waiting.iter().copied())?;
        running.extend(waiting.drain(..).map(|job| view.start(job)));
        let ends = self.ends();
        running.sort_by(|a, b| ends[a.job].total_cmp(&ends[b.job]).then(a.job.cmp(&b.job)));
        let work = work(view, running);
        for _ in 0..REPAIRS {
            fill(view, running);
            let Some(edge) = starved(view, running, &work) else {
                break;
            };
            let flows = view.classes.flows().iter();
            let takes: Vec<bool> = flows
                .map(|flow| flow.path.iter().any(|at| at.index() == edge))
                .collect();
            let on = |job: &Running| takes[view.classes.of(job.job)];
            let most = running
                .iter()
                .filter(|job| on(job))
                .map(|job| job.remaining);
            let all: f64 = running
                .iter()
                .filter(|job| on(job))
                .map(|job| job.remaining)
                .sum();
            if most.fold(0.0, f64::max) > DOMINANT * all {
                break;
            }
            // Stable: among themselves they stay in order.
            running.sort_by_key(|job| !on(job));
        }
        Ok(())
    }
}

/// By edge: how long what is left takes.
fn work(view: &View<'_, '_>, running: &[Running]) -> Vec<f64> {
    let mut remaining = vec![0.0; view.classes.flows().len()];
    for job in running {
        remaining[view.classes.of(job.job)] += job.remaining;
    }
    let mut work = vec![0.0; view.network.edges().len()];
    for (flow, remaining) in view.classes.flows().iter().zip(remaining) {
        for (edge, cost) in flow.uses() {
            work[edge] += remaining * cost / view.network.edges()[edge].capacity();
        }
    }
    work
}

/// Gives each job in turn what its path has left, at most what it reaches alone.
fn fill(view: &View<'_, '_>, running: &mut [Running]) {
    let capacities = view.network.edges().iter().map(|edge| edge.capacity());
    let mut left: Vec<f64> = capacities.collect();
    // What is left only falls: where one of a class gets nothing, those behind it get nothing.
    let mut is_full = vec![false; view.classes.flows().len()];
    for job in running {
        let class = view.classes.of(job.job);
        job.rate = 0.0;
        if is_full[class] {
            continue;
        }
        let (flow, alone) = (&view.classes.flows()[class], view.alone[job.job]);
        let room = flow.uses().map(|(edge, cost)| left[edge] / cost);
        let rate = room.fold(alone, f64::min);
        // What rounding leaves of an edge is no rate.
        if rate <= alone * (1.0 - FULL) {
            is_full[class] = true;
            continue;
        }
        job.rate = rate;
        let sides = flow.sides.iter().map(|(edge, cost)| (edge.index(), *cost));
        for (edge, cost) in flow.uses().chain(sides) {
            left[edge] -= rate * cost;
        }
    }
}

/// An edge that has the most work and is not full, though a job on it gets nothing.
fn starved(view: &View<'_, '_>, running: &[Running], work: &[f64]) -> Option<usize> {
    let most = work.iter().copied().fold(0.0, f64::max);
    // By class: what its jobs get together, and whether one gets nothing.
    let mut rates = vec![(0.0, false); view.classes.flows().len()];
    for job in running {
        let (rate, waits) = &mut rates[view.classes.of(job.job)];
        *rate += job.rate;
        *waits |= job.rate == 0.0;
    }
    let mut used = vec![0.0; work.len()];
    let mut waits = vec![false; work.len()];
    for (flow, (rate, one_waits)) in view.classes.flows().iter().zip(rates) {
        for (edge, cost) in flow.uses() {
            used[edge] += rate * cost;
            waits[edge] |= one_waits;
        }
    }
    let edges = view.network.edges().iter().enumerate();
    let starved = edges.filter(|(index, edge)| {
        waits[*index] && work[*index] >= CRITICAL * most && used[*index] < FULL * edge.capacity()
    });
    starved
        .max_by(|(a, _), (b, _)| work[*a].total_cmp(&work[*b]))
        .map(|(index, _)| index)
}
