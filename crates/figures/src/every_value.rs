//! Every experiment with every value that `--set` takes: a result, or an error that says what is wrong.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dray_experiment::{Experiment, Kind, Parameter};
use dray_idxd::Profile;
use dray_workload::Op;
use rayon::prelude::*;

use crate::catalog::{Protocol, experiments, select};
use crate::model::{Model, Window};
use crate::task::{Backend, Measured, backends, reduced};
use crate::vocabulary::VOCABULARY;
use crate::workload::What;
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

/// Whether a point is of many runs: as one of those, or by `--set kind`.
fn is_long(experiment: &Experiment, workload: &Workload) -> bool {
    LONG.contains(&experiment.id.as_str())
        || matches!(
            workload.what,
            What::BreakEven | What::MigrateCall | What::Tiering
        )
}

/// The first and the last point of an experiment, as the model and its core run them; where points are of
/// many runs, the first.
fn ends(experiment: &Experiment) -> Result<Vec<Workload>, FiguresError> {
    let points = experiment.points();
    let last = points.iter().skip(1).next_back();
    let mut workloads = Vec::new();
    for backend in backends(experiment, Measured::default()) {
        for point in points.first().into_iter().chain(last) {
            let reduced = reduced(point, backend);
            let reduced = match backend {
                Backend::Model => reduced,
                _ => reduced.with("kind", "software"),
            };
            let workload = Workload::from_point(&reduced)?;
            if last == Some(point) && is_long(experiment, &workload) {
                continue;
            }
            if backend == Backend::Model || workload.op != Op::Nop {
                workloads.push(workload);
            }
        }
    }
    Ok(workloads)
}

/// One experiment with one value.
struct Case {
    protocol: Protocol,
    id: String,
    parameter: &'static Parameter,
    value: String,
}

impl Case {
    /// What the experiment runs with this value.
    fn workloads(&self) -> Result<Vec<Workload>, FiguresError> {
        let set = [(self.parameter.name.to_owned(), self.value.clone())];
        let chosen = select(self.protocol, std::slice::from_ref(&self.id), &set)?.experiments;
        let workloads: Result<Vec<_>, _> = chosen.iter().map(ends).collect();
        Ok(workloads?.concat())
    }

    /// The profiles that it runs on. The second has little of everything.
    fn profiles(&self) -> &'static [&'static str] {
        match self.parameter.kind {
            Kind::Choice(_) => &["1e1w-d"],
            _ => &["1e1w-d", "2e1w-s-wqsz1"],
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} --set {}={}",
            self.id, self.parameter.name, self.value
        )
    }
}

/// What is wrong with the answer to one value.
fn complaint<T>(answer: std::thread::Result<Result<T, FiguresError>>) -> Option<String> {
    match answer {
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

/// Many values give the same runs: each is made once, and named by the first case that has it.
#[test]
fn every_value_gives_a_result_or_a_named_error() {
    let mut cases = Vec::new();
    for protocol in [Protocol::Paper, Protocol::Seed] {
        for experiment in experiments(protocol).unwrap() {
            for parameter in VOCABULARY.parameters() {
                for value in values(parameter) {
                    let id = experiment.id.clone();
                    cases.push(Case {
                        protocol,
                        id,
                        parameter,
                        value,
                    });
                }
            }
        }
    }
    let mut broken = Vec::new();
    let mut runs: HashMap<(&str, Workload), &Case> = HashMap::new();
    for case in &cases {
        let answer = catch_unwind(AssertUnwindSafe(|| case.workloads()));
        if let Ok(Ok(workloads)) = answer {
            for workload in workloads {
                for profile in case.profiles() {
                    runs.entry((profile, workload)).or_insert(case);
                }
            }
        } else if let Some(said) = complaint(answer) {
            broken.push(format!("{case}: {said}"));
        }
    }
    let models: HashMap<&str, Model> = ["1e1w-d", "2e1w-s-wqsz1"]
        .map(|name| {
            let platform = dray_platform::builtin("spr-2s").unwrap();
            (name, Model::new(platform, Profile::named(name).unwrap()))
        })
        .into();
    broken.par_extend(
        runs.into_par_iter()
            .filter_map(|((profile, workload), case)| {
                let run = || models[profile].run_for(&workload, Window::Probe);
                let said = complaint(catch_unwind(AssertUnwindSafe(run)))?;
                Some(format!("{case} on {profile}: {said}"))
            }),
    );
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
