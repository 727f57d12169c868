//! The simulator as an estimator, and as what a schedule is replayed in.

use dray_flow::{Estimate, Estimator, FlowError, FlowId, Flows};
use dray_pcie::Topology;
use dray_pcie::sim::{Simulation, SimulationOptions, Source};

use crate::{NamedFlow, PACKET, topology_edges};

/// Runs the flows as streams of writes through the simulator and measures what arrives.
#[derive(Debug)]
pub struct Des<'t> {
    topology: &'t Topology,
    options: SimulationOptions,
    measured_ns: u64,
}

/// A flow below its demand by less than this part is not called limited: the simulator counts whole packets.
const TOLERANCE: f64 = 0.01;
/// A flow of which nothing has arrived is waited for at most this many times as long as the others are measured.
const LONGEST: u64 = 64;

impl<'t> Des<'t> {
    /// Measures for `measured_ns` after half as much of warm-up.
    pub fn new(topology: &'t Topology, options: SimulationOptions, measured_ns: u64) -> Self {
        let options = SimulationOptions {
            warmup_ns: measured_ns / 2,
            ..options
        };
        Self {
            topology,
            options,
            measured_ns,
        }
    }

    fn source(&self, flows: &Flows<'_>, index: usize) -> Result<Source, FlowError> {
        let flow = flows.get(FlowId(index as u32));
        let edges = self.topology.edges();
        let path = topology_edges(self.topology, &flow.path);
        let ends = path.first().zip(path.last());
        let (first, last) = ends.ok_or(FlowError::NoPath { flow: index })?;
        let (from, to) = (edges[first.0 as usize].from, edges[last.0 as usize].to);
        let route = self
            .topology
            .route(from, to)
            .map_err(|error| refused(&error))?;
        if route != path {
            return Err(FlowError::Estimator {
                estimator: "des".into(),
                reason: format!(
                    "flow {index} leaves the route of the topology; the simulator keeps to it"
                ),
            });
        }
        Ok(Source {
            packet: PACKET,
            payload: flow.packets.payload,
            request: flow.packets.request,
            is_halved: flow.packets.is_halved,
            rate_gib_s: flow.demand.is_finite().then_some(flow.demand),
            window_bytes: Some(window(flow.outstanding_bytes)),
            ..Source::new(&index.to_string(), from, to)
        })
    }
}

/// The pace of a flow's sender in the simulator, GiB/s: what the file says, and what the simulator does not have, links between sockets and root
/// complexes. Credits and tags it has itself.
pub fn pace(flow: &NamedFlow) -> Option<f64> {
    let demand = Some(flow.flow.demand).filter(|demand| demand.is_finite());
    demand.filter(|_| !matches!(flow.held_by, Some("credits" | "tags")))
}

fn refused(error: &dray_pcie::PcieError) -> FlowError {
    FlowError::Estimator {
        estimator: "des".into(),
        reason: error.to_string(),
    }
}

impl Estimator for Des<'_> {
    fn name(&self) -> &'static str {
        "des"
    }

    /// Requests of reads are TLPs like others, so that nothing is to be taken off for them.
    fn estimate(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        self.solve(flows)
    }

    fn solve(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        let sources: Vec<Source> = (0..flows.len())
            .map(|index| self.source(flows, index))
            .collect::<Result<_, _>>()?;
        let mut simulation = Simulation::new(self.topology, &[], &sources, &self.options)
            .map_err(|error| refused(&error))?;
        let mut measured_ns = self.measured_ns;
        loop {
            simulation
                .run_until(self.options.warmup_ns + measured_ns)
                .map_err(|error| refused(&error))?;
            let results = simulation.sources();
            // Of a slow flow nothing may arrive in a short time: that is no rate.
            let Some(silent) = results.iter().position(|source| source.gib_s == 0.0) else {
                let rates = results.iter().map(|source| source.gib_s).collect();
                return Ok(Estimate::from_rates(rates, flows, TOLERANCE));
            };
            if measured_ns >= LONGEST * self.measured_ns {
                return Err(FlowError::Estimator {
                    estimator: "des".into(),
                    reason: format!("of flow {silent} nothing arrives in {measured_ns} ns"),
                });
            }
            measured_ns *= 2;
        }
    }
}

/// The window of a source: whole packets go out, so it has room for one.
pub fn window(outstanding_bytes: f64) -> u64 {
    (outstanding_bytes as u64).max(u64::from(PACKET))
}
