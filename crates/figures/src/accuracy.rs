//! How far the model is from what was published, as JSON, CSV and tables.

use dray_experiment::csv_table;
use dray_report::{Cell, Column, RowClass, Table};
use serde::Serialize;

use crate::{CheckedPoint, CheckedTable, Coverage, Evidence, LeftOut, missing_mechanism};

#[derive(Serialize)]
struct Written<'a> {
    schema: u32,
    generator: &'a str,
    platform: &'a str,
    parameters: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<&'a [Coverage]>,
    tables: Vec<WrittenTable<'a>>,
}

#[derive(Serialize)]
struct WrittenTable<'a> {
    id: &'a str,
    title: &'a str,
    source: &'a str,
    configuration: &'a str,
    platform: &'a str,
    overrides: std::collections::BTreeMap<&'a str, f64>,
    unit: &'a str,
    error_unit: &'a str,
    median: f64,
    worst: f64,
    target: Option<f64>,
    met: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fitted_parameters: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<WrittenLeftOut<'a>>,
    points: Vec<WrittenPoint<'a>>,
}

/// Errors under parameters that were fitted without the table.
#[derive(Serialize)]
struct WrittenLeftOut<'a> {
    median: f64,
    worst: f64,
    missed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    inside: Option<usize>,
    fitted: std::collections::BTreeMap<&'a str, f64>,
}

#[derive(Serialize)]
struct WrittenPoint<'a> {
    point: &'a str,
    model: f64,
    published: f64,
    low: Option<f64>,
    high: Option<f64>,
    error: f64,
    checked: bool,
}

/// Unit of a table's errors.
pub fn error_unit(table: &CheckedTable) -> &str {
    match table.absolute {
        true => &table.unit,
        false => "%",
    }
}

/// The comparison as JSON; `parameters` is how many the model has, `left_out` may be empty. With
/// intervals in `left_out`, the coverage of each class is that of `evidence`.
pub fn check_json(
    tables: &[CheckedTable],
    left_out: &[LeftOut],
    evidence: Option<&Evidence>,
    platform: &str,
    parameters: usize,
) -> String {
    let without = |id: &str| {
        let found = left_out.iter().find(|left| left.table.id == id)?;
        Some(WrittenLeftOut {
            median: found.table.median(),
            worst: found.table.worst(),
            missed: found.table.missed().len(),
            inside: found.table.inside(),
            fitted: found.fitted.iter().map(|(n, v)| (n.as_str(), *v)).collect(),
        })
    };
    let point = |p: &'_ CheckedPoint| (p.range.map(|r| r.0), p.range.map(|r| r.1));
    let written = Written {
        schema: dray_experiment::SCHEMA,
        generator: crate::GENERATOR,
        platform,
        parameters,
        coverage: evidence
            .map(|evidence| &evidence.coverage[..])
            .filter(|_| left_out.iter().any(|left| left.table.inside().is_some())),
        tables: tables
            .iter()
            .map(|t| WrittenTable {
                id: &t.id,
                title: &t.title,
                source: &t.source,
                configuration: &t.configuration,
                platform: &t.platform,
                overrides: t.overrides.iter().map(|(n, v)| (n.as_str(), *v)).collect(),
                unit: &t.unit,
                error_unit: error_unit(t),
                median: t.median(),
                worst: t.worst(),
                target: t.target,
                met: t.target.map(|_| t.missed().is_empty()),
                fitted_parameters: evidence.and_then(|evidence| evidence.parameters_of(&t.id)),
                left_out: without(&t.id),
                points: t
                    .points
                    .iter()
                    .map(|p| WrittenPoint {
                        point: &p.label,
                        model: p.model,
                        published: p.published,
                        low: point(p).0,
                        high: point(p).1,
                        error: p.error,
                        checked: p.checked,
                    })
                    .collect(),
            })
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&written)
        .expect("names and numbers only, and serde_json writes what is not finite as null");
    text.push('\n');
    text
}

/// The comparison as CSV: one line for each published point.
pub fn check_csv(tables: &[CheckedTable]) -> String {
    let head = [
        "table",
        "point",
        "model",
        "published",
        "unit",
        "error",
        "error_unit",
        "target",
        "checked",
    ];
    let row = |table: &CheckedTable, p: &CheckedPoint| {
        vec![
            table.id.clone(),
            p.label.clone(),
            p.model.to_string(),
            p.published.to_string(),
            table.unit.clone(),
            p.error.to_string(),
            error_unit(table).to_owned(),
            table.target.map(|t| t.to_string()).unwrap_or_default(),
            p.checked.to_string(),
        ]
    };
    let rows = tables
        .iter()
        .flat_map(|table| table.points.iter().map(move |point| row(table, point)));
    csv_table(&head, rows)
}

/// Median and worst error of a table that the fit had not seen.
fn left_out(evidence: Option<&Evidence>, table: &CheckedTable, unit: &str) -> Cell {
    let found = evidence.and_then(|e| e.left_out.iter().find(|left| left.table == table.id));
    found.map_or(Cell::Empty, |left| {
        Cell::text(format!("{:.1}{unit}, {:.1}{unit}", left.median, left.worst))
    })
}

/// Each point that misses its target, with the mechanism that is believed to be missing.
pub(crate) fn misses(tables: &[CheckedTable]) -> Vec<String> {
    let mut sentences: Vec<(String, Vec<String>)> = Vec::new();
    for table in tables {
        for point in table.missed() {
            let why = format!("{}: {}", table.id, missing_mechanism(&table.id, point));
            match sentences.iter_mut().find(|(known, _)| *known == why) {
                Some((_, points)) => points.push(point.label.clone()),
                None => sentences.push((why, vec![point.label.clone()])),
            }
        }
    }
    let list = sentences.into_iter();
    list.map(|(why, points)| format!("{why} ({}).", points.join("; ")))
        .collect()
}

/// One row for each published table; with what is known of its error when it was left out of the
/// fit.
pub(crate) fn overview(tables: &[CheckedTable], evidence: Option<&Evidence>) -> Table {
    let mut overview = Table::new(
        "The model beside every published table",
        vec![
            Column::text("Table"),
            Column::text("What it is"),
            Column::number("Points", ""),
            Column::number("Median error", ""),
            Column::number("Worst error", ""),
            Column::text("Left out: median, worst"),
            Column::text("Target"),
            Column::text("Points that miss it"),
        ],
    );
    for t in tables {
        let counted = t.errors().len();
        let missed = t.missed();
        let class = t
            .target
            .filter(|_| counted > 0)
            .map(|_| match missed.len() {
                0 => RowClass::Good,
                n if n * 10 <= counted => RowClass::Warn,
                _ => RowClass::Bad,
            });
        let unit = match t.absolute {
            true => format!(" {}", t.unit),
            false => " %".to_owned(),
        };
        let error = |value: f64| match counted {
            0 => Cell::Empty,
            _ => Cell::text(format!("{value:.1}{unit}")),
        };
        let listed: Vec<String> = missed
            .iter()
            .take(4)
            .map(|p| format!("{} ({:+.1}{unit})", p.label, p.error))
            .collect();
        let more = missed.len().saturating_sub(4);
        let listed = match (listed.is_empty(), more) {
            (true, _) => Cell::Empty,
            (false, 0) => Cell::text(listed.join("; ")),
            (false, more) => Cell::text(format!("{}; and {more} more", listed.join("; "))),
        };
        overview.push(
            vec![
                Cell::text(t.id.as_str()),
                Cell::text(t.title.as_str()),
                Cell::number(counted as f64, 0),
                error(t.median()),
                error(t.worst()),
                left_out(evidence, t, &unit),
                t.target
                    .map_or(Cell::text("none"), |x| Cell::text(format!("{x}{unit}"))),
                listed,
            ],
            class,
        );
    }
    overview
}

/// A published table with the model beside it, for the figure that it stands nearest to.
///
/// Where two parameters make its points, one runs down and the other across.
pub(crate) fn beside(t: &CheckedTable) -> Table {
    let title = format!("Nearest published table: {} ({})", t.title, t.id);
    let mut table = match pivot(t) {
        Some(table) => Table { title, ..table },
        None => {
            let columns = vec![
                Column::text("Point"),
                Column::number("published", t.unit.as_str()),
                Column::number("model", t.unit.as_str()),
                Column::number("error", error_unit(t)),
            ];
            let mut table = Table::new(title, columns);
            for p in &t.points {
                table.push(
                    vec![
                        Cell::text(p.label.as_str()),
                        number(p.published),
                        number(p.model),
                        Cell::number(p.error, 1),
                    ],
                    None,
                );
            }
            table
        }
    };
    table.notes = vec![format!(
        "Measured with: {}. Source: {}.",
        t.configuration, t.source
    )];
    if t.points.iter().any(|p| !p.checked) {
        table.notes.push(
            "Some of these points do not count towards the target; reference/ says why.".to_owned(),
        );
    }
    table
}

fn pivot(t: &CheckedTable) -> Option<Table> {
    let mut down: Vec<&str> = Vec::new();
    let mut across: Vec<&str> = Vec::new();
    let mut cells = Vec::new();
    for p in &t.points {
        let parts: Vec<&str> = p.label.split(", ").collect();
        let [first, second] = parts.as_slice() else {
            return None;
        };
        let (op, size) = (first.strip_prefix("op=")?, second.strip_prefix("size=")?);
        for (list, part) in [(&mut down, size), (&mut across, op)] {
            if !list.contains(&part) {
                list.push(part);
            }
        }
        cells.push((size, op, p));
    }
    let mut columns = vec![Column::number("Size", "bytes")];
    for op in &across {
        let op = crate::label::operation(op);
        columns.push(Column::number(format!("{op}, published"), t.unit.as_str()));
        columns.push(Column::number(format!("{op}, model"), t.unit.as_str()));
    }
    let mut table = Table::new("", columns);
    for size in down {
        let mut row = vec![Cell::text(size)];
        for op in &across {
            let found = cells.iter().find(|(s, o, _)| *s == size && o == op);
            row.push(found.map_or(Cell::Empty, |(.., p)| number(p.published)));
            row.push(found.map_or(Cell::Empty, |(.., p)| number(p.model)));
        }
        table.push(row, None);
    }
    Some(table)
}

/// As many digits as a published number of this size has.
fn number(value: f64) -> Cell {
    Cell::number(
        value,
        match value.abs() {
            v if v >= 100.0 => 0,
            v if v >= 10.0 => 1,
            _ => 2,
        },
    )
}
