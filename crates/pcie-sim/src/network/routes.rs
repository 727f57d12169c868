//! Routes, each found once and kept in one table of hops.

use std::collections::HashMap;

use crate::tlp::NONE;
use dray_topology::PcieError;
use dray_topology::{NodeId, Topology};

/// A route in the table of hops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) first: u32,
    pub(crate) mps: u32,
    pub(crate) mrrs: u32,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// The edges of all routes; [`NONE`] ends each.
    pub(super) hops: Vec<u32>,
    pub(super) list: Vec<Route>,
    known: HashMap<(NodeId, NodeId), u32>,
}

impl Routes {
    /// The route between two nodes; found once.
    pub(super) fn between(
        &mut self,
        topology: &Topology,
        from: NodeId,
        to: NodeId,
    ) -> Result<u32, PcieError> {
        if let Some(route) = self.known.get(&(from, to)) {
            return Ok(*route);
        }
        let path = topology.route(from, to)?;
        let id = self.list.len() as u32;
        let first = path[0].0 as usize;
        // A device's requests are as long as its own link allows.
        let mrrs = |edge: usize| topology.link(topology.edges()[edge].link).mrrs;
        self.list.push(Route {
            first: self.hops.len() as u32,
            mps: topology.path_mps(&path),
            mrrs: mrrs(first),
        });
        self.hops.extend(path.iter().map(|edge| edge.0));
        self.hops.push(NONE);
        self.known.insert((from, to), id);
        Ok(id)
    }
}
