//! Lines of a result: measurements, and what is said of several.

use crate::case::Case;
use crate::timing::{Counter, Timing};

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum RowKind {
    /// A measurement; which of its case's.
    Iteration(u32),
    /// A number made of several measurements, in their unit.
    Aggregate(&'static str),
    /// Such a number as a share of the mean.
    Share(&'static str),
    /// The case could not run: why.
    Failed(String),
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// Cases of one family differ in threads only.
    pub family: usize,
    /// Place in the family.
    pub instance: usize,
    /// What the line says.
    pub kind: RowKind,
    /// Measurements of the case.
    pub repetitions: u32,
    /// Iterations, or for an aggregate the measurements in it.
    pub iterations: u64,
    /// Time of an iteration in ns, or a share.
    pub real: f64,
    /// Core time of an iteration in ns, or a share.
    pub cpu: f64,
    /// Latency, throughput and the like.
    pub counters: Vec<Counter>,
}

impl Row {
    /// Name of the line.
    pub fn name(&self) -> String {
        match &self.kind {
            RowKind::Aggregate(name) | RowKind::Share(name) => format!("{}_{name}", self.case),
            _ => self.case.to_string(),
        }
    }

    /// Whether it is made of several measurements.
    pub fn is_aggregate(&self) -> bool {
        matches!(self.kind, RowKind::Aggregate(_) | RowKind::Share(_))
    }
}

/// One number made of several.
type Statistic = fn(&[f64]) -> f64;

/// Where a case stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Number of its family.
    pub family: usize,
    /// Place in the family.
    pub instance: usize,
}

/// Families and places of cases, in order.
pub fn positions(cases: &[Case]) -> Vec<Position> {
    let mut families: Vec<(String, usize)> = Vec::new();
    let mut found = std::collections::HashMap::new();
    cases
        .iter()
        .map(|case| {
            let name = case.family();
            let family = *found.entry(name.clone()).or_insert_with(|| {
                families.push((name, 0));
                families.len() - 1
            });
            let instance = families[family].1;
            families[family].1 += 1;
            Position { family, instance }
        })
        .collect()
}

/// The lines of one case: each measurement, and with more than one, what they are together.
pub fn rows(case: &Case, at: Position, timings: &[(Timing, Vec<Counter>)]) -> Vec<Row> {
    let repetitions = timings.len() as u32;
    let row = |kind, iterations, real, cpu, counters| Row {
        case: *case,
        family: at.family,
        instance: at.instance,
        kind,
        repetitions,
        iterations,
        real,
        cpu,
        counters,
    };
    let mut rows: Vec<Row> = timings
        .iter()
        .enumerate()
        .map(|(index, (t, counters))| {
            row(
                RowKind::Iteration(index as u32),
                t.iterations,
                t.real_ns,
                t.cpu_ns,
                counters.clone(),
            )
        })
        .collect();
    if timings.len() < 2 {
        return rows;
    }
    let real: Vec<f64> = timings.iter().map(|(t, _)| t.real_ns).collect();
    let cpu: Vec<f64> = timings.iter().map(|(t, _)| t.cpu_ns).collect();
    let count = timings.len() as u64;
    let statistics: [(&str, Statistic); 4] = [
        ("mean", mean),
        ("median", median),
        ("stddev", deviation),
        ("cv", variation),
    ];
    for (name, statistic) in statistics {
        let counters = timings[0].1.iter().enumerate().map(|(index, counter)| {
            let values: Vec<f64> = timings
                .iter()
                .filter_map(|(_, c)| c.get(index).map(|c| c.value))
                .collect();
            Counter {
                value: statistic(&values),
                ..counter.clone()
            }
        });
        let kind = match name {
            "cv" => RowKind::Share(name),
            _ => RowKind::Aggregate(name),
        };
        let counters = counters.collect();
        rows.push(row(
            kind,
            count,
            statistic(&real),
            statistic(&cpu),
            counters,
        ));
    }
    rows
}

/// The line of a case that could not run.
pub fn failed(case: &Case, at: Position, reason: String) -> Row {
    Row {
        case: *case,
        family: at.family,
        instance: at.instance,
        kind: RowKind::Failed(reason),
        repetitions: 0,
        iterations: 0,
        real: 0.0,
        cpu: 0.0,
        counters: Vec::new(),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The middle value, or the mean of the two in the middle; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => 0.0,
        (half, 0) => (sorted[half - 1] + sorted[half]) / 2.0,
        (half, _) => sorted[half],
    }
}

/// Of a sample: divided by one less than there are.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    match values.len() {
        0 | 1 => 0.0,
        n => (squares / (n - 1) as f64).sqrt(),
    }
}

fn variation(values: &[f64]) -> f64 {
    match mean(values) {
        0.0 => 0.0,
        mean => deviation(values) / mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_that_of_a_sample() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), 5.0);
        assert_eq!(median(&values), 4.5);
        assert!((deviation(&values) - 2.138_089_935_299_395).abs() < 1e-12);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(
            (median(&[]), deviation(&[1.0]), variation(&[0.0])),
            (0.0, 0.0, 0.0)
        );
    }
}
