//! Results on stdout: tables for people, JSON and CSV for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use comfy_table::{CellAlignment, Table, presets};
use dray_experiment::{Outcome, Point, write_csv, write_json};
use dray_figures::{Figure, Request, Summary, VOCABULARY, header, with_guesses};
use dray_print::PictureStyle;

use crate::terminal::{self, Columns};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people.
    Table,
    /// One JSON document.
    Json,
    /// One CSV table.
    Csv,
}

/// How results are printed that are no table of rows alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// For people.
    #[value(name = "table")]
    Text,
    /// One JSON document.
    Json,
}

/// The names of [`PictureStyle`], for help and completions as well.
pub(crate) fn picture_style() -> impl TypedValueParser<Value = PictureStyle> {
    PossibleValuesParser::new(PictureStyle::NAMES)
        .map(|name| PictureStyle::named(&name).expect("clap has taken no other name"))
}

/// Writes all of a text, without commands for a terminal; a reader that has gone away is no error.
pub(crate) fn all(out: &mut impl Write, text: &str) -> io::Result<()> {
    raw(out, &dray_output::shown(text))
}

/// As [`all`], with commands of our own for a terminal.
pub(crate) fn raw(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        // It is where all results go.
        result => result.map_err(|e| io::Error::new(e.kind(), format!("standard output: {e}"))),
    }
}

/// What is to be said before results, a line each.
pub(crate) fn notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("note: {note}\n")).collect()
}

/// Version of the JSON documents: a field that goes or changes its meaning makes it one more, a new field does not.
pub(crate) const SCHEMA: u32 = 1;

/// A JSON document as it is printed, with the version before its fields.
pub(crate) fn document(fields: &impl serde::Serialize) -> serde_json::Result<String> {
    #[derive(serde::Serialize)]
    struct Document<'a, T> {
        schema: u32,
        #[serde(flatten)]
        fields: &'a T,
    }
    let document = Document {
        schema: SCHEMA,
        fields,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Sentences wrapped at the width of the terminal; as they are where stdout is none. Rows of tables, which begin with
/// a space, stay whole.
pub(crate) fn wrapped(text: &str) -> String {
    let Some(width) = terminal::width() else {
        return text.to_owned();
    };
    let lines = text
        .lines()
        .map(|line| match line.starts_with([' ', '{', '}']) {
            true => format!("{line}\n"),
            false => textwrap::fill(line, width) + "\n",
        });
    lines.collect()
}

/// The results of a run.
pub(crate) fn results(
    format: Format,
    request: &Request,
    summary: &Summary,
) -> anyhow::Result<String> {
    match format {
        Format::Table => {
            let tables: Vec<String> = summary
                .figures
                .iter()
                .map(|f| table(request, summary, f))
                .collect();
            Ok(tables.join("\n"))
        }
        Format::Csv => {
            // One table: the figure is a column like the parameters.
            let outcomes = summary.figures.iter().flat_map(|figure| {
                with_guesses(request, &summary.guesses, figure)
                    .into_iter()
                    .map(|outcome| Outcome {
                        point: Point::new(
                            [("figure".to_owned(), figure.experiment.id.as_str().into())]
                                .into_iter()
                                .chain(
                                    outcome.point.iter().map(|(n, v)| (n.to_owned(), v.clone())),
                                ),
                        ),
                        ..outcome
                    })
            });
            Ok(write_csv(&outcomes.collect::<Vec<_>>()))
        }
        Format::Json => {
            let mut figures = Vec::new();
            for figure in &summary.figures {
                figures.push(write_json(
                    &header(request, &summary.guesses, figure),
                    &figure.outcomes,
                )?);
            }
            // Each is a document of its own already; they become the elements of one list.
            let figures: Vec<&str> = figures.iter().map(|text| text.trim_end()).collect();
            Ok(format!(
                "{{\"schema\": {SCHEMA}, \"figures\": [\n{}\n]}}\n",
                figures.join(",\n")
            ))
        }
    }
}

/// One figure: a column for each parameter that varies, then the metrics that are drawn.
fn table(request: &Request, summary: &Summary, figure: &Figure) -> String {
    let experiment = &figure.experiment;
    let mut names: Vec<&str> = experiment
        .sweep
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    names.push(dray_experiment::BACKEND);
    let mut metrics: Vec<&str> = Vec::new();
    for panel in &experiment.panels {
        let overlays = panel.overlays.iter().map(|overlay| &overlay.y);
        for metric in panel.y.iter().chain(overlays) {
            if !metrics.contains(&metric.as_str()) {
                metrics.push(metric);
            }
        }
    }
    let mut table = plain(names.iter().chain(&metrics).copied());
    for outcome in &figure.outcomes {
        let cell = |name: &&str| {
            let value = outcome.point.get(name);
            value.map_or(String::new(), |value| VOCABULARY.label(name, value))
        };
        let metric = |name: &&str| {
            outcome
                .metric(name)
                .map_or(String::new(), |value| format!("{value:.3}"))
        };
        table.add_row(names.iter().map(cell).chain(metrics.iter().map(metric)));
    }
    right(&mut table, names.len());
    let found = summary.guesses.lines(&request.platform, figure);
    let guesses: Vec<String> = found
        .into_iter()
        .map(|guess| format!("guess: {guess}\n"))
        .collect();
    format!(
        "{}: {}\n{table}\n{}",
        experiment.id,
        experiment.title,
        guesses.concat()
    )
}

/// A table without lines, which pastes and greps well.
pub(crate) fn plain<'a>(head: impl IntoIterator<Item = &'a str>) -> Columns {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(head);
    Columns(table)
}

/// From where to where a number may be; one number where both print alike.
pub(crate) fn range(low: f64, high: f64, decimals: usize) -> String {
    let [low, high] = [low, high].map(|end| format!("{end:.decimals$}"));
    match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }
}

/// Numbers stand on the right.
pub(crate) fn right(table: &mut Table, from: usize) {
    let columns = table.column_iter_mut().skip(from);
    columns.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
}
