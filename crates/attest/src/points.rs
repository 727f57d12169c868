//! Points of the five figures on the queue as it is configured, beside the model, and parameters fitted to them.

use std::time::Instant;

use dray_figures::{
    FiguresError, Metric, Metrics, Model, Observation, PARAMETER_POINTS, QueuePoint,
    configured_queue, measure_points, queue_points, recover,
};
use dray_idxd::Profile;
use dray_platform::PlatformFile;
use serde::{Deserialize, Serialize};

use crate::AttestError;

/// The figures that points are of.
const FIGURES: [&str; 5] = ["fig2", "fig3", "fig4", "fig6a", "fig7"];
/// Points of one figure at most.
const EACH: usize = 12;
/// The model's own error, which no repetition of a measurement shows: the median beside published tables.
const MODEL_SHARE: f64 = 0.02;
/// Of nine runs, the second and the eighth are so many standard deviations apart.
const BETWEEN: f64 = 1.864;
/// Standard deviation of the median of nine runs, in that of a run.
const OF_MEDIAN: f64 = 0.417;

/// A point, measured and modelled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// Figure.
    pub figure: String,
    /// What was done.
    pub point: String,
    /// Time from one completion to the next: the median of nine runs.
    pub period_ns: f64,
    /// The shortest of them but one.
    pub period_low_ns: f64,
    /// The longest of them but one.
    pub period_high_ns: f64,
    /// From submission to completion seen.
    pub latency_ns: Option<f64>,
    /// Payload, 1e9 bytes a second.
    pub throughput_gbps: Option<f64>,
    /// The period on the modelled machine; the model divides no transfers that are above the queue's limit.
    pub modelled_period_ns: Option<f64>,
}

/// Points that were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Points {
    /// The machine that is modelled beside them.
    pub platform: String,
    /// Points that there was no time for.
    pub not_reached: usize,
    /// Points with operations that did not succeed.
    pub failed: Vec<String>,
    /// The others.
    pub measured: Vec<PointResult>,
}

/// Parameters of a platform file, fitted to the points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The platform that the fit started from; all else is as there.
    pub platform: String,
    /// Root mean square of the differences that remain, in standard deviations of the points.
    pub misfit: f64,
    /// Parameters that some point depends on.
    pub parameters: Vec<CalibratedParameter>,
}

/// A parameter with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibratedParameter {
    /// Name in platform files; the names of a sum that no point tells apart, with ` + ` between.
    pub name: String,
    /// Unit of the numbers.
    pub unit: String,
    /// The most probable value.
    pub value: f64,
    /// The lower end of the interval that has it with a probability of 90 %.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The points determine it within 5 %; the others have little more than what the platform file says of the range.
    pub determined: bool,
    /// The platform's value.
    pub platform_value: f64,
}

/// Points at most.
pub(crate) const fn most() -> usize {
    FIGURES.len() * EACH + PARAMETER_POINTS
}

/// Measures points until `until`. `told` is called before each and returns false to stop.
pub(crate) fn measure(
    queue: &str,
    until: Instant,
    told: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Result<(Points, Option<Calibration>), AttestError> {
    let profile = configured_queue(queue)?;
    let platform = platform(&profile)?;
    let points = queue_points(&profile, &FIGURES, EACH)?;
    let directory = tempfile::tempdir().map_err(|source| AttestError::Samples { source })?;
    let samples = directory.path().join("samples");
    let go_on = |n: usize| Instant::now() < until && told(n, points.len());
    let found = measure_points(queue, &points, &samples, &go_on)?;
    if !told(points.len(), points.len()) {
        return Err(AttestError::Interrupted);
    }
    let model = Model::new(platform.clone(), profile.clone());
    let mut measured = Vec::new();
    let mut observations = Vec::new();
    let mut failed = Vec::new();
    let reached = points.iter().zip(&found);
    for (point, found) in reached.filter_map(|(p, m)| Some((p, m.as_ref()?))) {
        let metrics = match found {
            Ok(metrics) => metrics,
            Err(operations) => {
                let (figure, name) = (&point.figure, &point.point);
                failed.push(format!(
                    "{figure}, {name}: {operations} operations did not succeed"
                ));
                continue;
            }
        };
        let Some(result) = result(point, metrics, &model)? else {
            continue;
        };
        if result.modelled_period_ns.is_some() {
            observations.push(observation(point, &result));
        }
        measured.push(result);
    }
    let calibration = match observations.is_empty() {
        true => None,
        false => Some(calibration(&platform, &profile, &observations, &|| {
            told(points.len(), points.len())
        })?),
    };
    let points = Points {
        platform: platform.name.clone(),
        not_reached: found.iter().filter(|found| found.is_none()).count(),
        failed,
        measured,
    };
    Ok((points, calibration))
}

/// The platform that stands for a device of this version.
fn platform(profile: &Profile) -> Result<PlatformFile, AttestError> {
    let version = profile.device_profiles().first().and_then(|d| d.version);
    let name = match version.unwrap_or(0x100) {
        0x200.. => "dsa2-2s",
        _ => "spr-2s",
    };
    let platform = dray_platform::builtin(name).map_err(dray_figures::FiguresError::from);
    Ok(platform?)
}

fn result(
    point: &QueuePoint,
    metrics: &Metrics,
    model: &Model,
) -> Result<Option<PointResult>, AttestError> {
    let modelled_period_ns = match model.run(&point.workload) {
        Ok(modelled) => modelled.get(Metric::Period),
        Err(error) if error.is_bad_input() => None,
        Err(error) => return Err(error.into()),
    };
    let Some(period_ns) = metrics.get(Metric::Period) else {
        return Ok(None);
    };
    Ok(Some(PointResult {
        figure: point.figure.clone(),
        point: point.point.clone(),
        period_ns,
        period_low_ns: metrics.get(Metric::PeriodLow).unwrap_or(period_ns),
        period_high_ns: metrics.get(Metric::PeriodHigh).unwrap_or(period_ns),
        latency_ns: metrics.get(Metric::Latency),
        throughput_gbps: metrics.get(Metric::Throughput),
        modelled_period_ns,
    }))
}

fn observation(point: &QueuePoint, result: &PointResult) -> Observation {
    let between = (result.period_high_ns - result.period_low_ns).max(0.0);
    let noise = between / BETWEEN * OF_MEDIAN / result.period_ns.max(f64::MIN_POSITIVE);
    Observation {
        workload: point.workload,
        period_ns: result.period_ns,
        deviation_share: noise.hypot(MODEL_SHARE),
    }
}

fn calibration(
    platform: &PlatformFile,
    profile: &Profile,
    observations: &[Observation],
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Calibration, AttestError> {
    let found = recover(platform, profile, observations, go_on);
    let found = found.map_err(|error| match error {
        FiguresError::Stopped => AttestError::Interrupted,
        error => error.into(),
    })?;
    let value = |names: &[&str]| {
        let list = platform.list().iter();
        let named = list.filter(|p| names.contains(&p.name));
        named.map(|p| p.value).sum()
    };
    let parameters = found.parameters.iter().map(|p| CalibratedParameter {
        name: p.name.to_owned(),
        unit: p.unit.name().to_owned(),
        value: p.value,
        low: p.interval[0],
        high: p.interval[1],
        determined: p.determined,
        platform_value: value(&[p.name]),
    });
    let sums = found.sums.iter().map(|s| CalibratedParameter {
        name: s.names.join(" + "),
        unit: s.unit.name().to_owned(),
        value: s.value,
        low: s.interval[0],
        high: s.interval[1],
        determined: true,
        platform_value: value(&s.names),
    });
    Ok(Calibration {
        platform: platform.name.clone(),
        misfit: found.misfit,
        parameters: parameters.chain(sums).collect(),
    })
}
