//! The report's fabric part: charts of the experiments, the checks, the parameters.

use dray_experiment::{Header, Value, format_bytes, write_csv, write_json};
use dray_report::{
    Cell, Chart, ChartSize, Column, Provenance, Report, RowClass, Section, Series, SeriesKind,
    Table,
};

use super::check::{Check, Tolerance, Verdict, parameters};
use super::experiment::{ChartFields, FabricExperiment};
use super::run::FabricOutcome;
use crate::PcieError;
use crate::Topology;
use crate::sim::Phase;

/// Program and version.
const GENERATOR: &str = concat!("dray ", env!("CARGO_PKG_VERSION"));

/// A report and the files beside it.
#[derive(Debug, Clone)]
pub struct FabricReport {
    /// The page.
    pub html: String,
    /// Names and contents of the other files: a CSV and a JSON file for each experiment, an SVG
    /// file for each chart.
    pub files: Vec<(String, String)>,
}

/// A section that the experiments do not make, with files beside the page: names and contents.
#[derive(Debug, Clone, Default)]
pub struct ReportPart {
    /// The section; if it has charts, `ID.csv` and `ID.json` are among the files.
    pub section: Section,
    /// The files, without the SVG files of the charts.
    pub files: Vec<(String, String)>,
}

/// Draws the report; `parts` stand after the experiments.
///
/// # Errors
///
/// A chart that cannot be drawn; a topology that cannot be read.
pub fn report(
    runs: &[(FabricExperiment, Vec<FabricOutcome>)],
    checks: &[Check],
    parts: Vec<ReportPart>,
    seed: u64,
) -> Result<FabricReport, PcieError> {
    let fail = |error: String| PcieError::Report(error);
    let mut files = Vec::new();
    let mut sections = Vec::new();
    for (experiment, outcomes) in runs {
        let section = section(experiment, outcomes);
        for chart in &section.charts {
            let svg = chart.to_svg().map_err(|error| fail(error.to_string()))?;
            files.push((format!("{}.svg", chart.id), svg));
        }
        let rows: Vec<_> = outcomes
            .iter()
            .map(|outcome| outcome.outcome(experiment.swept()))
            .collect();
        let header = Header {
            experiment: experiment.id.clone(),
            platform: experiment.topology.clone(),
            profile: String::new(),
            generator: GENERATOR.to_owned(),
            guess: None,
        };
        let json = write_json(&header, &rows).map_err(|error| fail(error.to_string()))?;
        files.push((format!("{}.csv", experiment.id), write_csv(&rows)));
        files.push((format!("{}.json", experiment.id), json));
        sections.push(section);
    }
    for part in parts {
        for chart in &part.section.charts {
            let svg = chart.to_svg().map_err(|error| fail(error.to_string()))?;
            files.push((format!("{}.svg", chart.id), svg));
        }
        files.extend(part.files);
        sections.push(part.section);
    }
    if !checks.is_empty() {
        sections.push(check_section(checks));
    }
    sections.push(parameter_section(runs)?);
    let rows: usize = checks.iter().map(|check| check.rows.len()).sum();
    let missed: usize = checks.iter().map(Check::missed).sum();
    let mut summary = Vec::new();
    if rows > 0 {
        summary.push(format!(
            "{} of {rows} published numbers are within their tolerance; the section \"The model beside published numbers\" lists all of them.",
            rows - missed
        ));
    }
    let report = Report {
        title: "What this PCIe fabric does".to_owned(),
        subtitle: "The experiments of a published characterisation of routable PCIe, in a simulator of TLPs and credits".to_owned(),
        facts: vec![
            ("Program".to_owned(), GENERATOR.to_owned()),
            ("Seed".to_owned(), seed.to_string()),
            ("Published".to_owned(), "Hou, Zhang, Wang, Liu: Understanding Routable PCIe Performance for Composable Infrastructures, NSDI 2024".to_owned()),
            ("Units".to_owned(), "GiB/s is 2^30 bytes a second; the published figures are read as GiB/s".to_owned()),
        ],
        summary,
        sections,
        footer: format!("Written by {GENERATOR}."),
    };
    let html = report.to_html().map_err(|error| fail(error.to_string()))?;
    Ok(FabricReport { html, files })
}

fn section(experiment: &FabricExperiment, outcomes: &[FabricOutcome]) -> Section {
    let charts = experiment
        .charts
        .iter()
        .map(|fields| match (fields.over_time, fields.cdf) {
            (true, _) => over_time(experiment, fields, outcomes),
            (_, true) => cdf(experiment, fields, outcomes),
            _ => over_sweep(experiment, fields, outcomes),
        });
    let mut intro = vec![format!("Published: {}.", experiment.published)];
    intro.extend(experiment.intro.iter().cloned());
    Section {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        intro,
        charts: charts.filter(|chart| !chart.series.is_empty()).collect(),
        tables: vec![profile_table(experiment, outcomes)],
        notes: Vec::new(),
        guess: None,
    }
}

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

fn category(value: &Value, swept: &str) -> String {
    match value {
        Value::Integer(number) if is_size(swept) => format_bytes(*number),
        value => value.to_string(),
    }
}

fn is_size(swept: &str) -> bool {
    matches!(swept, "size" | "chunk" | "bytes" | "flow2")
}

/// Metrics over the swept parameter, a line per variant.
fn over_sweep(
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
                values[at(&outcome.x)] = scale(outcome.metric(metric), &fields.y_label);
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
                    marks[place] = scale(Some(mark.value), &fields.y_label);
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

/// Metrics are in ns; an axis in µs has them in µs.
fn scale(value: Option<f64>, y_label: &str) -> Option<f64> {
    value.map(|value| {
        if y_label.contains("µs") {
            value / 1000.0
        } else {
            value
        }
    })
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
fn over_time(
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
fn cdf(experiment: &FabricExperiment, fields: &ChartFields, outcomes: &[FabricOutcome]) -> Chart {
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
                .map(|share| scale(at(*share), &fields.y_label))
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

/// Rows that a table shows at most; the CSV file has all.
const MAX_ROWS: usize = 40;

/// Every stream of every point: bandwidth, phases, percentiles.
fn profile_table(experiment: &FabricExperiment, outcomes: &[FabricOutcome]) -> Table {
    let swept = experiment.swept().unwrap_or("point");
    let mut columns = vec![
        Column::text("variant"),
        Column::text(swept),
        Column::text("stream"),
    ];
    columns.push(Column::number("bandwidth", "GiB/s"));
    for name in [
        "mean",
        "P50",
        "P90",
        "P99",
        "P99.9",
        "host queueing",
        "fabric transit",
        "remote execution",
    ] {
        columns.push(Column::number(name, "ns"));
    }
    let mut rows = Vec::new();
    for outcome in outcomes {
        for stream in &outcome.streams {
            let metric =
                |name: &str, digits| match outcome.metric(&format!("{}.{name}", stream.name)) {
                    Some(value) => Cell::number(value, digits),
                    None => Cell::Empty,
                };
            let x = outcome
                .x
                .as_ref()
                .map_or(String::new(), |x| category(x, swept));
            let mut row = vec![
                Cell::text(&outcome.variant),
                Cell::text(x),
                Cell::text(&stream.name),
                metric("gib_s", 3),
            ];
            row.extend(
                [
                    "mean_ns",
                    "p50_ns",
                    "p90_ns",
                    "p99_ns",
                    "p999_ns",
                    "host_ns",
                    "fabric_ns",
                    "device_ns",
                ]
                .map(|name| metric(name, 0)),
            );
            rows.push(row);
        }
    }
    let all = rows.len();
    rows.truncate(MAX_ROWS);
    Table {
        title: "Streams: bandwidth, and durations in three phases (means)".to_owned(),
        columns,
        rows,
        row_classes: Vec::new(),
        notes: match all > MAX_ROWS {
            true => vec![format!(
                "{MAX_ROWS} of {all} rows; {}.csv has all.",
                experiment.id
            )],
            false => Vec::new(),
        },
    }
}

fn check_section(checks: &[Check]) -> Section {
    let tables = checks.iter().map(|check| {
        let rows = check.rows.iter().map(|row| {
            let target = match row.target {
                (low, high) if low == high => format!("{low:.4}"),
                (low, high) => format!("{low} to {high}"),
            };
            let tolerance = match row.tolerance {
                Tolerance::Percent(percent) => format!("{percent} %"),
                Tolerance::Absolute(allowed) => format!("{allowed} {}", row.unit),
            };
            vec![
                Cell::text(&row.name),
                Cell::text(format!("{target} {}", row.unit)),
                Cell::number(row.result, 3),
                Cell::number(row.deviation(), 2),
                Cell::text(tolerance),
            ]
        });
        let class = |verdict| match verdict {
            Verdict::Met => Some(RowClass::Good),
            Verdict::Missed => Some(RowClass::Bad),
        };
        Table {
            title: format!("Check {}: {}", check.number, check.title),
            columns: vec![
                Column::text("what"),
                Column::text("target"),
                Column::number("result", ""),
                Column::number("deviation", "% or unit"),
                Column::text("tolerance"),
            ],
            rows: rows.collect(),
            row_classes: check.rows.iter().map(|row| class(row.verdict())).collect(),
            notes: vec![format!(
                "Source: {}. Parameters: {}.",
                check.source, check.parameters
            )],
        }
    });
    Section {
        id: "checks".to_owned(),
        title: "The model beside published numbers".to_owned(),
        intro: vec!["One set of parameters for all rows. Some parameters are themselves published numbers: the sum of the latencies of a local path, capacities of ports, the rates at which a device takes writes and reads of its peers, and what the root complex forwards between devices. The cost of a read request was chosen so that a stream of 1 KiB chunks has its published rate. fabrics/README.md lists them. A row outside its tolerance is marked.".to_owned()],
        tables: tables.collect(),
        ..Section::default()
    }
}

fn parameter_section(
    runs: &[(FabricExperiment, Vec<FabricOutcome>)],
) -> Result<Section, PcieError> {
    let mut names: Vec<&str> = runs
        .iter()
        .map(|(experiment, _)| experiment.topology.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut rows = Vec::new();
    for name in names {
        let topology = Topology::resolve(name)?;
        rows.push(vec![
            Cell::text(&topology.name),
            Cell::text(&topology.title),
            Cell::text(&topology.source),
            Cell::text(parameters(&topology)),
        ]);
    }
    Ok(Section {
        id: "parameters".to_owned(),
        title: "Topologies and parameters".to_owned(),
        tables: vec![Table {
            title: "What the experiments ran on".to_owned(),
            columns: ["topology", "what it is", "source", "parameters"]
                .map(Column::text)
                .to_vec(),
            rows,
            ..Table::default()
        }],
        ..Section::default()
    })
}
