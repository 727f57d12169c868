//! The course of a schedule, as the estimator foresees it.

use std::collections::BTreeSet;

use crate::error::FlowError;
use crate::estimate::Estimator;
use crate::flows::Flows;
use crate::network::Network;

use super::classes::Classes;
use super::job::{self, Job};
use super::metrics::Metrics;
use super::order::Order;
use super::policy::{Policy, Running, View};

/// A part of a job that is sent at one pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// When it starts, seconds.
    pub start: f64,
    /// How much it moves.
    pub size: f64,
    /// The pace the sender keeps to; `None`: as fast as it goes.
    pub pace: Option<f64>,
}

/// What was decided for a job, and what the estimator foresees.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// When it was known: its arrival, or the end of the last job that it waits for. Seconds.
    pub known: f64,
    /// When it starts.
    pub start: f64,
    /// When it was promised to end: at the least rate that later admissions leave it. `None` if nothing was promised.
    pub promise: Option<f64>,
    /// When it ends, as the estimator foresees it.
    pub end: f64,
    /// What is sent when, and how fast.
    pub segments: Vec<Segment>,
}

/// A schedule of all jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// By job.
    pub jobs: Vec<Planned>,
    /// By job: its time alone on the fabric, seconds.
    pub alone: Vec<f64>,
}

impl Schedule {
    /// Metrics of what is foreseen.
    pub fn metrics(&self) -> Metrics {
        self.metrics_of(&self.jobs.iter().map(|job| job.end).collect::<Vec<f64>>())
    }

    /// Metrics if the jobs end when `ends` says.
    ///
    /// # Panics
    /// If a job ends before it is known.
    pub fn metrics_of(&self, ends: &[f64]) -> Metrics {
        let known: Vec<f64> = self.jobs.iter().map(|job| job.known).collect();
        Metrics::new(&known, ends, &self.alone)
    }
}

/// Part of its size at which a job is done: what rounding leaves.
pub(super) const DONE: f64 = 1e-12;

/// Runs `jobs` under `policy`, with `estimator` as what decisions rest on and what is foreseen. The policy
/// knows a job only from its arrival on.
pub fn schedule(
    network: &Network,
    jobs: &[Job],
    policy: Policy,
    estimator: &dyn Estimator,
) -> Result<Schedule, FlowError> {
    if let Policy::Guided { share } = policy
        && !(share > 0.0 && share <= 1.0)
    {
        return Err(FlowError::Share { value: share });
    }
    job::check(network, jobs)?;
    let alone = alone(network, jobs, estimator)?;
    let classes = Classes::new(jobs);
    let mut course = Course::new(jobs, &alone);
    let mut order = Order::new(jobs.len());
    while let Some(now) = course.next_event() {
        course.advance(now);
        let view = View {
            network,
            jobs,
            classes: &classes,
            alone: &alone,
            now,
            known: &course.known,
        };
        let (waiting, running) = (&mut course.waiting, &mut course.running);
        policy.decide(&view, estimator, waiting, running, &mut order)?;
        course.record(policy.paces());
        if course.running.is_empty() && !course.waiting.is_empty() {
            let job = course.waiting[0];
            return Err(FlowError::NeverAdmitted { job });
        }
    }
    let times = jobs
        .iter()
        .zip(&alone)
        .map(|(job, rate)| job.size / rate + job.latency)
        .collect();
    Ok(Schedule {
        jobs: course.planned,
        alone: times,
    })
}

fn alone(
    network: &Network,
    jobs: &[Job],
    estimator: &dyn Estimator,
) -> Result<Vec<f64>, FlowError> {
    jobs.iter()
        .map(|job| {
            let mut one = Flows::new(network);
            let id = one.push(&job.flow)?;
            Ok(estimator.estimate(&one)?.rate(id))
        })
        .collect()
}

/// Times as a set in order: floats that are not negative compare as their bits.
type Agenda = BTreeSet<(u64, usize)>;

struct Course<'a> {
    jobs: &'a [Job],
    alone: &'a [f64],
    now: f64,
    arrivals: Agenda,
    known: Vec<f64>,
    open: Vec<usize>,
    /// By job: its arrival, or the latest end of the jobs that it waits for.
    ready: Vec<f64>,
    followers: Vec<Vec<usize>>,
    waiting: Vec<usize>,
    running: Vec<Running>,
    started: Vec<bool>,
    /// By job: it has started, and sends nothing now.
    paused: Vec<bool>,
    planned: Vec<Planned>,
}

impl<'a> Course<'a> {
    fn new(jobs: &'a [Job], alone: &'a [f64]) -> Self {
        let mut followers = vec![Vec::new(); jobs.len()];
        for (index, job) in jobs.iter().enumerate() {
            for &after in &job.after {
                followers[after].push(index);
            }
        }
        let blank = Planned {
            known: 0.0,
            start: 0.0,
            promise: None,
            end: 0.0,
            segments: Vec::new(),
        };
        let first = jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| job.after.is_empty());
        Self {
            arrivals: first
                .map(|(index, job)| (bits(job.arrival), index))
                .collect(),
            known: vec![0.0; jobs.len()],
            open: jobs.iter().map(|job| job.after.len()).collect(),
            ready: jobs.iter().map(|job| job.arrival).collect(),
            followers,
            waiting: Vec::new(),
            running: Vec::new(),
            started: vec![false; jobs.len()],
            paused: vec![false; jobs.len()],
            planned: vec![blank; jobs.len()],
            now: 0.0,
            jobs,
            alone,
        }
    }

    fn next_event(&self) -> Option<f64> {
        let arrival = self.arrivals.first().map(|&(at, _)| f64::from_bits(at));
        let end = self
            .running
            .iter()
            .map(|job| self.now + job.remaining / job.rate)
            .reduce(f64::min);
        match (arrival, end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Moves what is moved until `now`, ends jobs, and makes known what arrives.
    fn advance(&mut self, now: f64) {
        let (before, span) = (self.now, now - self.now);
        self.now = now;
        let mut ended = Vec::new();
        self.running.retain_mut(|job| {
            // The job whose end this is counts as done whatever rounding says.
            let last = before + job.remaining / job.rate <= now;
            job.remaining -= job.rate * span;
            let done = last || job.remaining <= self.jobs[job.job].size * DONE;
            if done {
                ended.push(job.job);
            }
            !done
        });
        for job in ended {
            let end = now + self.jobs[job].latency;
            self.planned[job].end = end;
            for index in 0..self.followers[job].len() {
                let follower = self.followers[job][index];
                self.open[follower] -= 1;
                self.ready[follower] = self.ready[follower].max(end);
                if self.open[follower] == 0 {
                    let at = self.ready[follower];
                    self.arrivals.insert((bits(at), follower));
                }
            }
        }
        while let Some((at, job)) = self
            .arrivals
            .first()
            .copied()
            .filter(|&(at, _)| f64::from_bits(at) <= now)
        {
            self.arrivals.pop_first();
            self.known[job] = f64::from_bits(at);
            self.planned[job].known = self.known[job];
            self.waiting.push(job);
        }
    }

    /// Writes down what was decided.
    fn record(&mut self, paced: bool) {
        for running in &self.running {
            let planned = &mut self.planned[running.job];
            let paused = &mut self.paused[running.job];
            if running.rate == 0.0 {
                if let Some(last) = planned.segments.last_mut().filter(|_| !*paused) {
                    last.size -= running.remaining;
                    *paused = true;
                }
                continue;
            }
            if !self.started[running.job] {
                self.started[running.job] = true;
                planned.start = self.now;
                if running.promised > 0.0 {
                    let latency = self.jobs[running.job].latency;
                    let sent = self.now + running.remaining / running.promised;
                    planned.promise = Some(sent + latency);
                }
            }
            let pace = paced.then_some(running.rate);
            let resumes = std::mem::take(paused);
            match planned.segments.last_mut() {
                Some(last) if last.pace == pace && !resumes => {}
                Some(last) if !resumes && last.start == self.now => last.pace = pace,
                last => {
                    if let Some(last) = last.filter(|_| !resumes) {
                        last.size -= running.remaining;
                    }
                    planned.segments.push(Segment {
                        start: self.now,
                        size: running.remaining,
                        pace,
                    });
                }
            }
        }
        debug_assert_eq!(self.alone.len(), self.jobs.len());
    }
}

fn bits(time: f64) -> u64 {
    // Adding zero makes a negative zero positive.
    (time + 0.0).to_bits()
}
