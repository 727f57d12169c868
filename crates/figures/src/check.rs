//! The model beside every published number.

use std::sync::Arc;

use dray_device::Payload;
use dray_experiment::{Point, ReferenceTable, Target};
use dray_idxd::Profile;
use dray_platform::PlatformFile;
use rayon::prelude::*;

use crate::model::Window;
use crate::published_unit::PublishedUnit;
use crate::{FiguresError, KnownRuns, Model, Workload};

macro_rules! tables {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../reference/", $name, ".toml")))),+]
    };
}

/// The tables that are part of the program.
const TABLES: &[(&str, &str)] = tables![
    "sync-latency",
    "pingpong",
    "async-one-core",
    "batch32-one-engine",
    "batch32-four-engines",
    "movdir64b-burst",
    "movdir64b-rate",
    "enqcmd-rate",
    "dwq-overflow",
    "misalignment-sync",
    "misalignment-batch",
    "fault-cost",
    "ceilings",
    "software",
    "software-l1",
    "software-ranges",
    "dml-guide-console",
];

/// A published number and what the model says.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPoint {
    /// The point's own parameters.
    pub label: String,
    /// What the model says, in the table's unit.
    pub model: f64,
    /// What was published.
    pub published: f64,
    /// Published range, if one was.
    pub range: Option<(f64, f64)>,
    /// Model against published: in percent, or in the table's unit for an absolute target.
    pub error: f64,
    /// The 90 % interval of the model, if it was asked for.
    pub interval: Option<(f64, f64)>,
    /// Whether it counts towards the target.
    pub checked: bool,
}

/// A table with the model beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedTable {
    /// Name.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// How it was measured.
    pub configuration: String,
    /// Unit of the numbers.
    pub unit: String,
    /// Platform file.
    pub platform: String,
    /// Physical differences of the machine it was measured on.
    pub overrides: Vec<(String, f64)>,
    /// Largest error that is aimed at.
    pub target: Option<f64>,
    /// Whether error and target are in the table's unit instead of percent.
    pub absolute: bool,
    /// All points.
    pub points: Vec<CheckedPoint>,
}

impl CheckedTable {
    /// Absolute errors of the points that count, ascending.
    pub fn errors(&self) -> Vec<f64> {
        let counted = self.points.iter().filter(|p| p.checked);
        let mut errors: Vec<f64> = counted.map(|p| p.error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    /// Median of the errors that count.
    pub fn median(&self) -> f64 {
        let errors = self.errors();
        match errors.len() {
            0 => 0.0,
            n if n % 2 == 1 => errors[n / 2],
            n => (errors[n / 2 - 1] + errors[n / 2]) / 2.0,
        }
    }

    /// Largest of the errors that count.
    pub fn worst(&self) -> f64 {
        self.errors().last().copied().unwrap_or(0.0)
    }

    /// How many of the points that count lie within their 90 % interval; `None`: without intervals.
    pub fn inside(&self) -> Option<usize> {
        let counted = self.points.iter().filter(|p| p.checked);
        let inside = |p: &CheckedPoint| {
            let (low, high) = p.interval?;
            Some(usize::from((low..=high).contains(&p.published)))
        };
        counted.map(inside).sum()
    }

    /// Points that count and miss the target.
    pub fn missed(&self) -> Vec<&CheckedPoint> {
        let target = self.target.unwrap_or(f64::INFINITY);
        let points = self.points.iter();
        points
            .filter(|p| p.checked && p.error.abs() > target)
            .collect()
    }
}

/// All published tables.
///
/// # Errors
/// A table that is not well-formed.
pub fn reference_tables() -> Result<Vec<ReferenceTable>, FiguresError> {
    let parse = |(name, text): &(&str, &str)| {
        ReferenceTable::parse(text, &format!("reference/{name}.toml")).map_err(FiguresError::from)
    };
    TABLES.iter().map(parse).collect()
}

/// Runs every point of `tables` on `platform`; nothing but the profile's shape comes from them.
///
/// # Errors
/// A point that cannot run.
pub fn check(
    platform: &PlatformFile,
    tables: &[ReferenceTable],
) -> Result<Vec<CheckedTable>, FiguresError> {
    let known = KnownRuns::default();
    tables
        .par_iter()
        .map(|t| check_table(platform, t, Window::Full, &known))
        .collect()
}

/// Runs every point of one table, on this thread.
pub(crate) fn check_table(
    platform: &PlatformFile,
    table: &ReferenceTable,
    window: Window,
    known: &KnownRuns,
) -> Result<CheckedTable, FiguresError> {
    let mut machine = platform.clone();
    let mut overrides = Vec::new();
    for (name, value) in &table.overrides {
        let value = value
            .as_float()
            .or(value.as_integer().map(|n| n as f64))
            .ok_or_else(|| FiguresError::Table {
                table: format!("reference/{}.toml", table.id),
                field: "override",
                value: name.clone(),
                hint: "write parameter = number".to_owned(),
            })?;
        machine = machine.with(name, value)?;
        overrides.push((name.clone(), value));
    }
    let model = Model {
        platform: Arc::new(machine),
        profile: Profile::named("1e1w-d")?,
        payload: Payload::Skipped,
        known: known.clone(),
    };
    let unit = PublishedUnit::of(table)?;
    let absolute = matches!(table.target, Some(Target::Absolute(_)));
    let mut points = Vec::with_capacity(table.points.len());
    for published in &table.points {
        let point = Point::new(published.parameters.clone());
        let own = Point::new(published.own.clone());
        let value = Workload::from_point(&point)
            .and_then(|workload| model.run_for(&workload, window))
            .map_err(|source| FiguresError::Point {
                experiment: table.id.clone(),
                point: own.to_string(),
                source: Box::new(source),
            })
            .and_then(|metrics| {
                let value = metrics.get(unit.metric).ok_or(FiguresError::NoMetric {
                    table: table.id.clone(),
                    metric: unit.metric.name(),
                })?;
                Ok(value * unit.factor)
            })?;
        let error = match absolute {
            true => value - published.value,
            false => (value / published.value - 1.0) * 100.0,
        };
        points.push(CheckedPoint {
            label: own.to_string(),
            model: value,
            published: published.value,
            range: published.low.zip(published.high),
            error,
            interval: None,
            checked: published.checked,
        });
    }
    Ok(CheckedTable {
        id: table.id.clone(),
        title: table.title.clone(),
        source: table.source.clone(),
        configuration: table.configuration.clone(),
        unit: table.unit.clone(),
        platform: table.platform.clone(),
        overrides,
        target: table.target.map(|t| match t {
            Target::Percent(p) => p,
            Target::Absolute(a) => a,
        }),
        absolute,
        points,
    })
}
