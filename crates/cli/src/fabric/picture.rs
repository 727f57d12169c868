//! The loaded topology as SVG.

use dray_pcie::Topology;

use crate::complain::Usage;

/// More nodes make no picture that can be read.
const MAX_NODES: usize = 300;

/// Draws `topology` with the `loads` of its edges (GiB/s, in their order), which `estimator` gives.
pub(super) fn loaded(
    topology: &Topology,
    loads: &[f64],
    estimator: &str,
) -> anyhow::Result<String> {
    let nodes = topology.nodes().len();
    if nodes > MAX_NODES {
        return Err(Usage::error(
            format!(
                "{} has {nodes} nodes; a picture has room for {MAX_NODES}",
                topology.name
            ),
            "--format csv or json has all edges",
        ));
    }
    let load = |edge: dray_pcie::EdgeId| {
        let at = loads[edge.0 as usize];
        let capacity = topology.edge(edge).capacity_gib_s;
        Some((at / capacity, format!("{at:.2}")))
    };
    let note = format!(
        "GiB/s down / up by {estimator}; red: full, orange: above 70 %, green: in use, grey: idle"
    );
    Ok(topology.to_svg_with(&load, &note))
}
