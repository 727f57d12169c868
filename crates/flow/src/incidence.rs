//! Which flows take which edge.

use crate::flows::Flows;

/// Flows by edge, one list after the other.
pub(crate) struct EdgeIndex<'f, 'n> {
    flows: &'f Flows<'n>,
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl<'f, 'n> EdgeIndex<'f, 'n> {
    pub(crate) fn new(flows: &'f Flows<'n>) -> Self {
        let edges = flows.network().edges().len();
        let mut starts = vec![0u32; edges + 1];
        for &edge in flows.hops() {
            starts[edge as usize + 1] += 1;
        }
        for edge in 0..edges {
            starts[edge + 1] += starts[edge];
        }
        let mut next = starts.clone();
        let mut members = vec![0u32; flows.hops().len()];
        for flow in 0..flows.len() {
            for &edge in flows.path(flow) {
                let at = &mut next[edge as usize];
                members[*at as usize] = flow as u32;
                *at += 1;
            }
        }
        Self {
            flows,
            starts,
            members,
        }
    }

    pub(crate) fn path(&self, flow: u32) -> &[u32] {
        self.flows.path(flow as usize)
    }

    pub(crate) fn members(&self, edge: u32) -> &[u32] {
        let edge = edge as usize;
        &self.members[self.starts[edge] as usize..self.starts[edge + 1] as usize]
    }

    pub(crate) fn weight(&self, flow: u32) -> f64 {
        self.flows.weight(flow as usize)
    }

    /// By edge of the path: what the flow takes for each unit of its rate; empty if that is 1.
    pub(crate) fn costs(&self, flow: u32) -> &[f64] {
        self.flows.costs(flow as usize)
    }
}
