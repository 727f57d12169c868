//! Some points of some figures, on one work queue as it is configured, within a time.

use std::collections::HashSet;
use std::path::Path;

use dray_idxd::Profile;

use super::{DeviceBench, DeviceRequest, configured_queue, missing};
use crate::recover::parameter_points;
use crate::workload::Workload;
use crate::{FiguresError, Metrics, Protocol, experiments};

/// A point of a figure that a queue can be measured at as it is configured.
#[derive(Debug, Clone)]
pub struct QueuePoint {
    /// Figure.
    pub figure: String,
    /// The point, as results name it.
    pub point: String,
    /// What is done.
    pub workload: Workload,
}

/// Points of these figures that a queue with this profile can be measured at, at most `most` of each, and those that tell
/// [parameters](crate::recover) apart, as a figure `parameters`; the figures take turns. Of points that are the same in two
/// figures, the first.
///
/// # Errors
/// A figure that cannot be read.
pub fn queue_points(
    profile: &Profile,
    figures: &[&str],
    most: usize,
) -> Result<Vec<QueuePoint>, FiguresError> {
    let here = super::here();
    let devices = profile.devices()?;
    let queue = devices
        .first()
        .and_then(|device| device.work_queues.first());
    let queue = queue.ok_or(FiguresError::NoWorkQueue)?;
    // A member of a batch does not travel in parts.
    let takes = |w: &Workload| {
        w.batch <= 1
            || (w.batch <= queue.max_batch_size && u64::from(w.size) <= queue.max_transfer_size)
    };
    let mut seen = HashSet::new();
    let mut by_figure = Vec::new();
    for experiment in experiments(Protocol::Paper)? {
        if !figures.contains(&experiment.id.as_str()) {
            continue;
        }
        let mut points = Vec::new();
        for point in experiment.points() {
            let workload = Workload::from_point(&point)?;
            let missing = missing::missing(&workload, profile, here, true);
            if missing.is_none() && takes(&workload) && seen.insert(workload) {
                points.push(QueuePoint {
                    figure: experiment.id.clone(),
                    point: point.to_string(),
                    workload,
                });
            }
        }
        let step = points.len().div_ceil(most).max(1);
        by_figure.push(
            points
                .into_iter()
                .step_by(step)
                .collect::<Vec<_>>()
                .into_iter(),
        );
    }
    let mut telling = Vec::new();
    for (point, workload) in parameter_points()? {
        let missing = missing::missing(&workload, profile, here, true);
        if missing.is_none() && takes(&workload) && seen.insert(workload) {
            telling.push(QueuePoint {
                figure: "parameters".to_owned(),
                point,
                workload,
            });
        }
    }
    by_figure.push(telling.into_iter());
    let mut all = Vec::new();
    loop {
        let turn: Vec<QueuePoint> = by_figure.iter_mut().filter_map(Iterator::next).collect();
        if turn.is_empty() {
            return Ok(all);
        }
        all.extend(turn);
    }
}

/// Measures points on a queue as it is configured, until `go_on` says no, which is asked before each with the number
/// of those that are done. Raw samples are appended to the file `samples`. `None` are points that were not reached; of
/// one with operations that failed, how many.
///
/// # Errors
/// The queue cannot be used; operations that never end.
pub fn measure_points(
    queue: &str,
    points: &[QueuePoint],
    samples: &Path,
    go_on: &(dyn Fn(usize) -> bool + Sync),
) -> Result<Vec<Option<Result<Metrics, u64>>>, FiguresError> {
    let profile = configured_queue(queue)?;
    let request = DeviceRequest {
        queue: Some(queue.to_owned()),
        // Nothing is configured.
        state: samples.to_owned(),
    };
    let measure = || -> Result<Vec<Option<Result<Metrics, u64>>>, FiguresError> {
        let mut bench = DeviceBench::new(&request, samples)?;
        let mut found = vec![None; points.len()];
        for (n, (point, found)) in points.iter().zip(&mut found).enumerate() {
            if !go_on(n) {
                break;
            }
            let (figure, name) = (&point.figure, &point.point);
            *found = match bench.run(&profile, &point.workload, figure, name) {
                Ok(metrics) => Some(Ok(metrics)),
                Err(FiguresError::Failed { operations }) => Some(Err(operations)),
                Err(failure) => return Err(bench.abandon(failure)),
            };
        }
        bench.finish(super::NotMeasured::default())?;
        Ok(found)
    };
    // It may be pinned.
    std::thread::scope(|scope| match scope.spawn(measure).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
