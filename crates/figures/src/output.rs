//! The files of a report, each written beside its place and then renamed, the page last.

use std::path::PathBuf;

use dray_experiment::{Figure, csv_table, write_csv, write_json};
use dray_print::{PictureStyle, Printer};
use dray_report::Chart;

use crate::accuracy::{check_csv, check_json};
use crate::export::{header, with_guesses};
use crate::phase::Phases;
use crate::request::{Request, Summary};
use crate::{FiguresError, counted, experiments, interval, page, render};

/// Everything is made in memory before the first file is written.
pub(crate) fn write(
    request: &Request,
    summary: &Summary,
    phases: Phases<'_>,
) -> Result<Vec<PathBuf>, FiguresError> {
    let (report, charts) = page::report(request, summary, phases)?;
    let results = |figure: &Figure| {
        let id = &figure.experiment.id;
        let table = write_csv(&with_guesses(request, &summary.guesses, figure));
        let header = header(request, &summary.guesses, figure);
        let document = write_json(&header, &figure.outcomes)?;
        Ok([
            (format!("{id}.csv"), table.into_bytes()),
            (format!("{id}.json"), document.into_bytes()),
        ])
    };
    let figures = summary.figures.iter().collect();
    let results = phases.each("tables of results", figures, results)?;
    let mut files: Vec<(String, Vec<u8>)> = results.into_iter().flatten().collect();
    let known = match request.pictures {
        PictureStyle::Page => Vec::new(),
        PictureStyle::Paper(_) => experiments(request.protocol)?
            .iter()
            .flat_map(render::names)
            .collect(),
    };
    let printer = Printer::new(request.pictures, &known, &charts);
    let pictures = |chart: &Chart| Ok(printer.files(chart)?);
    let pictures = phases.each("pictures", charts.iter().collect(), pictures)?;
    files.extend(pictures.into_iter().flatten());
    if request.intervals {
        files.push(("intervals.csv".to_owned(), spans_csv(&charts).into_bytes()));
    }
    if !summary.intervals.is_empty() {
        let id = interval::ID;
        files.push((
            format!("{id}.csv"),
            interval::to_csv(&summary.intervals).into_bytes(),
        ));
        let json = serde_json::to_string_pretty(&summary.intervals)
            .expect("sizes and names only, and memory takes every write");
        files.push((format!("{id}.json"), (json + "\n").into_bytes()));
    }
    if summary.has(counted::FIGURE) {
        let counts = counted::counts()?;
        let id = counted::ID;
        files.push((format!("{id}.csv"), counted::to_csv(&counts).into_bytes()));
        let json = serde_json::to_string_pretty(&counts)
            .expect("names and counts only, and memory takes every write");
        files.push((format!("{id}.json"), (json + "\n").into_bytes()));
    }
    let evidence = crate::Evidence::kept(&request.platform)?;
    let parameters = request.platform.list().len();
    files.push((
        "check.csv".to_owned(),
        check_csv(&summary.checked).into_bytes(),
    ));
    files.push((
        "check.json".to_owned(),
        check_json(
            &summary.checked,
            &[],
            evidence.as_ref(),
            &request.platform.name,
            parameters,
        )
        .into_bytes(),
    ));
    files.push(("index.html".to_owned(), report.to_html()?.into_bytes()));
    let mut paths = Vec::with_capacity(files.len());
    for (name, bytes) in files {
        let path = request.out.join(name);
        dray_output::write(&path, &bytes)?;
        paths.push(path);
    }
    Ok(paths)
}

/// The intervals that the charts draw, a line each.
fn spans_csv(charts: &[Chart]) -> String {
    let rows = charts.iter().flat_map(|chart| {
        let rows = chart.series.iter().flat_map(move |series| {
            let values = series.values.iter().zip(&series.spans);
            values
                .zip(&chart.categories)
                .filter_map(move |((value, span), category)| {
                    let (low, high) = (*span)?;
                    Some(vec![
                        chart.id.clone(),
                        series.name.clone(),
                        category.clone(),
                        (*value)?.to_string(),
                        low.to_string(),
                        high.to_string(),
                    ])
                })
        });
        rows.collect::<Vec<_>>()
    });
    let names = ["chart", "series", "category", "value", "low_90", "high_90"];
    csv_table(&names, rows)
}
