//! The fabric as directed edges with capacities.

use std::collections::HashMap;

use crate::error::FlowError;
use crate::port::{Arbiter, Port, Queues};

/// Least capacity, demand, weight or outstanding size.
pub(crate) const MIN: f64 = 1e-15;
/// Greatest capacity, demand, weight or outstanding size.
pub(crate) const MAX: f64 = 1e18;

/// Index of an edge in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeId(pub u32);

impl EdgeId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One direction of one link: the egress of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    name: String,
    from: u32,
    to: u32,
    capacity: f64,
    port: Port,
}

impl Edge {
    /// Its name, unique in the network.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it carries at most, in the unit of all rates.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }
}

/// Nodes and the directed edges between them.
#[derive(Clone, Debug, Default)]
pub struct Network {
    nodes: Vec<String>,
    node_index: HashMap<String, u32>,
    edges: Vec<Edge>,
    edge_index: HashMap<String, u32>,
}

impl Network {
    /// A network without edges.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the directed edge `name` from node `from` to node `to`; nodes come into being as they
    /// are named. `capacity` is in the unit of all rates, finite and above zero.
    pub fn add_edge(
        &mut self,
        name: &str,
        from: &str,
        to: &str,
        capacity: f64,
    ) -> Result<EdgeId, FlowError> {
        if from == to {
            return Err(FlowError::Loop {
                edge: name.into(),
                node: from.into(),
            });
        }
        self.insert(name, from, to, capacity)
    }

    /// Adds the stage `name` inside `node`: what passes through the node by way of it shares `capacity`. In a path it
    /// stands between an edge to the node and one from it.
    pub fn add_stage(
        &mut self,
        name: &str,
        node: &str,
        capacity: f64,
    ) -> Result<EdgeId, FlowError> {
        self.insert(name, node, node, capacity)
    }

    fn insert(
        &mut self,
        name: &str,
        from: &str,
        to: &str,
        capacity: f64,
    ) -> Result<EdgeId, FlowError> {
        if !(MIN..=MAX).contains(&capacity) {
            return Err(FlowError::Capacity {
                edge: name.into(),
                value: capacity,
                min: MIN,
                max: MAX,
            });
        }
        if self.edge_index.contains_key(name) {
            return Err(FlowError::DuplicateEdge { edge: name.into() });
        }
        let id = u32::try_from(self.edges.len())
            .ok()
            .filter(|&id| id < u32::MAX)
            .ok_or(FlowError::TooManyEdges {
                limit: u32::MAX as usize,
            })?;
        let from = self.node(from);
        let to = self.node(to);
        self.edge_index.insert(name.into(), id);
        self.edges.push(Edge {
            name: name.into(),
            from,
            to,
            capacity,
            port: Port::default(),
        });
        Ok(EdgeId(id))
    }

    fn node(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.node_index.get(name) {
            return id;
        }
        // Two nodes an edge at most, and edges are counted before.
        let id = self.nodes.len() as u32;
        self.nodes.push(name.into());
        self.node_index.insert(name.into(), id);
        id
    }

    /// Says how many bytes fit into a buffer at the end of the edge `id`: the credits of its receiver. Without it
    /// the buffer is taken to be as large as needed. `round` is for how long a byte takes room in it beside its waiting there:
    /// from leaving the sender to the sender's knowing that there is room again. Times are bytes over rates: seconds, if rates
    /// are bytes a second.
    ///
    /// # Panics
    /// If the id is of another network and too large.
    pub fn set_buffer(&mut self, id: EdgeId, bytes: f64, round: f64) -> Result<(), FlowError> {
        let edge = &mut self.edges[id.index()];
        if !(MIN..=MAX).contains(&bytes) {
            return Err(FlowError::Buffer {
                edge: edge.name.clone(),
                value: bytes,
                min: MIN,
                max: MAX,
            });
        }
        if !(0.0..=MAX).contains(&round) {
            return Err(FlowError::Round {
                edge: edge.name.clone(),
                value: round,
                max: MAX,
            });
        }
        edge.port.buffer = Some(bytes);
        edge.port.round = round;
        Ok(())
    }

    /// Says how the sender of the edge `id` chooses.
    ///
    /// # Panics
    /// If the id is of another network and too large.
    pub fn set_arbiter(&mut self, id: EdgeId, arbiter: Arbiter) {
        self.edges[id.index()].port.arbiter = arbiter;
    }

    /// Says how the receiver of the edge `id` queues.
    ///
    /// # Panics
    /// If the id is of another network and too large.
    pub fn set_queues(&mut self, id: EdgeId, queues: Queues) {
        self.edges[id.index()].port.queues = queues;
    }

    pub(crate) fn port(&self, edge: u32) -> &Port {
        &self.edges[edge as usize].port
    }

    /// All edges, in order of their ids.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The edge `id`.
    ///
    /// # Panics
    /// If the id is of another network and too large.
    pub fn edge(&self, id: EdgeId) -> &Edge {
        &self.edges[id.index()]
    }

    /// The edge called `name`.
    pub fn find(&self, name: &str) -> Option<EdgeId> {
        self.edge_index.get(name).copied().map(EdgeId)
    }

    /// Name of the node that `id` starts at.
    pub fn start(&self, id: EdgeId) -> &str {
        &self.nodes[self.edge(id).from as usize]
    }

    /// Name of the node that `id` ends at.
    pub fn end(&self, id: EdgeId) -> &str {
        &self.nodes[self.edge(id).to as usize]
    }

    /// What path `path` of flow `flow` breaks, if it does: no edge, an edge that is not there, a gap, an edge
    /// taken twice.
    pub(crate) fn check_path(&self, flow: usize, path: &[EdgeId]) -> Result<(), FlowError> {
        if path.is_empty() {
            return Err(FlowError::NoPath { flow });
        }
        if let Some(edge) = path.iter().find(|edge| edge.index() >= self.edges.len()) {
            return Err(FlowError::UnknownEdge {
                flow,
                edge: edge.index(),
                edges: self.edges.len(),
            });
        }
        for pair in path.windows(2) {
            let (before, after) = (self.edge(pair[0]), self.edge(pair[1]));
            if before.to != after.from {
                return Err(FlowError::Gap {
                    flow,
                    edge: after.name.clone(),
                    starts: self.nodes[after.from as usize].clone(),
                    before: before.name.clone(),
                    ends: self.nodes[before.to as usize].clone(),
                });
            }
        }
        if let Some(edge) = first_repeated(path) {
            return Err(FlowError::RepeatedEdge {
                flow,
                edge: self.edge(edge).name.clone(),
            });
        }
        Ok(())
    }
}

fn first_repeated(path: &[EdgeId]) -> Option<EdgeId> {
    if path.len() <= 16 {
        return (1..path.len())
            .find(|&at| path[..at].contains(&path[at]))
            .map(|at| path[at]);
    }
    let mut sorted = path.to_vec();
    sorted.sort_unstable();
    sorted
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Network {
        let mut network = Network::new();
        network.add_edge("ab", "a", "b", 1.0).unwrap();
        network.add_edge("bc", "b", "c", 1.0).unwrap();
        network.add_edge("ba", "b", "a", 1.0).unwrap();
        network
    }

    #[test]
    fn disconnected_paths_and_repeated_edges_are_refused() {
        let network = line();
        let path = |ids: &[u32]| {
            let ids: Vec<EdgeId> = ids.iter().copied().map(EdgeId).collect();
            network.check_path(7, &ids)
        };
        assert_eq!(path(&[0, 1]), Ok(()));
        assert_eq!(path(&[]), Err(FlowError::NoPath { flow: 7 }));
        assert!(matches!(
            path(&[9]),
            Err(FlowError::UnknownEdge {
                edge: 9,
                edges: 3,
                ..
            })
        ));
        assert_eq!(
            path(&[1, 0]).unwrap_err().to_string(),
            "flow 7: edge `ab` starts at node `a`, but the edge before it, `bc`, ends at node `c`; a path is connected"
        );
        assert!(matches!(
            path(&[0, 2, 0]),
            Err(FlowError::RepeatedEdge { .. })
        ));
    }

    #[test]
    fn capacities_must_be_positive_and_finite() {
        let mut network = Network::new();
        for value in [
            0.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e308,
            1e-300,
        ] {
            assert!(
                matches!(
                    network.add_edge("e", "a", "b", value),
                    Err(FlowError::Capacity { .. })
                ),
                "{value}"
            );
        }
        assert!(network.edges().is_empty());
        assert!(matches!(
            network.add_edge("e", "a", "a", 1.0),
            Err(FlowError::Loop { .. })
        ));
        network.add_edge("e", "a", "b", 1.0).unwrap();
        assert!(matches!(
            network.add_edge("e", "b", "a", 1.0),
            Err(FlowError::DuplicateEdge { .. })
        ));
    }
}
