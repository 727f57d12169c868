//! Which results rest on parameters that no source gives: found by varying each.
//!
//! Points of a figure that differ in numbers alone rest on the same parameters, or nearly so: of
//! each such class the first and the last point are tried.

use std::collections::HashMap;

use dray_device::Payload;
use dray_experiment::{BACKEND, Figure, Outcome, Point, Value};
use dray_platform::{Parameter, PlatformFile, Unit};

use crate::phase::Phases;
use crate::sensitivity::guesses_behind;
use crate::task::Backend;
use crate::workload::Workload;
use crate::{FiguresError, Metric, Model, tiers};

/// The guesses behind the results of a run.
#[derive(Debug, Clone, Default)]
pub struct GuessIndex {
    /// By figure and class: metric, and position of the parameter in the platform's list.
    found: HashMap<(String, String), Vec<(Metric, usize)>>,
    /// The same for parameters of page migration, in words.
    migration: HashMap<(String, String), Vec<(Metric, String)>>,
}

impl GuessIndex {
    /// Finds the guesses behind the figures of a run.
    ///
    /// # Errors
    /// A point that cannot run.
    pub(crate) fn find(
        model: &Model,
        figures: &[Figure],
        phases: Phases<'_>,
    ) -> Result<GuessIndex, FiguresError> {
        let model = Model {
            payload: Payload::Skipped,
            ..model.clone()
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
        let drawn: HashMap<String, Vec<Metric>> = figures
            .iter()
            .map(|figure| (figure.experiment.id.clone(), drawn(figure)))
            .collect();
        // Figures share workloads: each is varied once.
        let mut jobs: Vec<(Job, Vec<(String, String)>)> = Vec::new();
        for (key, (first, last)) in classes {
            let job = Job {
                ends: [workload(&first)?, workload(&last)?],
                drawn: drawn[&key.0].clone(),
            };
            match jobs.iter_mut().find(|(known, _)| *known == job) {
                Some((_, keys)) => keys.push(key),
                None => jobs.push((job, vec![key])),
            }
        }
        let of = |(job, keys): (Job, Vec<(String, String)>)| {
            Ok((job.run(&model)?, job.of_migration(&model)?, keys))
        };
        let found = phases.each("guesses behind the figures", jobs, of)?;
        let mut index = GuessIndex::default();
        for (behind, migration, keys) in found {
            for key in keys {
                index.found.insert(key.clone(), behind.clone());
                index.migration.insert(key, migration.clone());
            }
        }
        Ok(index)
    }

    /// The guesses of page migration behind one metric of a point of a figure.
    pub(crate) fn of_migration(&self, figure: &str, point: &Point, metric: Metric) -> Vec<&str> {
        let known = self.migration.get(&(figure.to_owned(), class(point)));
        let known = known.into_iter().flatten();
        known
            .filter(|(of, _)| *of == metric)
            .map(|(_, words)| words.as_str())
            .collect()
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
        for metric in drawn(figure) {
            if outcome.metric(metric.name()).is_some() {
                let id = figure.experiment.id.as_str();
                found.extend(self.behind(platform, id, &outcome.point, metric));
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
        let mut lines: Vec<String> = each_once(&found, platform).into_iter().map(words).collect();
        for outcome in &figure.outcomes {
            for panel in &figure.experiment.panels {
                for metric in panel.y.iter().filter_map(|name| Metric::named(name)) {
                    let id = figure.experiment.id.as_str();
                    for words in self.of_migration(id, &outcome.point, metric) {
                        if !lines.iter().any(|line| line == words) {
                            lines.push(words.to_owned());
                        }
                    }
                }
            }
        }
        lines
    }
}

/// What is varied for a class of points.
#[derive(PartialEq)]
struct Job {
    /// The first and the last point; `None` if it was measured.
    ends: [Option<Workload>; 2],
    drawn: Vec<Metric>,
}

impl Job {
    /// The guesses of page migration, in words.
    fn of_migration(&self, model: &Model) -> Result<Vec<(Metric, String)>, FiguresError> {
        let mut behind: Vec<(Metric, String)> = Vec::new();
        for w in self.ends.iter().flatten() {
            for named in tiers::guesses(model, w)? {
                if self.drawn.contains(&named.0) && !behind.contains(&named) {
                    behind.push(named);
                }
            }
        }
        Ok(behind)
    }

    fn run(&self, model: &Model) -> Result<Vec<(Metric, usize)>, FiguresError> {
        let mut behind = Vec::new();
        let [first, last] = &self.ends;
        let last = last.as_ref().filter(|last| first.as_ref() != Some(last));
        for w in first.iter().chain(last) {
            let more = guesses_behind(model, w, &self.drawn, &behind)?;
            behind.extend(more);
        }
        Ok(behind)
    }
}

/// The metrics that a figure draws.
fn drawn(figure: &Figure) -> Vec<Metric> {
    let mut drawn = Vec::new();
    for panel in &figure.experiment.panels {
        let overlays = panel.overlays.iter().map(|overlay| &overlay.y);
        for metric in panel
            .y
            .iter()
            .chain(overlays)
            .filter_map(|name| Metric::named(name))
        {
            if !drawn.contains(&metric) {
                drawn.push(metric);
            }
        }
    }
    drawn
}

/// Points that differ in numbers alone are of one class; but none is unlike some, a batch is unlike a
/// descriptor, and a size below a threshold is unlike one above.
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
    let key = Point::new(reduced).key();
    match point.integer("size") < point.integer("threshold") {
        true => format!("{key}, below the threshold"),
        false => key,
    }
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
    stated(p.name, p.value, p.unit, p.range)
}

/// The same of a parameter of any file.
pub(crate) fn stated(name: &str, value: f64, unit: Unit, range: [f64; 2]) -> String {
    let (unit, [least, most]) = (unit.suffix(), range);
    format!("{name} = {value}{unit} ({least} to {most})")
}
