//! A topology as a network of edges with capacities.

use dray_flow::{EdgeId, Network};
use dray_pcie::Topology;

/// The edges of `topology` under the same indices, capacities in GiB/s of payload, buffers as the credits for posted
/// writes are.
pub(super) fn network(topology: &Topology) -> anyhow::Result<Network> {
    let mut network = Network::new();
    for edge in topology.edges() {
        let (from, to) = (topology.node(edge.from), topology.node(edge.to));
        let id = network.add_edge(&edge.name, &from.name, &to.name, edge.capacity_gib_s)?;
        // A flow's writes take posted credits, of 16 bytes each; none means that there is no limit.
        let credits = topology.link(edge.link).credits.posted_data;
        if credits > 0 {
            network.set_buffer(id, f64::from(credits) * 16.0)?;
        }
    }
    Ok(network)
}

/// The path between two nodes, by the routes of the topology.
pub(super) fn route(
    topology: &Topology,
    from: &str,
    to: &str,
) -> Result<Vec<EdgeId>, dray_pcie::PcieError> {
    let path = topology.route_by_name(from, to)?;
    Ok(path.into_iter().map(|edge| EdgeId(edge.0)).collect())
}
