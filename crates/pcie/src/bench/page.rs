//! The report's fabric part: charts of the experiments, the checks, the parameters.

mod charts;

use dray_experiment::{Header, write_csv, write_json};
use dray_print::{PictureStyle, Printer};
use dray_report::{Cell, Column, Report, RowClass, Section, Table};

use super::check::{Check, Tolerance, Verdict, parameters};
use super::experiment::FabricExperiment;
use super::run::FabricOutcome;
use crate::PcieError;
use crate::Topology;
use charts::{category, cdf, over_sweep, over_time};

/// Program and version.
const GENERATOR: &str = concat!("dray ", env!("CARGO_PKG_VERSION"));

/// A report and the files beside it.
#[derive(Debug, Clone)]
pub struct FabricReport {
    /// The page.
    pub html: String,
    /// Names and contents of the other files: a CSV and a JSON file for each experiment, the pictures
    /// of each chart.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A section that the experiments do not make, with files beside the page: names and contents.
#[derive(Debug, Clone, Default)]
pub struct ReportPart {
    /// The section; if it has charts, `ID.csv` and `ID.json` are among the files.
    pub section: Section,
    /// The files, without the SVG files of the charts.
    pub files: Vec<(String, String)>,
}

/// Draws the report; `parts` stand after the experiments, `asked` with the facts at the head.
///
/// # Errors
///
/// A chart that cannot be drawn; a topology that cannot be read.
pub fn report(
    runs: &[(FabricExperiment, Vec<FabricOutcome>)],
    checks: &[Check],
    parts: Vec<ReportPart>,
    seed: u64,
    pictures: PictureStyle,
    asked: Vec<(String, String)>,
) -> Result<FabricReport, PcieError> {
    let fail = |error: String| PcieError::Report(error);
    let mut files = Vec::new();
    let mut sections = Vec::new();
    for (experiment, outcomes) in runs {
        let section = section(experiment, outcomes);
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
        files.push((
            format!("{}.csv", experiment.id),
            write_csv(&rows).into_bytes(),
        ));
        files.push((format!("{}.json", experiment.id), json.into_bytes()));
        sections.push(section);
    }
    for part in parts {
        let bytes = |(name, text): (String, String)| (name, text.into_bytes());
        files.extend(part.files.into_iter().map(bytes));
        sections.push(part.section);
    }
    let charts = || sections.iter().flat_map(|section| &section.charts);
    let printer = Printer::new(pictures, &[], charts());
    for chart in charts() {
        let pictures = printer
            .files(chart)
            .map_err(|error| fail(error.to_string()))?;
        files.extend(pictures);
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
        facts: [
            ("Program".to_owned(), GENERATOR.to_owned()),
            ("Seed".to_owned(), seed.to_string()),
            ("Published".to_owned(), "Hou, Zhang, Wang, Liu: Understanding Routable PCIe Performance for Composable Infrastructures, NSDI 2024".to_owned()),
            ("Units".to_owned(), "GiB/s is 2^30 bytes a second; the published figures are read as GiB/s".to_owned()),
        ]
        .into_iter()
        .chain(asked)
        .collect(),
        summary,
        sections,
        footer: format!("Written by {GENERATOR}."),
        alone: false,
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
    let published = experiment.published.iter();
    let mut intro: Vec<String> = published
        .map(|place| format!("Published: {place}."))
        .collect();
    intro.extend(experiment.intro.iter().cloned());
    Section {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        intro,
        charts: charts.filter(|chart| !chart.series.is_empty()).collect(),
        tables: vec![profile_table(experiment, outcomes)],
        ..Section::default()
    }
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
