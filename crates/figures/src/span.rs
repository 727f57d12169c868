//! The 90 % interval of each modelled value of the figures: all parameters anywhere in their ranges.
//!
//! Every modelled point is run again at both ends of each parameter's range. A point that does not read a
//! parameter costs nothing: its run is known. A chart's value, a ratio as well, is then worked out at each
//! end as it is in the middle.

use dray_experiment::{Figure, Outcome, Task};

use crate::coverage;
use crate::model::Model;
use crate::phase::Phases;
use crate::sensitivity::with;
use crate::task::Job;
use crate::{FiguresError, Metrics};

/// The figures at the ends of parameters' ranges.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// For each parameter that changes something, at either end: the figures with the outcomes that are
    /// others there.
    parameters: Vec<[Vec<Figure>; 2]>,
}

impl Ends {
    /// Runs the modelled points at the ends.
    ///
    /// # Errors
    /// A point that cannot run there.
    pub(crate) fn run(
        model: &Model,
        figures: &[Figure],
        tasks: &[&Task<Job>],
        phases: Phases<'_>,
    ) -> Result<Ends, FiguresError> {
        let list = model.platform.list();
        let parameters: Vec<_> = list
            .iter()
            .filter(|p| p.range.iter().any(|end| *end != p.value))
            .collect();
        let both = |parameter: &dray_platform::Parameter| {
            let at = |end: f64| -> Result<Vec<Figure>, FiguresError> {
                if end == parameter.value {
                    return Ok(Vec::new());
                }
                let there = with(model, parameter, end)?;
                changed(&there, figures, tasks, phases)
            };
            let [low, high] = parameter.range;
            Ok([at(low)?, at(high)?])
        };
        let found = phases.each("ends of the parameters' ranges", parameters, both)?;
        let some = |ends: &[Vec<Figure>; 2]| ends.iter().any(|figures| !figures.is_empty());
        Ok(Ends {
            parameters: found.into_iter().filter(some).collect(),
        })
    }

    /// The 90 % interval of a value above 0, which `of` works out: with the figure of this id at an end
    /// of a parameter's range, or `None` where that is as in the middle.
    pub(crate) fn interval(
        &self,
        id: &str,
        value: f64,
        of: impl Fn(Option<&Figure>) -> Option<f64>,
    ) -> Option<(f64, f64)> {
        if self.parameters.is_empty() || value <= 0.0 || !value.is_finite() {
            return None;
        }
        let named = |figures: &'_ [Figure]| figures.iter().position(|f| f.experiment.id == id);
        let at = |figures: &[Figure]| match named(figures) {
            Some(found) => of(Some(&figures[found])).unwrap_or(value),
            None => value,
        };
        let ends = self.parameters.iter();
        let ends = ends.map(|[low, high]| [at(low), at(high)]);
        Some(coverage::interval_90(value, ends))
    }
}

/// The figures that differ on another machine, with the outcomes that do.
fn changed(
    there: &Model,
    figures: &[Figure],
    tasks: &[&Task<Job>],
    phases: Phases<'_>,
) -> Result<Vec<Figure>, FiguresError> {
    let mut found = Vec::new();
    for figure in figures {
        phases.go_on()?;
        let mut outcomes = Vec::new();
        for task in tasks
            .iter()
            .filter(|t| t.experiment == figure.experiment.id)
        {
            let Some(here) = figure.outcome(&task.point) else {
                continue;
            };
            let metrics = there.run(&task.work.workload).map(Metrics::into_vec)?;
            if metrics != here.metrics {
                outcomes.push(Outcome {
                    metrics,
                    ..here.clone()
                });
            }
        }
        if !outcomes.is_empty() {
            found.push(Figure::new(figure.experiment.clone(), outcomes));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dray_experiment::Point;

    fn figure(value: f64) -> Figure {
        let experiment = crate::experiments(crate::Protocol::Paper)
            .unwrap()
            .remove(0);
        let outcome = Outcome {
            point: Point::default().with("size", 256u64),
            metrics: vec![("latency_ns".into(), value)],
            provenance: dray_experiment::Provenance::Modelled,
            executor: "model".into(),
        };
        Figure::new(experiment, vec![outcome])
    }

    fn of(end: Option<&Figure>) -> Option<f64> {
        end?.outcomes[0].metric("latency_ns")
    }

    #[test]
    fn the_ends_of_two_parameters_make_one_interval() {
        let one = [vec![figure(90.0)], vec![figure(110.0)]];
        let two = [Vec::new(), vec![figure(120.0)]];
        let id = figure(0.0).experiment.id;
        let interval = |parameters: &[[Vec<Figure>; 2]]| {
            let ends = Ends {
                parameters: parameters.to_vec(),
            };
            ends.interval(&id, 100.0, of)
        };
        let (low, high) = interval(std::slice::from_ref(&one)).unwrap();
        assert!((90.0..100.0).contains(&low) && high > 100.0 && high <= 110.0);
        let (lower, higher) = interval(&[one, two]).unwrap();
        assert!(lower == low && higher > high, "{lower} {higher}");
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn another_figure_and_a_value_of_0_have_no_ends() {
        let ends = Ends {
            parameters: vec![[vec![figure(90.0)], Vec::new()]],
        };
        assert_eq!(ends.interval("none", 100.0, of), Some((100.0, 100.0)));
        assert_eq!(ends.interval("fig2", 0.0, of), None);
    }
}
