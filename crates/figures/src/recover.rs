//! Parameters of a platform from measured points, each with an interval.
//!
//! What is known of a parameter before is its range: a normal distribution around its middle with the standard deviation
//! of a value that is anywhere in it, cut off at its ends. Points add to it what they say: the logarithm of a measured period
//! is that of the modelled one with a normal error. The model is no smooth function: a core looks for a completion now and
//! then, and the slower of two parts of a pipeline hides the other. So it is run for a cloud of machines around what is known,
//! each point is taken for a linear function of their parameters, and what that leaves is an error of the point more. What is
//! known then is the next cloud's. Of parameters that the points say nothing of, nothing more is known afterwards, and it is
//! said so.

mod matrix;
mod points;
mod together;

use std::sync::Arc;

use dray_device::Payload;
use dray_idxd::Profile;
use dray_platform::{Parameter, PlatformFile, Unit, WaitMode};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

use crate::model::Window;
use crate::workload::Workload;
use crate::{FiguresError, KnownRuns, Metric, Model};
use matrix::Matrix;
pub use points::PARAMETER_POINTS;
pub(crate) use points::parameter_points;
pub use together::RecoveredSum;

/// Clouds of machines, each around what the one before says.
const CLOUDS: usize = 6;
/// Machines of a cloud, for each parameter.
const MACHINES: usize = 3;
/// Standard deviation of a parameter that is anywhere in its range, in half of it.
const PRIOR: f64 = 0.577;
/// What keeps a line defined along which no machine differs.
const RIDGE: f64 = 1e-6;
/// Of a normal distribution, the ends of the interval that has 90 % of it.
const NINETY: f64 = 1.645;
/// A parameter is determined if the half of its interval is no more than this share of its value.
const DETERMINED: f64 = 0.05;
/// Standard deviation of a parameter after the points, in that before, below which they have said something of it.
const NARROWED: f64 = 0.5;
/// Standard deviation, as a share of a period, of what is no smooth function of the parameters.
const GRAIN: f64 = 0.004;
/// Standard deviation of a time that lies anywhere between two looks, in the time between them.
const BETWEEN_LOOKS: f64 = 0.289;
/// Least effect of a parameter over half its range on a point that counts, as a share of the period.
const EFFECT: f64 = 1e-3;

/// A point that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// What was done.
    pub workload: Workload,
    /// Time from one completion to the next.
    pub period_ns: f64,
    /// Standard deviation of that, as a share of it.
    pub deviation_share: f64,
}

/// A parameter after the points.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveredParameter {
    /// Name.
    pub name: &'static str,
    /// Unit of value and interval.
    pub unit: Unit,
    /// The most probable value.
    pub value: f64,
    /// It lies between these with a probability of 90 %.
    pub interval: [f64; 2],
    /// The interval is within 5 % of the value, and narrower than the range says.
    pub determined: bool,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// Parameters that some point depends on, in the order of platform files.
    pub parameters: Vec<RecoveredParameter>,
    /// Sums that the points determine, of parameters that they do not tell apart.
    pub sums: Vec<RecoveredSum>,
    /// Root mean square of the differences that remain, in standard deviations of the points. Well above 1, the
    /// model has not the mechanism of the machine; the intervals are wider by as much.
    pub misfit: f64,
}

/// The model at the points, as logarithms of periods.
struct Fit<'a> {
    platform: &'a PlatformFile,
    profile: &'a Profile,
    observations: &'a [Observation],
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl Fit<'_> {
    /// `values`: names and values that differ from the platform's.
    fn periods(&self, values: &[(&str, f64)], known: &KnownRuns) -> Result<Vec<f64>, FiguresError> {
        if !(self.go_on)() {
            return Err(FiguresError::Stopped);
        }
        let mut machine = self.platform.clone();
        for (name, value) in values {
            machine = machine.with(name, *value)?;
        }
        let model = Model {
            platform: Arc::new(machine),
            profile: self.profile.clone(),
            payload: Payload::Skipped,
            known: known.clone(),
        };
        let periods = self.observations.par_iter().map(|observed| {
            let metrics = model.run_for(&observed.workload, Window::Short)?;
            let period = metrics.get(Metric::Period).ok_or(FiguresError::NoMetric {
                table: "measured points".to_owned(),
                metric: Metric::Period.name(),
            })?;
            Ok(period.max(f64::MIN_POSITIVE).ln())
        });
        periods.collect()
    }
}

/// One parameter that is free: its value is `mean + u * deviation`.
#[derive(Debug, Clone)]
struct Free {
    parameter: Parameter,
    mean: f64,
    deviation: f64,
}

impl Free {
    fn of(parameter: &Parameter) -> Free {
        let [low, high] = parameter.range;
        Free {
            parameter: parameter.clone(),
            mean: f64::midpoint(low, high),
            deviation: (high - low) / 2.0,
        }
    }

    fn value(&self, u: f64) -> f64 {
        let [low, high] = self.parameter.range;
        (self.mean + u * self.deviation).clamp(low, high)
    }

    fn start(&self) -> f64 {
        (self.parameter.value - self.mean) / self.deviation
    }
}

/// Finds the parameters of `platform` that these points depend on. Counts of things are not looked for.
///
/// # Errors
/// A point that the model cannot run; `go_on` has said false.
pub fn recover(
    platform: &PlatformFile,
    profile: &Profile,
    observations: &[Observation],
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Recovered, FiguresError> {
    let fit = Fit {
        platform,
        profile,
        observations,
        go_on,
    };
    let free = free(&fit)?;
    let measured: Vec<f64> = observations.iter().map(|o| o.period_ns.ln()).collect();
    let search = Search {
        fit: &fit,
        free: &free,
        measured: &measured,
        variances: &variances(platform, observations),
    };
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut known = Known {
        mean: free.iter().map(Free::start).collect(),
        covariance: Matrix::identity(free.len()).scaled(PRIOR * PRIOR),
    };
    for _ in 0..CLOUDS {
        let cloud = search.cloud(&known, &mut random)?;
        known = search.after(&known, &cloud, 1.0);
    }
    let cloud = search.cloud(&known, &mut random)?;
    let misfit = search.misfit(&cloud);
    let known = search.after(&known, &cloud, misfit.max(1.0));
    let sums = together::sums(&free, &known);
    let parameters = (0..free.len()).map(|n| {
        let deviation = known.covariance.at(n, n).sqrt();
        recovered(&free[n], known.mean[n], deviation)
    });
    Ok(Recovered {
        parameters: parameters.collect(),
        sums,
        misfit,
    })
}

/// No further outside of the range than its end.
fn bounded(u: f64) -> f64 {
    u.clamp(-1.0, 1.0)
}

/// Parameters that some point depends on.
fn free(fit: &Fit<'_>) -> Result<Vec<Free>, FiguresError> {
    let known = KnownRuns::default();
    let base = fit.periods(&[], &known)?;
    let mut found = Vec::new();
    for parameter in fit.platform.list() {
        let [low, high] = parameter.range;
        if parameter.unit == Unit::Count || low >= high {
            continue;
        }
        let mut depends = false;
        for end in [low, high] {
            let there = fit.periods(&[(parameter.name, end)], &known)?;
            let mut pairs = base.iter().zip(&there);
            depends |= pairs.any(|(a, b)| (a - b).abs() > EFFECT);
        }
        if depends {
            found.push(Free::of(parameter));
        }
    }
    Ok(found)
}

fn modelled(
    fit: &Fit<'_>,
    free: &[Free],
    u: &[f64],
    known: &KnownRuns,
) -> Result<Vec<f64>, FiguresError> {
    let values = free.iter().zip(u);
    let values: Vec<(&str, f64)> = values
        .map(|(f, u)| (f.parameter.name, f.value(*u)))
        .collect();
    fit.periods(&values, known)
}

/// The variance of each point. A core that waits for one operation sees its end up to a look late.
fn variances(platform: &PlatformFile, observations: &[Observation]) -> Vec<f64> {
    let value = |name: &str| {
        let mut list = platform.list().iter();
        list.find(|p| p.name == name).map_or(0.0, |p| p.value)
    };
    let (poll, pause) = (value("poll"), value("pause"));
    let variance = |observed: &Observation| {
        let between_looks = match (observed.workload.depth, observed.workload.wait) {
            (Some(1), WaitMode::Poll) => poll,
            (Some(1), WaitMode::Pause) => pause,
            _ => 0.0,
        };
        let late = BETWEEN_LOOKS * between_looks / observed.period_ns.max(f64::MIN_POSITIVE);
        observed.deviation_share.powi(2) + late.powi(2) + GRAIN.powi(2)
    };
    observations.iter().map(variance).collect()
}

/// A cloud of machines, and what each point is as a linear function of their parameters.
struct Cloud {
    /// For each parameter, what it does to each point.
    slopes: Vec<Vec<f64>>,
    /// Each point in the middle of the cloud.
    at: Vec<f64>,
    /// Variance of each point that the line leaves: steps, edges, curves.
    left: Vec<f64>,
}

/// What is known of the parameters.
#[derive(Debug, Clone)]
struct Known {
    mean: Vec<f64>,
    covariance: Matrix,
}

/// The search.
struct Search<'a> {
    fit: &'a Fit<'a>,
    free: &'a [Free],
    measured: &'a [f64],
    variances: &'a [f64],
}

impl Search<'_> {
    fn cloud(&self, known: &Known, random: &mut ChaCha8Rng) -> Result<Cloud, FiguresError> {
        let count = self.free.len();
        let spread = known.covariance.triangle();
        let machines: Vec<Vec<f64>> = (0..MACHINES * count)
            .map(|_| {
                let steps: Vec<f64> = (0..count).map(|_| normal(random)).collect();
                let moved = spread.times(&steps);
                known
                    .mean
                    .iter()
                    .zip(moved)
                    .map(|(u, s)| bounded(u + s))
                    .collect()
            })
            .collect();
        let at = |u: &Vec<f64>| modelled(self.fit, self.free, u, &KnownRuns::default());
        let found: Result<Vec<Vec<f64>>, FiguresError> = machines.par_iter().map(at).collect();
        Ok(line(&known.mean, &machines, &found?))
    }

    /// What is known after the points, if they are what the cloud says. `wider` multiplies their deviations.
    fn after(&self, known: &Known, cloud: &Cloud, wider: f64) -> Known {
        let count = self.free.len();
        let weights: Vec<f64> = self.weights(cloud, wider).collect();
        let mut information = Matrix::identity(count);
        for n in 0..count {
            information.add(n, n, PRIOR.powi(-2) - 1.0);
        }
        let mut right = vec![0.0; count];
        for (row, a) in cloud.slopes.iter().enumerate() {
            for (column, b) in cloud.slopes.iter().enumerate() {
                let pairs = a.iter().zip(b).zip(&weights);
                information.add(row, column, pairs.map(|((a, b), w)| a * b * w).sum());
            }
            let errors = self.measured.iter().zip(&cloud.at).zip(a).zip(&weights);
            right[row] = errors
                .map(|(((m, at), s), w)| (m - at) * s * w)
                .sum::<f64>()
                - known.mean[row] * PRIOR.powi(-2);
        }
        let step = information.solve(&right);
        let moved = known.mean.iter().zip(step);
        Known {
            mean: moved.map(|(u, s)| bounded(u + s)).collect(),
            covariance: information.inverse(),
        }
    }

    fn weights<'b>(&'b self, cloud: &'b Cloud, wider: f64) -> impl Iterator<Item = f64> + 'b {
        let both = self.variances.iter().zip(&cloud.left);
        both.map(move |(own, left)| ((own + left) * wider * wider).recip())
    }

    /// Root mean square of the errors in the middle of a cloud, in standard deviations.
    fn misfit(&self, cloud: &Cloud) -> f64 {
        let errors = self
            .measured
            .iter()
            .zip(&cloud.at)
            .zip(self.weights(cloud, 1.0));
        let errors: f64 = errors.map(|((m, a), w)| (m - a).powi(2) * w).sum();
        (errors / self.measured.len().max(1) as f64).sqrt()
    }
}

/// The line through what was found, by least squares.
fn line(mean: &[f64], machines: &[Vec<f64>], found: &[Vec<f64>]) -> Cloud {
    let (count, points) = (mean.len(), found.first().map_or(0, Vec::len));
    // The last column is the value in the middle.
    let row = |machine: &Vec<f64>| -> Vec<f64> {
        let away = machine.iter().zip(mean).map(|(u, m)| u - m);
        away.chain([1.0]).collect()
    };
    let rows: Vec<Vec<f64>> = machines.iter().map(row).collect();
    let mut normal = Matrix::identity(count + 1);
    for n in 0..=count {
        normal.add(n, n, RIDGE - 1.0);
    }
    for row in &rows {
        for (i, a) in row.iter().enumerate() {
            for (j, b) in row.iter().enumerate() {
                normal.add(i, j, a * b);
            }
        }
    }
    let inverse = normal.inverse();
    let mut cloud = Cloud {
        slopes: vec![vec![0.0; points]; count],
        at: vec![0.0; points],
        left: vec![0.0; points],
    };
    let freedom = rows.len().saturating_sub(count + 1).max(1) as f64;
    for point in 0..points {
        let mut right = vec![0.0; count + 1];
        for (row, found) in rows.iter().zip(found) {
            for (right, a) in right.iter_mut().zip(row) {
                *right += a * found[point];
            }
        }
        let solved = inverse.times(&right);
        let errors = rows.iter().zip(found).map(|(row, found)| {
            let on_line: f64 = row.iter().zip(&solved).map(|(a, s)| a * s).sum();
            (found[point] - on_line).powi(2)
        });
        cloud.left[point] = errors.sum::<f64>() / freedom;
        cloud.at[point] = solved[count];
        for (slopes, slope) in cloud.slopes.iter_mut().zip(&solved) {
            slopes[point] = *slope;
        }
    }
    cloud
}

/// Anywhere from 0 to 1.
fn uniform(random: &mut ChaCha8Rng) -> f64 {
    f64::from(random.next_u32()) / f64::from(u32::MAX)
}

/// Nearly normal: the sum of twelve.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

fn recovered(free: &Free, u: f64, deviation: f64) -> RecoveredParameter {
    let [low, high] = free.parameter.range;
    let value = free.value(u);
    let half = NINETY * deviation * free.deviation;
    let interval = [(value - half).max(low), (value + half).min(high)];
    RecoveredParameter {
        name: free.parameter.name,
        unit: free.parameter.unit,
        value,
        interval,
        determined: is_determined(deviation, half, value),
    }
}

/// Whether a deviation, in halves of a range, and the half of an interval say much of a value.
fn is_determined(deviation: f64, half: f64, value: f64) -> bool {
    deviation < NARROWED * PRIOR && half <= DETERMINED * value
}

#[cfg(test)]
mod tests;
