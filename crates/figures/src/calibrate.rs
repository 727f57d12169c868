//! Fits the platform's parameters to published tables, and says what each table is worth.
//!
//! One set of parameters for all tables: there are no factors per curve. The fit is a coordinate
//! descent within the physical range of each parameter, deterministic, from the middle of all
//! ranges. Leaving a table out and predicting it from the others shows how much of its agreement
//! is mechanism and how much is fit.

use dray_experiment::ReferenceTable;
use dray_platform::{PlatformFile, Unit};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::check::{CheckedTable, check_table};
use crate::coverage::with_intervals;
use crate::model::Window;
use crate::{FiguresError, KnownRuns};

/// Rounds of the descent; each tries a smaller step for each parameter.
const ROUNDS: [f64; 5] = [0.25, 0.125, 0.125, 0.06, 0.03];

/// Points of a table that a fit looks at, at most: neighbours say nearly the same.
const POINTS: usize = 16;

/// A change in a model value that counts as an influence, in percent of the value.
const INFLUENCE_PERCENT: f64 = 0.5;

/// Which tables a parameter has an influence on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Influence {
    /// Parameter.
    pub parameter: String,
    /// Tables in which some point changes by more than half a percent between the ends of the
    /// parameter's range.
    pub tables: Vec<String>,
}

/// A table predicted by a fit that has not seen it.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// The table with its errors when it was left out.
    pub table: CheckedTable,
    /// Parameters that differ from the platform file's value.
    pub fitted: Vec<(String, f64)>,
}

/// Which published tables each parameter has an influence on.
///
/// # Errors
/// A point that cannot run.
pub fn influences(
    platform: &PlatformFile,
    tables: &[ReferenceTable],
) -> Result<Vec<Influence>, FiguresError> {
    let names: Vec<_> = platform.list().iter().map(|p| (p.name, p.range)).collect();
    // Most tables do not read most parameters: the run at one end is that at the other.
    let known = KnownRuns::default();
    names
        .into_par_iter()
        .map(|(parameter, range)| {
            let [low, high] = range;
            let (at_low, at_high) = (
                platform.with(parameter, low)?,
                platform.with(parameter, high)?,
            );
            let mut touched = Vec::new();
            for table in tables {
                let table = thinned(table);
                let low = check_table(&at_low, &table, Window::Short, &known)?;
                let high = check_table(&at_high, &table, Window::Short, &known)?;
                if differ(&low, &high) {
                    touched.push(table.id);
                }
            }
            Ok(Influence {
                parameter: parameter.to_owned(),
                tables: touched,
            })
        })
        .collect()
}

fn differ(a: &CheckedTable, b: &CheckedTable) -> bool {
    let mut pairs = a.points.iter().zip(&b.points);
    pairs.any(|(x, y)| (x.model / y.model - 1.0).abs() * 100.0 > INFLUENCE_PERCENT)
}

/// Fits the parameters that `influences` says matter to all `tables` but the one named.
///
/// # Errors
/// A point that cannot run.
pub fn fit(
    platform: &PlatformFile,
    tables: &[ReferenceTable],
    influences: &[Influence],
    without: Option<&str>,
) -> Result<PlatformFile, FiguresError> {
    let kept: Vec<ReferenceTable> = tables
        .iter()
        .filter(|t| t.target.is_some() && Some(t.id.as_str()) != without)
        .map(thinned)
        .collect();
    let free: Vec<(usize, &str, Vec<usize>)> = platform
        .list()
        .iter()
        .enumerate()
        .filter_map(|(position, parameter)| {
            let influence = influences.iter().find(|i| i.parameter == parameter.name)?;
            let touched = |t: &ReferenceTable| influence.tables.contains(&t.id);
            let touches: Vec<usize> = (0..kept.len()).filter(|i| touched(&kept[*i])).collect();
            // The start must not use the left-out table: parameters that only it determines start in
            // the middle of their range too.
            let any = influence
                .tables
                .iter()
                .any(|id| tables.iter().any(|t| t.id == *id));
            any.then_some((position, parameter.name, touches))
        })
        .collect();
    let mut machine = platform.clone();
    for (position, name, _) in &free {
        let parameter = &platform.list()[*position];
        let [low, high] = parameter.range;
        machine = machine.with(name, rounded(parameter.unit, (low + high) / 2.0))?;
    }
    let mut losses = Vec::with_capacity(kept.len());
    for table in &kept {
        losses.push(loss(&check_table(
            &machine,
            table,
            Window::Short,
            &KnownRuns::default(),
        )?));
    }
    for step in ROUNDS {
        for (position, name, touches) in &free {
            if touches.is_empty() {
                continue;
            }
            let parameter = machine.list()[*position].clone();
            let [low, high] = parameter.range;
            let stride = match parameter.unit {
                Unit::Count => ((high - low) * step).max(1.0),
                _ => (high - low) * step,
            };
            let before: f64 = touches.iter().map(|i| losses[*i]).sum();
            let tried: Result<Vec<_>, FiguresError> = [-stride, stride]
                .into_iter()
                .map(|change| {
                    let value = (parameter.value + change).clamp(low, high);
                    let candidate = machine.with(name, rounded(parameter.unit, value))?;
                    let found: Result<Vec<f64>, FiguresError> = touches
                        .iter()
                        .map(|i| {
                            Ok(loss(&check_table(
                                &candidate,
                                &kept[*i],
                                Window::Short,
                                &KnownRuns::default(),
                            )?))
                        })
                        .collect();
                    Ok((candidate, found?))
                })
                .collect();
            let mut best = before;
            for (candidate, found) in tried? {
                let sum: f64 = found.iter().sum();
                if sum < best {
                    best = sum;
                    machine = candidate;
                    for (i, value) in touches.iter().zip(found) {
                        losses[*i] = value;
                    }
                }
            }
        }
    }
    Ok(machine)
}

/// Predicts each table with a target from a fit to all the others, with `intervals` if asked for. `done` is called after each table.
///
/// # Errors
/// A point that cannot run.
pub fn leave_out(
    platform: &PlatformFile,
    tables: &[ReferenceTable],
    influences: &[Influence],
    intervals: bool,
    done: &(dyn Fn(&str) + Sync),
) -> Result<Vec<LeftOut>, FiguresError> {
    let targeted: Vec<ReferenceTable> = tables
        .iter()
        .filter(|t| t.target.is_some())
        .cloned()
        .collect();
    targeted
        .par_iter()
        .map(|table| {
            let machine = fit(platform, &targeted, influences, Some(&table.id))?;
            let checked = match intervals {
                true => with_intervals(&machine, table)?,
                false => check_table(&machine, table, Window::Full, &KnownRuns::default())?,
            };
            done(&table.id);
            let changed = machine.list().iter().zip(platform.list());
            Ok(LeftOut {
                table: checked,
                fitted: changed
                    .filter(|(new, old)| new.value != old.value)
                    .map(|(new, _)| (new.name.to_owned(), new.value))
                    .collect(),
            })
        })
        .collect()
}

/// The table with few enough of the points that count.
fn thinned(table: &ReferenceTable) -> ReferenceTable {
    let mut table = table.clone();
    table.points.retain(|point| point.checked);
    let step = table.points.len().div_ceil(POINTS).max(1);
    let mut index = 0;
    table.points.retain(|_| {
        index += 1;
        index % step == 0
    });
    table
}

/// Mean square of the errors that count, in units of the target; outliers that no parameter can
/// reach must not pull all others along, so each counts for four at most.
fn loss(table: &CheckedTable) -> f64 {
    let target = table.target.unwrap_or(10.0);
    let errors = table.errors();
    let squares = errors.iter().map(|e| (e / target).powi(2).min(4.0));
    squares.sum::<f64>() / errors.len().max(1) as f64
}

/// Whole numbers for counts; otherwise three digits, as a person would write them.
fn rounded(unit: Unit, value: f64) -> f64 {
    match unit {
        Unit::Count => value.round(),
        _ => (value * 1000.0).round() / 1000.0,
    }
}
