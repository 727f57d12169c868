//! Every experiment with every value that `--set` takes: a result, or an error that says what is wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dray_experiment::{Experiment, Kind, Parameter, Point};
use dray_idxd::Profile;
use dray_workload::Op;
use rayon::prelude::*;

use crate::catalog::{Protocol, experiments, select};
use crate::model::{Model, Window};
use crate::task::{Backend, Measured, backends, reduced};
use crate::vocabulary::VOCABULARY;
use crate::{FiguresError, Workload};

/// Nothing, one, an odd number, the limit and far more, or every word.
fn values(parameter: &Parameter) -> Vec<String> {
    match parameter.kind {
        Kind::Bytes { max, .. } | Kind::Count { max, .. } => [0, 1, 3, max, u64::MAX]
            .iter()
            .map(u64::to_string)
            .collect(),
        Kind::Choice(words) => words.iter().map(ToString::to_string).collect(),
    }
}

/// Experiments whose points are of many runs each.
const LONG: [&str; 4] = ["break-even", "tiering", "migration-volume", "migrate-call"];

/// What the first and the last point of an experiment give; of one whose points are many runs, the
/// first.
fn ends(experiment: &Experiment, profile: &str) -> Result<(), FiguresError> {
    let model = Model::new(dray_platform::builtin("spr-2s")?, Profile::named(profile)?);
    let points = experiment.points();
    let mut ends: Vec<&Point> = points.first().into_iter().chain(points.last()).collect();
    if LONG.contains(&experiment.id.as_str()) {
        ends.truncate(1);
    }
    for backend in backends(experiment, Measured::default()) {
        for point in &ends {
            let point = reduced(point, backend);
            let point = match backend {
                Backend::Model => point,
                _ => point.with("kind", "software"),
            };
            let workload = Workload::from_point(&point)?;
            if backend == Backend::Model || workload.op != Op::Nop {
                model.run_for(&workload, Window::Probe)?;
            }
        }
    }
    Ok(())
}

/// What is wrong with the answer to one value.
fn complaint(run: impl Fn() -> Result<(), FiguresError>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Err(_) => Some("panics".to_owned()),
        // An error of the model is no answer to a value.
        Ok(Err(
            error @ (FiguresError::AboveCeiling { .. }
            | FiguresError::Stalled(_)
            | FiguresError::Failed { .. }),
        )) => Some(error.to_string()),
        Ok(_) => None,
    }
}

#[test]
fn every_value_gives_a_result_or_a_named_error() {
    let mut cases = Vec::new();
    for protocol in [Protocol::Paper, Protocol::Seed] {
        for experiment in experiments(protocol).unwrap() {
            for parameter in VOCABULARY.parameters() {
                for value in values(parameter) {
                    cases.push((protocol, experiment.id.clone(), parameter, value));
                }
            }
        }
    }
    let broken: Vec<String> = cases
        .into_par_iter()
        .filter_map(|(protocol, id, parameter, value)| {
            let set = [(parameter.name.to_owned(), value.clone())];
            let profiles: &[&str] = match parameter.kind {
                Kind::Choice(_) => &["1e1w-d"],
                _ => &["1e1w-d", "2e1w-s-wqsz1"],
            };
            let run = |profile: &str| {
                let chosen = select(protocol, std::slice::from_ref(&id), &set)?;
                chosen.iter().try_for_each(|one| ends(one, profile))
            };
            profiles.iter().find_map(|profile| {
                let said = complaint(|| run(profile))?;
                Some(format!(
                    "{id} --set {}={value} on {profile}: {said}",
                    parameter.name
                ))
            })
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
