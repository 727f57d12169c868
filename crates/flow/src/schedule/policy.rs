//! Which jobs start now.

use crate::error::FlowError;
use crate::estimate::Estimator;
use crate::network::Network;

use super::classes::Classes;
use super::job::Job;
use super::order::Order;

/// How jobs are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Every job starts as it arrives, unpaced.
    StartAll,
    /// In order of arrival; a job starts when no job before it is left on any of its edges, unpaced. Those behind it wait.
    FirstCome,
    /// In the order in which the jobs would end if all ran at once, paced: each gets what those before it leave of its path.
    /// What waits for others goes on later.
    Ordered,
    /// The job with the highest response ratio first ((wait + time alone) / time alone). It starts if the estimator gives it
    /// at least this share of what it reaches alone, and leaves every running job what it was promised. Running
    /// jobs are paced to their estimated rates. An estimator that gives more than the fabric carries breaks promises: its jobs
    /// still run when the plan has others take their place.
    Guided {
        /// From above 0 to 1.
        share: f64,
    },
}

/// Waiting jobs that are looked at for one decision.
const CANDIDATES: usize = 64;

/// A job that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) job: usize,
    pub(super) remaining: f64,
    pub(super) rate: f64,
    /// The rate that later admissions leave it.
    pub(super) promised: f64,
}

/// What a decision is made from.
pub(super) struct View<'a, 'n> {
    pub(super) network: &'n Network,
    pub(super) jobs: &'a [Job],
    pub(super) classes: &'a Classes,
    /// By job: what it reaches alone.
    pub(super) alone: &'a [f64],
    pub(super) now: f64,
    /// When each job became known.
    pub(super) known: &'a [f64],
}

impl Policy {
    /// The word for it on the command line and in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::StartAll => "start-all",
            Self::FirstCome => "first-come",
            Self::Ordered => "ordered",
            Self::Guided { .. } => "guided",
        }
    }

    pub(super) fn paces(&self) -> bool {
        matches!(self, Self::Guided { .. } | Self::Ordered)
    }

    /// Moves jobs from `waiting`, which is in order of arrival, to `running`, whose rates are then those of the
    /// estimator.
    pub(super) fn decide(
        &self,
        view: &View<'_, '_>,
        estimator: &dyn Estimator,
        waiting: &mut Vec<usize>,
        running: &mut Vec<Running>,
        order: &mut Order,
    ) -> Result<(), FlowError> {
        match *self {
            Self::Ordered => return order.decide(view, estimator, waiting, running),
            Self::StartAll => {
                running.extend(waiting.drain(..).map(|job| view.start(job)));
            }
            Self::FirstCome => {
                let mut busy = vec![false; view.network.edges().len()];
                for job in running.iter() {
                    view.occupy(job.job, &mut busy);
                }
                let free = waiting
                    .iter()
                    .take_while(|&&job| view.occupy(job, &mut busy))
                    .count();
                running.extend(waiting.drain(..free).map(|job| view.start(job)));
            }
            Self::Guided { share } => return view.admit(share, estimator, waiting, running),
        }
        view.rates(estimator, running)
    }
}

impl View<'_, '_> {
    pub(super) fn start(&self, job: usize) -> Running {
        Running {
            job,
            remaining: self.jobs[job].size,
            rate: 0.0,
            promised: 0.0,
        }
    }

    /// Takes the edges of a job if all are free.
    fn occupy(&self, job: usize, busy: &mut [bool]) -> bool {
        let path = &self.jobs[job].flow.path;
        if path.iter().any(|edge| busy[edge.index()]) {
            return false;
        }
        path.iter().for_each(|edge| busy[edge.index()] = true);
        true
    }

    /// Sets the rates of the running jobs to the estimate.
    pub(super) fn rates(
        &self,
        estimator: &dyn Estimator,
        running: &mut [Running],
    ) -> Result<(), FlowError> {
        let who = running.iter().map(|job| job.job);
        let rates = self
            .classes
            .rates(self.network, self.jobs, estimator, who)?;
        for (job, rate) in running.iter_mut().zip(rates) {
            job.rate = rate;
        }
        Ok(())
    }

    fn admit(
        &self,
        share: f64,
        estimator: &dyn Estimator,
        waiting: &mut Vec<usize>,
        running: &mut Vec<Running>,
    ) -> Result<(), FlowError> {
        self.rates(estimator, running)?;
        let ratio = |job: usize| {
            let service = self.jobs[job].size / self.alone[job];
            (self.now - self.known[job]) / service
        };
        let service = |job: usize| self.jobs[job].size / self.alone[job];
        let mut candidates = waiting.clone();
        candidates.sort_by(|&a, &b| {
            ratio(b)
                .total_cmp(&ratio(a))
                .then(service(a).total_cmp(&service(b)))
        });
        candidates.truncate(CANDIDATES);
        let mut loads = vec![0.0; self.network.edges().len()];
        for job in running.iter() {
            self.load(&mut loads, job.job, job.promised);
        }
        for job in candidates {
            let wanted = share * self.alone[job];
            // The promises alone leave too little: no need to ask the estimator.
            let room = self.jobs[job].flow.uses().all(|(edge, cost)| {
                self.network.edges()[edge].capacity() * (1.0 + TOLERANCE)
                    >= loads[edge] + wanted * cost
            });
            if !room {
                continue;
            }
            let mut with = running.clone();
            with.push(self.start(job));
            self.rates(estimator, &mut with)?;
            let kept = with
                .iter()
                .all(|job| job.rate >= job.promised * (1.0 - TOLERANCE));
            let got = with.last().map_or(0.0, |job| job.rate);
            if kept && got >= wanted * (1.0 - TOLERANCE) {
                if let Some(new) = with.last_mut() {
                    new.promised = wanted.min(got);
                }
                self.load(&mut loads, job, wanted.min(got));
                *running = with;
                waiting.retain(|&other| other != job);
            }
        }
        Ok(())
    }

    fn load(&self, loads: &mut [f64], job: usize, rate: f64) {
        for (edge, cost) in self.jobs[job].flow.uses() {
            loads[edge] += rate * cost;
        }
    }
}

const TOLERANCE: f64 = 1e-9;
