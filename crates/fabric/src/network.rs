//! A topology as a network of edges with capacities.

use dray_flow::{Arbiter, EdgeId, Network, Queues};
use dray_pcie::sim::SimulationOptions;
use dray_pcie::{NodeKind, QueueOrganisation, Topology};

use crate::error::FabricError;

/// Bytes of a TLP's payload: the smallest MPS of the shipped fabrics.
pub const PACKET: u32 = 256;
/// Bytes of a data credit.
const CREDIT_BYTES: f64 = 16.0;
/// GiB/s in bytes per ns: times are bytes over rates, and these are in GiB/s.
pub const TIME_OF_NS: f64 = (1u64 << 30) as f64 * 1e-9;

/// The edges of `topology` under the same indices, capacities in GiB/s of payload, buffers as the credits for posted
/// writes are.
pub fn network(topology: &Topology) -> Result<Network, FabricError> {
    network_with(topology, &SimulationOptions::default())
}

/// The same, with the arbiter and the queues of `options` where it has some.
pub fn network_with(
    topology: &Topology,
    options: &SimulationOptions,
) -> Result<Network, FabricError> {
    let mut network = Network::new();
    for edge in topology.edges() {
        let (from, to) = (topology.node(edge.from), topology.node(edge.to));
        let id = network.add_edge(&edge.name, &from.name, &to.name, edge.capacity_gib_s)?;
        let link = topology.link(edge.link);
        // A flow's writes take posted credits, of 16 bytes each; none means that there is no limit.
        let bytes = |credits: u32, each: f64| match credits {
            0 => f64::INFINITY,
            some => f64::from(some) * each,
        };
        let credits = &link.credits;
        let buffer = bytes(credits.posted_data, CREDIT_BYTES)
            .min(bytes(credits.posted_headers, f64::from(PACKET)));
        if buffer.is_finite() {
            let sending_ns = f64::from(PACKET) / (edge.capacity_gib_s * TIME_OF_NS);
            // A device's engine takes the credits before its bytes are at the port.
            let engine_ns = match &from.kind {
                NodeKind::Endpoint { parameters, .. } => parameters.port_ns + parameters.bus_ns,
                _ => 0.0,
            };
            let round_ns = 2.0 * link.latency_ns
                + link.credit_update_ns
                + to.forward_ns
                + sending_ns
                + engine_ns;
            network.set_buffer(id, buffer, round_ns * TIME_OF_NS)?;
        }
        let arbiter = match options.arbiter.unwrap_or(from.arbiter) {
            dray_pcie::sim::Arbiter::OldestFirst => Arbiter::OldestFirst,
            _ => Arbiter::InTurn,
        };
        network.set_arbiter(id, arbiter);
        // Queues that share a buffer hold each other up when it is full, as one queue does.
        let queues = match options.queues.unwrap_or(to.queues) {
            QueueOrganisation::PerOutput => Queues::PerOutput,
            QueueOrganisation::Fifo | QueueOrganisation::SharedBuffer => Queues::Fifo,
        };
        network.set_queues(id, queues);
    }
    Ok(network)
}

/// The path between two nodes, by the routes of the topology.
pub fn route(
    topology: &Topology,
    from: &str,
    to: &str,
) -> Result<Vec<EdgeId>, dray_pcie::PcieError> {
    let path = topology.route_by_name(from, to)?;
    Ok(path.into_iter().map(|edge| EdgeId(edge.0)).collect())
}

/// How long a packet takes along `path` if nothing waits, in the unit of a flow's latency.
pub fn latency(topology: &Topology, path: &[EdgeId]) -> f64 {
    let path: Vec<_> = path.iter().map(|edge| dray_pcie::EdgeId(edge.0)).collect();
    topology.latency_ns(&path, PACKET) * TIME_OF_NS
}
