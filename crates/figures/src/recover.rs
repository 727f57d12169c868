//! Parameters of a platform from measured points, each with an interval.
//!
//! What is known of a parameter before is its range: a normal distribution around its middle, whose standard deviation
//! is half of it, cut off at its ends. Points add to it what they say: the logarithm of a measured period is that of the modelled
//! one with a normal error. The most probable values are found by Gauss and Newton's method, with the model's
//! derivatives by differences; the intervals are those of the normal distribution with the second derivatives there.
//! Of parameters that the points say nothing of, nothing more is known afterwards, and it is said so.

mod matrix;

use std::sync::Arc;

use dray_device::Payload;
use dray_idxd::Profile;
use dray_platform::{Parameter, PlatformFile, Unit};
use rayon::prelude::*;

use crate::model::Window;
use crate::workload::Workload;
use crate::{FiguresError, KnownRuns, Metric, Model};
use matrix::Matrix;

/// Steps of the search with deviations of one width; it ends earlier where nothing gets better.
const STEPS: usize = 5;
/// The deviations of the points, times what they are.
const WIDER: [f64; 2] = [4.0, 1.0];
/// Share of a range by which a parameter is changed for its derivative.
const DIFFERENCE: f64 = 0.15;
/// Of a normal distribution, the ends of the interval that has 90 % of it.
const NINETY: f64 = 1.645;
/// A parameter is determined if the half of its interval is no more than this share of its value.
const DETERMINED: f64 = 0.05;
/// Standard deviation, as a share of a period, of what is no smooth function of the parameters: a core that polls sees
/// a completion up to one look late.
const GRAIN: f64 = 0.008;
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

    /// Where the derivative is taken: on both sides, within the range.
    fn around(&self, u: f64) -> [f64; 2] {
        let step = 2.0 * DIFFERENCE;
        [(u - step).max(-1.0), (u + step).min(1.0)]
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
    };
    let Found { u, at, .. } = search.from(free.iter().map(Free::start).collect())?;
    let slopes = slopes(&fit, &free, &u)?;
    let misfit = misfit(&measured, &at, observations);
    let information = information(&slopes, observations, misfit.max(1.0), 0.0);
    let covariance = information.inverse();
    let parameters = (0..free.len()).map(|n| recovered(&free[n], u[n], covariance.at(n, n).sqrt()));
    Ok(Recovered {
        parameters: parameters.collect(),
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

/// For each parameter, the derivative of each point.
fn slopes(fit: &Fit<'_>, free: &[Free], u: &[f64]) -> Result<Vec<Vec<f64>>, FiguresError> {
    // A point that does not read a parameter is the same at both of its ends as it is here.
    let known = KnownRuns::default();
    modelled(fit, free, u, &known)?;
    let slope = |n: usize| {
        let ends = free[n].around(u[n]);
        let end = |value: f64| {
            let mut there = u.to_vec();
            there[n] = value;
            modelled(fit, free, &there, &known)
        };
        let (low, high) = (end(ends[0])?, end(ends[1])?);
        let between = ends[1] - ends[0];
        let pairs = low.iter().zip(&high);
        Ok(pairs.map(|(low, high)| (high - low) / between).collect())
    };
    (0..free.len()).into_par_iter().map(slope).collect()
}

fn weight(observed: &Observation) -> f64 {
    observed.deviation_share.hypot(GRAIN).powi(-2)
}

fn misfit(measured: &[f64], at: &[f64], observations: &[Observation]) -> f64 {
    let errors = measured.iter().zip(at).zip(observations);
    let errors: f64 = errors.map(|((m, a), o)| (m - a).powi(2) * weight(o)).sum();
    (errors / observations.len().max(1) as f64).sqrt()
}

/// What is known afterwards: the range's 1, and what the points add. The deviations of the points are `wider` times
/// theirs; `damping` adds a share of the diagonal.
fn information(
    slopes: &[Vec<f64>],
    observations: &[Observation],
    wider: f64,
    damping: f64,
) -> Matrix {
    let mut matrix = Matrix::identity(slopes.len());
    for (row, a) in slopes.iter().enumerate() {
        for (column, b) in slopes.iter().enumerate() {
            let pairs = a.iter().zip(b).zip(observations);
            let sum: f64 = pairs.map(|((a, b), o)| a * b * weight(o)).sum();
            matrix.add(row, column, sum / (wider * wider));
        }
    }
    for n in 0..slopes.len() {
        matrix.add(n, n, damping * matrix.at(n, n));
    }
    matrix
}

/// The search of Levenberg and Marquardt.
struct Search<'a> {
    fit: &'a Fit<'a>,
    free: &'a [Free],
    measured: &'a [f64],
}

/// Where a search has ended.
struct Found {
    u: Vec<f64>,
    at: Vec<f64>,
    objective: f64,
}

impl Search<'_> {
    /// From wide deviations of the points to theirs: the model has edges, at which a narrow search stops.
    fn from(&self, u: Vec<f64>) -> Result<Found, FiguresError> {
        let at = modelled(self.fit, self.free, &u, &KnownRuns::default())?;
        let mut found = Found {
            objective: f64::INFINITY,
            u,
            at,
        };
        for wider in WIDER {
            found.objective = self.objective(&found.at, &found.u, wider);
            found = self.descend(found, wider)?;
        }
        Ok(found)
    }

    fn descend(&self, mut found: Found, wider: f64) -> Result<Found, FiguresError> {
        let mut damping = 0.01;
        for _ in 0..STEPS {
            let slopes = slopes(self.fit, self.free, &found.u)?;
            let gradient = self.gradient(&slopes, &found, wider);
            let before = found.objective;
            while damping < 1e4 {
                let matrix = information(&slopes, self.fit.observations, wider, damping);
                let step = matrix.solve(&gradient);
                let u: Vec<f64> = found
                    .u
                    .iter()
                    .zip(&step)
                    .map(|(u, s)| bounded(u + s))
                    .collect();
                let at = modelled(self.fit, self.free, &u, &KnownRuns::default())?;
                let objective = self.objective(&at, &u, wider);
                if objective < found.objective {
                    found = Found { u, at, objective };
                    damping /= 4.0;
                    break;
                }
                damping *= 4.0;
            }
            if before - found.objective < 1e-2 * (1.0 + before) {
                break;
            }
        }
        Ok(found)
    }

    fn objective(&self, at: &[f64], u: &[f64], wider: f64) -> f64 {
        let errors = self.measured.iter().zip(at).zip(self.fit.observations);
        let errors: f64 = errors.map(|((m, a), o)| (m - a).powi(2) * weight(o)).sum();
        errors / (wider * wider) + u.iter().map(|u| u * u).sum::<f64>()
    }

    fn gradient(&self, slopes: &[Vec<f64>], found: &Found, wider: f64) -> Vec<f64> {
        let of = |(slope, u): (&Vec<f64>, &f64)| {
            let errors = self
                .measured
                .iter()
                .zip(&found.at)
                .zip(slope)
                .zip(self.fit.observations);
            let sum: f64 = errors.map(|(((m, a), s), o)| (m - a) * s * weight(o)).sum();
            sum / (wider * wider) - u
        };
        slopes.iter().zip(&found.u).map(of).collect()
    }
}

fn recovered(free: &Free, u: f64, deviation: f64) -> RecoveredParameter {
    let [low, high] = free.parameter.range;
    let value = free.value(u);
    let half = NINETY * deviation * free.deviation;
    let interval = [(value - half).max(low), (value + half).min(high)];
    let narrowed = deviation < 0.3;
    RecoveredParameter {
        name: free.parameter.name,
        unit: free.parameter.unit,
        value,
        interval,
        determined: narrowed && half <= DETERMINED * value,
    }
}

#[cfg(test)]
mod tests;
