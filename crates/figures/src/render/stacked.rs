//! Bars whose parts stand on each other.

use dray_experiment::{AxisUnit, Value};
use dray_report::{Chart, Provenance, Series, SeriesKind};

use super::{Drawing, Row};
use crate::label;
use crate::task::Backend;

impl Drawing<'_> {
    /// Parts on each other; the bars of one x stand together.
    pub(super) fn stack(&self, xs: &[Value], chart: &mut Chart) {
        let panel = self.panel;
        let rows =
            |metric: &String| self.rows(&panel.series, &panel.filter, xs, metric, panel.y_unit);
        let parts: Vec<Vec<Row>> = panel.y.iter().map(rows).collect();
        // A metric may be missing where another is there: there is no wait for a neighbour of size 0.
        let longest = parts.iter().rev().max_by_key(|rows| rows.len());
        let Some(first) = longest.filter(|rows| !rows.is_empty()) else {
            return;
        };
        let value = |part: &[Row], row: usize, x: usize| -> Option<f64> {
            let of = &first[row];
            let same = |other: &&Row| (other.backend, &other.name) == (of.backend, &of.name);
            part.iter().find(same)?.values[x]
        };
        let sum = |x: usize, row: usize| -> Option<f64> {
            let there = parts.iter().filter_map(|part| value(part, row, x));
            there.reduce(|a, b| a + b)
        };
        let bars: Vec<(usize, usize)> = (0..xs.len())
            .flat_map(|x| (0..first.len()).map(move |row| (x, row)))
            .collect();
        chart.categories = bars.iter().map(|(_, row)| short(&first[*row])).collect();
        let share = panel.y_unit == AxisUnit::Share;
        let groups = bars
            .iter()
            .map(|(x, _)| label::category(&panel.x, &xs[*x]))
            .collect();
        match first.len() {
            1 => chart.categories = groups,
            _ => chart.group_labels = Some(groups),
        }
        let devices = [
            (Backend::Model, Provenance::Modelled),
            (Backend::Device, Provenance::Measured),
        ];
        for (backend, provenance) in devices {
            if first.iter().all(|row| row.backend != backend) {
                continue;
            }
            for (metric, rows) in panel.y.iter().zip(&parts) {
                let values = bars.iter().map(|(x, row)| {
                    let own = first[*row].backend == backend;
                    let value = value(rows, *row, *x).filter(|_| own)?;
                    match share {
                        false => Some(value),
                        true => Some(value * 100.0 / sum(*x, *row)?),
                    }
                });
                let mut part = Series::new(
                    label::metric(metric),
                    provenance,
                    SeriesKind::Stacked,
                    values.collect(),
                );
                part.guess = rows.iter().any(|r| r.backend == backend && r.guess);
                chart.series.push(part);
            }
        }
        // A core that does the work itself neither prepares nor waits.
        let cores = [
            (Backend::Cpu, Provenance::Modelled),
            (Backend::Measured, Provenance::Measured),
        ];
        for (backend, provenance) in cores.into_iter().filter(|_| !share) {
            let software = |(x, row): &(usize, usize)| {
                let own = first[*row].backend == backend;
                own.then(|| sum(*x, *row)).flatten()
            };
            let values: Vec<Option<f64>> = bars.iter().map(software).collect();
            if values.iter().any(Option::is_some) {
                let mut part = Series::new("software", provenance, SeriesKind::Stacked, values);
                part.guess = first.iter().any(|r| r.backend == backend && r.guess);
                chart.series.push(part);
            }
        }
    }
}

/// Name of a bar below its stack.
fn short(row: &Row) -> String {
    let name = row.name.strip_prefix("DSA: ").unwrap_or(&row.name);
    match row.backend {
        Backend::Device => "device, here".to_owned(),
        Backend::Measured => "core, here".to_owned(),
        Backend::Cpu => "core".to_owned(),
        Backend::Model => name.strip_suffix(" WQ").unwrap_or(name).to_owned(),
    }
}
