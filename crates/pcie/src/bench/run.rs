//! Runs experiments.

use dray_experiment::{Outcome, Point, Provenance, Value};
use rayon::prelude::*;

use super::experiment::{FabricExperiment, FabricPoint};
use crate::PcieError;
use crate::Topology;
use crate::sim::{Phase, Profile, Simulation, SimulationOptions, StreamResult};

/// What one point gave.
#[derive(Debug, Clone)]
pub struct FabricOutcome {
    /// Name of the variant.
    pub variant: String,
    /// Value of the swept parameter.
    pub x: Option<Value>,
    /// The streams.
    pub streams: Vec<StreamResult>,
    /// Length of the measured time, ns.
    pub measured_ns: f64,
}

impl FabricOutcome {
    /// A metric such as `flow1.gib_s` or `victim.p99_ns`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let (stream, metric) = name.split_once('.')?;
        let stream = self.streams.iter().find(|result| result.name == stream)?;
        metrics(stream)
            .into_iter()
            .find(|(known, _)| *known == metric)
            .map(|(_, value)| value)
    }

    /// The outcome with all of its metrics, for CSV and JSON.
    pub fn outcome(&self, swept: Option<&str>) -> Outcome {
        let mut point = Point::default();
        if !self.variant.is_empty() {
            point = point.with("variant", self.variant.as_str());
        }
        if let (Some(name), Some(x)) = (swept, &self.x) {
            point = point.with(name, x.clone());
        }
        let all = self.streams.iter().flat_map(|stream| {
            let named = |(metric, value): (&str, f64)| (format!("{}.{metric}", stream.name), value);
            metrics(stream).into_iter().map(named).collect::<Vec<_>>()
        });
        Outcome {
            point,
            metrics: all.collect(),
            provenance: Provenance::Modelled,
            executor: "fabric simulator".to_owned(),
        }
    }
}

/// All metrics of a stream. One without a completed transfer has no durations.
fn metrics(stream: &StreamResult) -> Vec<(&'static str, f64)> {
    let mut all = vec![
        ("gib_s", stream.gib_s),
        ("completed", stream.completed as f64),
    ];
    if stream.completed == 0 {
        return all;
    }
    let profile: &Profile = &stream.profile;
    let total = profile.summary(Phase::Total);
    all.extend([
        ("mean_ns", total.mean_ns),
        ("p50_ns", total.p50_ns),
        ("p90_ns", total.p90_ns),
        ("p99_ns", total.p99_ns),
        ("p999_ns", total.p999_ns),
        ("host_ns", profile.summary(Phase::HostQueueing).mean_ns),
        ("fabric_ns", profile.summary(Phase::FabricTransit).mean_ns),
        ("device_ns", profile.summary(Phase::RemoteExecution).mean_ns),
        ("host_p99_ns", profile.summary(Phase::HostQueueing).p99_ns),
        (
            "fabric_p99_ns",
            profile.summary(Phase::FabricTransit).p99_ns,
        ),
        (
            "device_p99_ns",
            profile.summary(Phase::RemoteExecution).p99_ns,
        ),
    ]);
    all
}

/// Runs every point of an experiment; points are worlds of their own and run beside each other.
///
/// # Errors
///
/// A topology that cannot be read, streams that cannot be, a simulation that stops early.
pub fn run_experiment(
    experiment: &FabricExperiment,
    seed: u64,
) -> Result<Vec<FabricOutcome>, PcieError> {
    let topology = Topology::resolve(&experiment.topology)?;
    let points = experiment.points(&topology, &experiment.id)?;
    let options = experiment.options(seed);
    points
        .par_iter()
        .map(|point| {
            let simulation = play(&topology, point, &options, experiment.end_ns())?;
            Ok(FabricOutcome {
                variant: point.variant.clone(),
                x: point.x.clone(),
                streams: simulation.streams(),
                measured_ns: simulation.now_ps() as f64 / 1000.0,
            })
        })
        .collect()
}

/// Runs the last point of an experiment with recording, and gives the trace for Perfetto.
///
/// # Errors
///
/// As [`run_experiment`].
pub fn trace_experiment(experiment: &FabricExperiment, seed: u64) -> Result<String, PcieError> {
    let topology = Topology::resolve(&experiment.topology)?;
    let points = experiment.points(&topology, &experiment.id)?;
    let options = SimulationOptions {
        trace: true,
        ..experiment.options(seed)
    };
    let Some(point) = points.last() else {
        return Ok(String::from("{\"traceEvents\":[]}"));
    };
    Ok(play(&topology, point, &options, experiment.end_ns())?.to_perfetto())
}

/// To the end if every stream has one, else for the time given.
fn play<'a>(
    topology: &'a Topology,
    point: &FabricPoint,
    options: &SimulationOptions,
    end_ns: u64,
) -> Result<Simulation<'a>, PcieError> {
    let bounded = point.streams.iter().all(|stream| stream.count > 0);
    let options = SimulationOptions {
        warmup_ns: if bounded { 0 } else { options.warmup_ns },
        ..options.clone()
    };
    let mut simulation = Simulation::new(topology, &point.streams, &[], &options)?;
    if bounded {
        simulation.run_to_end(end_ns.saturating_mul(1000))?;
    } else {
        simulation.run_until(end_ns)?;
    }
    Ok(simulation)
}
