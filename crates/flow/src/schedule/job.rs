//! What is to be moved, and from when on.

use crate::error::FlowError;
use crate::flows::Flow;
use crate::network::{MAX, MIN, Network};

/// So many bytes along a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its path, and what it reaches alone.
    pub flow: Flow,
    /// How much it moves, in the unit of rates times seconds.
    pub size: f64,
    /// When it is known, in seconds.
    pub arrival: f64,
    /// Indices of jobs that must end before it is known.
    pub after: Vec<usize>,
    /// From when its last byte was sent to when that has arrived, in seconds.
    pub latency: f64,
}

impl Job {
    /// A job that waits for no other, on a path without latency.
    pub fn new(flow: Flow, size: f64, arrival: f64) -> Self {
        Self {
            flow,
            size,
            arrival,
            after: Vec::new(),
            latency: 0.0,
        }
    }
}

/// Checks all jobs; a job that waits for itself, through others or not, is refused.
pub(super) fn check(network: &Network, jobs: &[Job]) -> Result<(), FlowError> {
    for (index, job) in jobs.iter().enumerate() {
        job.flow.check(network, index)?;
        let refuse = |field, value, min| {
            Err(FlowError::Value {
                flow: index,
                field,
                value,
                min,
                max: MAX,
            })
        };
        if !(MIN..=MAX).contains(&job.size) {
            return refuse("size", job.size, MIN);
        }
        if !(0.0..=MAX).contains(&job.arrival) {
            return refuse("arrival", job.arrival, 0.0);
        }
        if !(0.0..=MAX).contains(&job.latency) {
            return refuse("latency", job.latency, 0.0);
        }
        if let Some(&after) = job.after.iter().find(|&&after| after >= jobs.len()) {
            return Err(FlowError::NoSuchFlow { flow: after });
        }
    }
    let mut open: Vec<usize> = jobs.iter().map(|job| job.after.len()).collect();
    let mut followers = vec![Vec::new(); jobs.len()];
    for (index, job) in jobs.iter().enumerate() {
        for &after in &job.after {
            followers[after].push(index);
        }
    }
    let mut ready: Vec<usize> = (0..jobs.len()).filter(|&job| open[job] == 0).collect();
    let mut ended = 0;
    while let Some(job) = ready.pop() {
        ended += 1;
        for &follower in &followers[job] {
            open[follower] -= 1;
            if open[follower] == 0 {
                ready.push(follower);
            }
        }
    }
    match open.iter().position(|&count| count > 0) {
        Some(job) if ended < jobs.len() => Err(FlowError::Cycle { job }),
        _ => Ok(()),
    }
}
