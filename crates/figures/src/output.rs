//! The files of a report, each written beside its place and then renamed, the page last.

use std::path::PathBuf;

use dray_experiment::{Header, Outcome, write_atomic, write_csv, write_json};

use crate::accuracy::{check_csv, check_json};
use crate::run::{Figure, GENERATOR, Request, Summary};
use crate::{FiguresError, guess, page};

/// What holds for all results of a figure.
pub fn header(request: &Request, figure: &Figure) -> Header {
    let stated = figure.experiment.guess.iter().cloned();
    let guess: Vec<String> = stated.chain(guesses(request, figure)).collect();
    Header {
        experiment: figure.experiment.id.clone(),
        platform: request.platform.name.clone(),
        profile: request.profile_name.clone(),
        generator: GENERATOR.to_owned(),
        guess: (!guess.is_empty()).then(|| guess.join("; ")),
    }
}

/// The outcomes of a figure as CSV has them: with a column for the guesses behind each.
pub fn with_guesses(request: &Request, figure: &Figure) -> Vec<Outcome> {
    let outcomes = figure.outcomes.iter();
    let named = outcomes.map(|outcome| {
        let behind = guess::of_outcome(request, figure, outcome);
        let names: Vec<&str> = behind.iter().map(|p| p.name.as_str()).collect();
        Outcome {
            point: outcome.point.with("guesses", names.join(" ")),
            ..outcome.clone()
        }
    });
    named.collect()
}

/// The guesses behind a figure, one line each.
pub fn guesses(request: &Request, figure: &Figure) -> Vec<String> {
    let behind = guess::of_figure(request, figure);
    behind.into_iter().map(guess::words).collect()
}

/// Everything is made in memory before the first file is written.
pub(crate) fn write(request: &Request, summary: &Summary) -> Result<Vec<PathBuf>, FiguresError> {
    let (report, charts) = page::report(request, summary)?;
    let mut files: Vec<(String, String)> = Vec::new();
    for figure in &summary.figures {
        let id = &figure.experiment.id;
        files.push((
            format!("{id}.csv"),
            write_csv(&with_guesses(request, figure)),
        ));
        files.push((
            format!("{id}.json"),
            write_json(&header(request, figure), &figure.outcomes)?,
        ));
    }
    for chart in &charts {
        files.push((format!("{}.svg", chart.id), chart.to_svg()?));
    }
    let parameters = request.platform.list().len();
    files.push(("check.csv".to_owned(), check_csv(&summary.checked)));
    files.push((
        "check.json".to_owned(),
        check_json(&summary.checked, &[], &request.platform.name, parameters),
    ));
    files.push(("index.html".to_owned(), report.to_html()?));
    let mut paths = Vec::with_capacity(files.len());
    for (name, text) in files {
        let path = request.out.join(name);
        write_atomic(&path, text.as_bytes())?;
        paths.push(path);
    }
    Ok(paths)
}
