//! 90 % intervals of modelled values, and how many published values they contain.
//!
//! A parameter is independent of all others, and half of its chance lies evenly on each side of its value. The
//! logarithm of a result is taken as linear in it on each side, and what moves the result up and what moves it down
//! are added in quadrature, each by itself: an approximation where ranges are lopsided, whose worth the counts show.

use dray_experiment::{Point, ReferenceTable};
use dray_platform::PlatformFile;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::check::{CheckedTable, check_table};
use crate::model::Window;
use crate::workload::{What, Workload};
use crate::{FiguresError, KnownRuns};

/// Half of a 90 % interval by the distance to the end of a range: a sum of many uniform variables has
/// 1.645 standard deviations of 1 / sqrt(3), one alone 0.9.
const HALF_WIDTH: f64 = 0.95;

/// Kinds of results that are wrong for the same reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultClass {
    /// Work of one core.
    Core,
    /// One operation outstanding.
    Latency,
    /// Several operations outstanding.
    Throughput,
    /// Batch descriptors.
    Batches,
    /// Time to submit many descriptors, and how many of them a queue accepts.
    Submission,
    /// Pages that are not present.
    PageFaults,
}

impl ResultClass {
    /// All of them.
    pub const ALL: [ResultClass; 6] = [
        ResultClass::Core,
        ResultClass::Latency,
        ResultClass::Throughput,
        ResultClass::Batches,
        ResultClass::Submission,
        ResultClass::PageFaults,
    ];

    /// Of a workload's result; `None`: of no published table.
    pub fn of(w: &Workload) -> Option<ResultClass> {
        match w.what {
            What::Software => Some(ResultClass::Core),
            What::Burst | What::Overflow => Some(ResultClass::Submission),
            What::Fault => Some(ResultClass::PageFaults),
            What::Offload if w.batch > 1 => Some(ResultClass::Batches),
            What::Offload if w.depth == Some(1) => Some(ResultClass::Latency),
            What::Offload => Some(ResultClass::Throughput),
            _ => None,
        }
    }

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            ResultClass::Core => "work of one core",
            ResultClass::Latency => "one operation outstanding",
            ResultClass::Throughput => "several operations outstanding",
            ResultClass::Batches => "batches",
            ResultClass::Submission => "bursts of submissions",
            ResultClass::PageFaults => "page faults",
        }
    }
}

/// How many published values of a class lie within the intervals of a model that has not seen them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Class.
    pub class: ResultClass,
    /// Published values.
    pub points: usize,
    /// Those within the interval.
    pub inside: usize,
    /// Median of the intervals' upper end by their lower one.
    pub width: f64,
}

/// The 90 % interval of a result that is `value`, by its values at both ends of each parameter's range.
/// What there is not, as a size from which something holds, is infinite.
pub fn interval_90(value: f64, ends: impl IntoIterator<Item = [f64; 2]>) -> (f64, f64) {
    debug_assert!(value > 0.0, "{value} has no logarithm");
    let (mut least, mut down, mut up) = (value, 0.0_f64, 0.0_f64);
    for [low, high] in ends {
        let (low, high) = (low.min(high).min(value), low.max(high).max(value));
        least = least.min(low);
        if value.is_finite() {
            down += (value / low).ln().powi(2);
            up += (high / value).ln().powi(2);
        }
    }
    if value.is_infinite() {
        return (least, value);
    }
    let factor = |sum: f64| (HALF_WIDTH * sum.sqrt()).exp();
    (value / factor(down), value * factor(up))
}

/// A table beside a machine, each point with its interval.
///
/// # Errors
/// A point that cannot run.
pub(crate) fn with_intervals(
    machine: &PlatformFile,
    table: &ReferenceTable,
) -> Result<CheckedTable, FiguresError> {
    let known = KnownRuns::default();
    let mut checked = check_table(machine, table, Window::Full, &known)?;
    let ends: Vec<[CheckedTable; 2]> = machine
        .list()
        .par_iter()
        .map(|parameter| {
            let at = |end: f64| {
                let there = machine.with(parameter.name, end)?;
                check_table(&there, table, Window::Full, &known)
            };
            Ok([at(parameter.range[0])?, at(parameter.range[1])?])
        })
        .collect::<Result<_, FiguresError>>()?;
    for (index, point) in checked.points.iter_mut().enumerate() {
        let ends = ends.iter().map(|[low, high]| {
            let model = |table: &CheckedTable| table.points[index].model;
            [model(low), model(high)]
        });
        point.interval = Some(interval_90(point.model, ends));
    }
    Ok(checked)
}

/// The coverage of each class by the points of `checked` that count and have an interval; `tables` are
/// where they were published.
///
/// # Errors
/// A point that is not well-formed.
pub fn coverage(
    checked: &[&CheckedTable],
    tables: &[ReferenceTable],
) -> Result<Vec<Coverage>, FiguresError> {
    let mut found: Vec<(ResultClass, bool, f64)> = Vec::new();
    for table in checked {
        let Some(published) = tables.iter().find(|t| t.id == table.id) else {
            continue;
        };
        for (point, published) in table.points.iter().zip(&published.points) {
            let Some((low, high)) = point.interval.filter(|_| point.checked) else {
                continue;
            };
            let workload = Workload::from_point(&Point::new(published.parameters.clone()))?;
            if let Some(class) = ResultClass::of(&workload) {
                let inside = (low..=high).contains(&point.published);
                found.push((class, inside, high / low));
            }
        }
    }
    Ok(ResultClass::ALL
        .into_iter()
        .filter_map(|class| {
            let of: Vec<_> = found.iter().filter(|f| f.0 == class).collect();
            let mut widths: Vec<f64> = of.iter().map(|f| f.2).collect();
            widths.sort_by(f64::total_cmp);
            Some(Coverage {
                class,
                points: of.len(),
                inside: of.iter().filter(|f| f.1).count(),
                width: *widths.get(of.len() / 2)?,
            })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_adds_variances_of_independent_parameters() {
        let (low, high) = interval_90(10.0, [[5.0, 20.0]]);
        assert!((low - 10.0 / 2f64.powf(0.95)).abs() < 1e-9, "{low}");
        assert!((high - 10.0 * 2f64.powf(0.95)).abs() < 1e-9, "{high}");
        let (_, both) = interval_90(10.0, [[10.0, 20.0], [20.0, 10.0]]);
        assert!((both - 10.0 * 2f64.powf(0.95 * 2f64.sqrt())).abs() < 1e-9);
        assert_eq!(interval_90(10.0, [[10.0, 10.0]]), (10.0, 10.0));
    }

    #[test]
    fn a_size_that_there_is_not_is_beyond_all_others() {
        let (low, high) = interval_90(4096.0, [[2048.0, f64::INFINITY]]);
        assert!(low > 2048.0 && low < 4096.0 && high.is_infinite());
        let ends = [[8192.0, f64::INFINITY], [f64::INFINITY; 2]];
        assert_eq!(interval_90(f64::INFINITY, ends), (8192.0, f64::INFINITY));
    }

    /// A machine that nobody doubts has intervals without width, and one point outside its own is counted.
    #[test]
    fn coverage_counts_by_class() {
        let tables = crate::reference_tables().unwrap();
        let table = tables.iter().find(|t| t.id == "pingpong").unwrap();
        let machine = dray_platform::builtin("spr-2s").unwrap();
        let checked = with_intervals(&machine, table).unwrap();
        let all = coverage(&[&checked], &tables).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].class, ResultClass::Latency);
        assert_eq!((all[0].points, all[0].inside), (4, 4));
        assert!(all[0].width > 1.0);
        let mut outside = checked.clone();
        outside.points[0].interval = Some((1.0, 2.0));
        let all = coverage(&[&outside], &tables).unwrap();
        assert_eq!((all[0].points, all[0].inside), (4, 3));
    }
}
