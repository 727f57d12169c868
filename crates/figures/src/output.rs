//! The files of a report, each written beside its place and then renamed, the page last.

use std::path::PathBuf;

use dray_experiment::{Figure, write_csv, write_json};
use dray_report::Chart;

use crate::accuracy::{check_csv, check_json};
use crate::export::{header, with_guesses};
use crate::phase::Phases;
use crate::request::{Request, Summary};
use crate::{FiguresError, counted, interval, page};

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
            (format!("{id}.csv"), table),
            (format!("{id}.json"), document),
        ])
    };
    let figures = summary.figures.iter().collect();
    let results = phases.each("tables of results", figures, results)?;
    let mut files: Vec<(String, String)> = results.into_iter().flatten().collect();
    let picture = |chart: &Chart| Ok((format!("{}.svg", chart.id), chart.to_svg()?));
    files.extend(phases.each("pictures", charts.iter().collect(), picture)?);
    if !summary.intervals.is_empty() {
        let id = interval::ID;
        files.push((format!("{id}.csv"), interval::to_csv(&summary.intervals)));
        let json = serde_json::to_string_pretty(&summary.intervals)
            .expect("sizes and names only, and memory takes every write");
        files.push((format!("{id}.json"), json + "\n"));
    }
    if summary.has(counted::FIGURE) {
        let counts = counted::counts()?;
        let id = counted::ID;
        files.push((format!("{id}.csv"), counted::to_csv(&counts)));
        let json = serde_json::to_string_pretty(&counts)
            .expect("names and counts only, and memory takes every write");
        files.push((format!("{id}.json"), json + "\n"));
    }
    let evidence = crate::Evidence::kept(&request.platform)?;
    let parameters = request.platform.list().len();
    files.push(("check.csv".to_owned(), check_csv(&summary.checked)));
    files.push((
        "check.json".to_owned(),
        check_json(
            &summary.checked,
            &[],
            evidence.as_ref(),
            &request.platform.name,
            parameters,
        ),
    ));
    files.push(("index.html".to_owned(), report.to_html()?));
    let mut paths = Vec::with_capacity(files.len());
    for (name, text) in files {
        let path = request.out.join(name);
        dray_output::write(&path, text.as_bytes())?;
        paths.push(path);
    }
    Ok(paths)
}
