//! Which results rest on parameters that no source gives: found by varying each.
//!
//! Points of a figure that differ in numbers alone rest on the same parameters, or nearly so: of
//! each such class the first and the last point are tried.

use std::collections::HashMap;

use dray_device::Payload;
use dray_experiment::{BACKEND, Figure, Outcome, Point, Value};
use dray_platform::{Parameter, PlatformFile, Unit};
use rayon::prelude::*;

use crate::request::Request;
use crate::sensitivity::effects;
use crate::task::Backend;
use crate::workload::Workload;
use crate::{FiguresError, Metric, Model};

/// The guesses behind the results of a run.
#[derive(Debug, Clone, Default)]
pub struct GuessIndex {
    /// By figure and class: metric, and position of the parameter in the platform's list.
    found: HashMap<(String, String), Vec<(Metric, usize)>>,
}

impl GuessIndex {
    /// Finds the guesses behind the figures of a run.
    ///
    /// # Errors
    /// A point that cannot run.
    pub(crate) fn find(request: &Request, figures: &[Figure]) -> Result<GuessIndex, FiguresError> {
        let model = Model {
            platform: request.platform.clone().into(),
            profile: request.profile.clone(),
            payload: Payload::Skipped,
        };
        let mut classes: HashMap<(String, String), (Point, Point)> = HashMap::new();
        for figure in figures {
            for outcome in &figure.outcomes {
                let point = &outcome.point;
                let key = (figure.experiment.id.clone(), class(point));
                classes
                    .entry(key)
                    .and_modify(|(_, last)| *last = point.clone())
                    .or_insert_with(|| (point.clone(), point.clone()));
            }
        }
        let classes: Vec<_> = classes.into_iter().collect();
        let of = |(key, (first, last)): ((String, String), (Point, Point))| {
            let mut behind = Vec::new();
            let ends = match first == last {
                true => vec![first],
                false => vec![first, last],
            };
            for point in ends {
                let Some(w) = workload(&point)? else { continue };
                for effect in effects(&model, &w, |p| p.guess)? {
                    let named = (effect.metric, effect.parameter);
                    if !behind.contains(&named) {
                        behind.push(named);
                    }
                }
            }
            Ok((key, behind))
        };
        let found: Result<_, FiguresError> = classes.into_par_iter().map(of).collect();
        Ok(GuessIndex { found: found? })
    }

    /// The guesses behind one metric of a point of a figure, in the order of the platform's file.
    pub(crate) fn behind<'a>(
        &self,
        platform: &'a PlatformFile,
        figure: &str,
        point: &Point,
        metric: Metric,
    ) -> Vec<&'a Parameter> {
        let known = self.found.get(&(figure.to_owned(), class(point)));
        let mut positions: Vec<usize> = known
            .into_iter()
            .flatten()
            .filter(|(of, _)| *of == metric)
            .map(|(_, position)| *position)
            .collect();
        positions.sort_unstable();
        let list = platform.list();
        positions.into_iter().filter_map(|i| list.get(i)).collect()
    }

    /// The guesses behind an outcome: those of the metrics that its figure draws.
    pub(crate) fn of_outcome<'a>(
        &self,
        platform: &'a PlatformFile,
        figure: &Figure,
        outcome: &Outcome,
    ) -> Vec<&'a Parameter> {
        let mut found: Vec<&Parameter> = Vec::new();
        for panel in &figure.experiment.panels {
            let overlays = panel.overlays.iter().map(|overlay| &overlay.y);
            for name in panel.y.iter().chain(overlays) {
                if let (Some(metric), Some(_)) = (Metric::named(name), outcome.metric(name)) {
                    let id = figure.experiment.id.as_str();
                    found.extend(self.behind(platform, id, &outcome.point, metric));
                }
            }
        }
        each_once(&found, platform)
    }

    /// The guesses behind a figure, one line each.
    pub fn lines(&self, platform: &PlatformFile, figure: &Figure) -> Vec<String> {
        let outcomes = figure.outcomes.iter();
        let found: Vec<&Parameter> = outcomes
            .flat_map(|outcome| self.of_outcome(platform, figure, outcome))
            .collect();
        each_once(&found, platform).into_iter().map(words).collect()
    }
}

/// Points that differ in numbers alone are of one class; but none is unlike some, and a batch is
/// unlike a descriptor.
fn class(point: &Point) -> String {
    let reduced = point.iter().map(|(name, value)| {
        let value = match value {
            Value::Integer(0) => Value::Integer(0),
            Value::Integer(1) if name == "batch" => Value::Integer(1),
            Value::Integer(_) => Value::Text("some".to_owned()),
            text => text.clone(),
        };
        (name.to_owned(), value)
    });
    Point::new(reduced).key()
}

/// The workload of a point of the results; `None` if it was measured.
fn workload(point: &Point) -> Result<Option<Workload>, FiguresError> {
    let backend = Backend::ALL
        .into_iter()
        .find(|backend| point.text(BACKEND) == Some(backend.name()));
    match backend {
        Some(Backend::Model) => Workload::from_point(point).map(Some),
        Some(Backend::Cpu) => Workload::from_point(&point.with("kind", "software")).map(Some),
        _ => Ok(None),
    }
}

/// In the order of the platform's file.
fn each_once<'a>(found: &[&Parameter], platform: &'a PlatformFile) -> Vec<&'a Parameter> {
    let among = |p: &&Parameter| found.iter().any(|known| known.name == p.name);
    platform.list().iter().filter(among).collect()
}

/// A parameter as people read it: name, value and what is possible.
pub(crate) fn words(p: &Parameter) -> String {
    let unit = match p.unit {
        Unit::Count | Unit::Ratio => String::new(),
        unit => format!(" {}", unit.name()),
    };
    format!(
        "{} = {}{unit} ({} to {})",
        p.name, p.value, p.range[0], p.range[1]
    )
}
