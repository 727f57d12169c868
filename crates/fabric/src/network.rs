//! A topology as a network of edges with capacities.

use dray_flow::{Arbiter, EdgeId, Network, Queues};
use dray_pcie::sim::SimulationOptions;
use dray_pcie::{NodeId, NodeKind, QueueOrganisation, Topology};

use crate::error::FabricError;

/// Bytes of a TLP's payload: the smallest MPS of the shipped fabrics.
pub const PACKET: u32 = 256;
/// Bytes of a data credit.
const CREDIT_BYTES: f64 = 16.0;
/// GiB/s in bytes per ns: times are bytes over rates, and these are in GiB/s.
pub const TIME_OF_NS: f64 = (1u64 << 30) as f64 * 1e-9;

/// The edges of `topology` under the same indices, capacities in GiB/s of payload, buffers as the credits for posted
/// writes are; behind them a stage for each root complex whose peer-to-peer writes have a limit.
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
    // What a root complex forwards between devices passes one stage, in the order in which it comes.
    for socket in topology.sockets() {
        let node = topology.node(socket);
        if let NodeKind::Socket { parameters, .. } = &node.kind
            && parameters.peer_write_gib_s > 0.0
        {
            let name = stage_name(topology, socket);
            let id = network.add_stage(&name, &node.name, parameters.peer_write_gib_s)?;
            network.set_arbiter(id, Arbiter::OldestFirst);
        }
    }
    Ok(network)
}

/// The path between two nodes, by the routes of the topology.
pub fn route(
    topology: &Topology,
    network: &Network,
    from: &str,
    to: &str,
) -> Result<Vec<EdgeId>, dray_pcie::PcieError> {
    let path = topology.route_by_name(from, to)?;
    let path: Vec<EdgeId> = path.into_iter().map(|edge| EdgeId(edge.0)).collect();
    Ok(with_stages(topology, network, &path))
}

/// `path` with the stages of the root complexes that forward it from device to device.
pub(crate) fn with_stages(topology: &Topology, network: &Network, path: &[EdgeId]) -> Vec<EdgeId> {
    let mut all = Vec::with_capacity(path.len());
    for (at, edge) in path.iter().enumerate() {
        let next = path.get(at + 1).filter(|_| is_edge(topology, *edge));
        let next = next.filter(|next| is_edge(topology, **next));
        let socket = next.and_then(|next| {
            topology.forwards_between_devices(dray_pcie::EdgeId(edge.0), dray_pcie::EdgeId(next.0))
        });
        all.push(*edge);
        all.extend(socket.and_then(|socket| network.find(&stage_name(topology, socket))));
    }
    all
}

fn stage_name(topology: &Topology, socket: NodeId) -> String {
    format!("{} peer writes", topology.node(socket).name)
}

fn is_edge(topology: &Topology, edge: EdgeId) -> bool {
    edge.index() < topology.edges().len()
}

/// The edges of the topology on a path of the network.
pub fn topology_edges(topology: &Topology, path: &[EdgeId]) -> Vec<dray_pcie::EdgeId> {
    let edges = path.iter().filter(|edge| is_edge(topology, **edge));
    edges.map(|edge| dray_pcie::EdgeId(edge.0)).collect()
}

/// How long a packet takes along `path` if nothing waits, in the unit of a flow's latency.
pub fn latency(topology: &Topology, path: &[EdgeId]) -> f64 {
    topology.latency_ns(&topology_edges(topology, path), PACKET) * TIME_OF_NS
}
