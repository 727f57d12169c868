//! Charts of the experiments.

use dray_experiment::{Value, format_bytes};
use dray_report::{Chart, ChartSize, Provenance, Series, SeriesKind};

use super::GENERATOR;
use crate::bench::experiment::{ChartFields, FabricExperiment};
use crate::bench::run::FabricOutcome;
use crate::sim::Phase;

fn new_chart(experiment: &FabricExperiment, fields: &ChartFields, x_label: &str) -> Chart {
    Chart {
        id: format!("{}-{}", experiment.id, fields.id),
        title: fields.title.clone(),
        x_label: x_label.to_owned(),
        y_label: fields.y_label.clone(),
        log_y: fields.log_y,
        footer: format!("topology {} · {GENERATOR}", experiment.topology),
        size: if fields.half {
            ChartSize::Half
        } else {
            ChartSize::Full
        },
        ..Chart::default()
    }
}

pub(super) fn category(value: &Value, swept: &str) -> String {
    match value {
        Value::Integer(number) if is_size(swept) => format_bytes(*number),
        value => value.to_string(),
    }
}

fn is_size(swept: &str) -> bool {
    matches!(swept, "size" | "chunk" | "bytes" | "flow2")
}

/// Metrics over the swept parameter, a line per variant.
pub(super) fn over_sweep(
    experiment: &FabricExperiment,
    fields: &ChartFields,
    outcomes: &[FabricOutcome],
) -> Chart {
    let swept = experiment.swept().unwrap_or_default();
    let label = if is_size(swept) {
        format!("{swept} (B)")
    } else {
        swept.replace('_', " ")
    };
    let mut chart = new_chart(experiment, fields, &label);
    let xs = experiment.xs();
    chart.categories = xs.iter().map(|x| category(x, swept)).collect();
    if xs.is_empty() {
        chart.categories = vec![String::new()];
    }
    let at = |x: &Option<Value>| {
        xs.iter()
            .position(|known| Some(known) == x.as_ref())
            .unwrap_or(0)
    };
    let kind = if xs.is_empty() {
        SeriesKind::Bars
    } else {
        SeriesKind::Line
    };
    for (family, variant) in experiment.variant_names().iter().enumerate() {
        for metric in &fields.y {
            let mut values = vec![None; chart.categories.len()];
            for outcome in outcomes
                .iter()
                .filter(|outcome| outcome.variant == *variant)
            {
                values[at(&outcome.x)] = outcome
                    .metric(metric)
                    .map(|value| fields.y_unit.apply(value));
            }
            if values.iter().all(Option::is_none) {
                continue;
            }
            let name = series_name(variant, metric, fields.y.len());
            chart.series.push(
                Series::new(name.as_str(), Provenance::Modelled, kind, values).family(family as u8),
            );
            let mut marks = vec![None; chart.categories.len()];
            for mark in experiment
                .marks
                .iter()
                .filter(|mark| mark.metric == *metric && mark.variant == *variant)
            {
                let words = Default::default();
                let place = match &mark.x {
                    None => Some(0),
                    Some(x) => match x.number(&words) {
                        Ok(x) => xs.iter().position(|known| known.integer() == Some(x)),
                        Err(_) => None,
                    },
                };
                if let Some(place) = place {
                    marks[place] = Some(fields.y_unit.apply(mark.value));
                }
            }
            if marks.iter().any(Option::is_some) {
                chart.series.push(
                    Series::new(
                        name.as_str(),
                        Provenance::Published,
                        SeriesKind::Points,
                        marks,
                    )
                    .family(family as u8),
                );
            }
        }
    }
    chart
}

fn series_name(variant: &str, metric: &str, metrics: usize) -> String {
    let metric = metric
        .replace(".gib_s", "")
        .replace("_ns", "")
        .replace('.', " ");
    match (variant, metrics) {
        ("", _) => metric,
        (variant, 1) => variant.to_owned(),
        (variant, _) => format!("{variant}, {metric}"),
    }
}

/// Bandwidth of each stream in each interval.
pub(super) fn over_time(
    experiment: &FabricExperiment,
    fields: &ChartFields,
    outcomes: &[FabricOutcome],
) -> Chart {
    let mut chart = new_chart(experiment, fields, "time (µs)");
    let length = experiment.interval_ns.max(1) as f64;
    let intervals = (experiment.end_ns() as f64 / length) as usize;
    let starts: Vec<f64> = (0..intervals)
        .map(|index| index as f64 * length / 1000.0)
        .collect();
    chart.categories = starts.iter().map(|start| format!("{start:.0}")).collect();
    chart.x_values = Some(starts);
    for (family, outcome) in outcomes.iter().enumerate() {
        for stream in &outcome.streams {
            let rate = |index: usize| {
                let bytes = stream.intervals.get(index).copied().unwrap_or(0);
                Some(bytes as f64 / length * 1e9 / (1u64 << 30) as f64)
            };
            let values = (0..intervals).map(rate).collect();
            let name = series_name(&outcome.variant, &stream.name, 2);
            chart.series.push(
                Series::new(name, Provenance::Modelled, SeriesKind::Line, values)
                    .family(family as u8),
            );
        }
    }
    chart
}

/// Shares of transfers that took up to so long.
pub(super) fn cdf(
    experiment: &FabricExperiment,
    fields: &ChartFields,
    outcomes: &[FabricOutcome],
) -> Chart {
    let mut chart = new_chart(experiment, fields, "share of transfers (%)");
    let shares: Vec<f64> = vec![
        1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0,
    ];
    chart.categories = shares.iter().map(|share| format!("{share}")).collect();
    let wanted: Vec<&str> = fields.y.iter().map(String::as_str).collect();
    for (family, outcome) in outcomes.iter().enumerate() {
        for stream in outcome
            .streams
            .iter()
            .filter(|s| wanted.contains(&s.name.as_str()) && s.completed > 0)
        {
            let points = stream.profile.cdf(Phase::Total);
            let at = |share: f64| {
                points
                    .iter()
                    .find(|(_, seen)| *seen * 100.0 >= share)
                    .map(|(ns, _)| *ns)
            };
            let values = shares
                .iter()
                .map(|share| at(*share).map(|ns| fields.y_unit.apply(ns)))
                .collect();
            let x = outcome
                .x
                .as_ref()
                .map_or(String::new(), |x| format!(" {x}"));
            let name = series_name(&format!("{}{x}", outcome.variant), &stream.name, 2);
            chart.series.push(
                Series::new(name, Provenance::Modelled, SeriesKind::Line, values)
                    .family(family as u8),
            );
        }
    }
    chart
}
