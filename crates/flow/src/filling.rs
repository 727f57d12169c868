//! Progressive filling: all flows rise together until an edge or their demand stops them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::compensated::Sum;
use crate::incidence::EdgeIndex;

/// What stopped a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stop {
    Demand,
    Edge(u32),
}

/// An edge while the level rises: one cache line, for all of it is read and written together.
#[repr(align(64))]
#[derive(Clone, Copy, Default)]
pub(crate) struct EdgeState {
    /// Capacity that frozen flows leave.
    pub(crate) remaining: Sum,
    /// Sum of the weights of its active flows, each times what the flow takes here for each unit of its rate.
    pub(crate) weight: Sum,
    /// How many active flows it has.
    pub(crate) count: u32,
}

/// State of the edges while the level rises. Made for a set of active flows; the others are frozen and
/// their rates are taken off `remaining` beforehand.
pub(crate) struct Filling {
    /// By edge.
    pub(crate) edges: Vec<EdgeState>,
    /// By flow.
    active: Vec<bool>,
}

/// The edges of a flow, and what it takes of each for each unit of its rate.
#[inline]
fn uses(incidence: &EdgeIndex<'_, '_>, flow: u32) -> impl Iterator<Item = (u32, f64)> {
    let costs = incidence.costs(flow);
    let edges = incidence.path(flow).iter().enumerate();
    edges.map(move |(hop, &edge)| (edge, costs.get(hop).copied().unwrap_or(1.0)))
}

/// Levels are not negative, and the bits of such floats are in the order of their values.
type Key = Reverse<(u64, u32)>;

impl Filling {
    /// `capacities` by edge; no flow is active.
    pub(crate) fn new(capacities: impl Iterator<Item = f64>, flows: usize) -> Self {
        let edge = |capacity| EdgeState {
            remaining: Sum::new(capacity),
            ..EdgeState::default()
        };
        Self {
            edges: capacities.map(edge).collect(),
            active: vec![false; flows],
        }
    }

    /// Makes `flow` one of those that rise.
    pub(crate) fn activate(&mut self, incidence: &EdgeIndex<'_, '_>, flow: u32) {
        self.active[flow as usize] = true;
        let weight = incidence.weight(flow);
        for (edge, cost) in uses(incidence, flow) {
            let edge = &mut self.edges[edge as usize];
            edge.weight.add(weight * cost);
            edge.count += 1;
        }
    }

    fn level(&self, edge: u32) -> f64 {
        let edge = &self.edges[edge as usize];
        if edge.count == 0 {
            return f64::INFINITY;
        }
        // Adding zero makes a negative zero positive: `Key` is in the order of the bits.
        (edge.remaining.value() / edge.weight.value()).max(0.0) + 0.0
    }

    /// Stops `flow` at `level`: its edges have so much less.
    pub(crate) fn freeze(
        &mut self,
        incidence: &EdgeIndex<'_, '_>,
        flow: u32,
        weight: f64,
        level: f64,
    ) {
        self.active[flow as usize] = false;
        let rate = weight * level;
        for (edge, cost) in uses(incidence, flow) {
            let edge = &mut self.edges[edge as usize];
            edge.remaining.add(-rate * cost);
            edge.weight.add(-weight * cost);
            edge.count -= 1;
        }
    }

    /// Raises the active flows, which `by_demand` lists by increasing `demand / weight` (it may list frozen ones: they are
    /// passed over). Calls `stopped(flow, level, stop)` for each.
    pub(crate) fn run(
        &mut self,
        incidence: &EdgeIndex<'_, '_>,
        by_demand: impl Iterator<Item = (f64, u32)>,
        mut stopped: impl FnMut(u32, f64, Stop),
    ) {
        let mut heap: BinaryHeap<Key> = (0..self.edges.len() as u32)
            .filter(|&edge| self.edges[edge as usize].count > 0)
            .map(|edge| Reverse((self.level(edge).to_bits(), edge)))
            .collect();
        let mut by_demand = by_demand.peekable();
        let mut reached = 0.0f64;
        loop {
            while by_demand
                .next_if(|&(_, flow)| !self.active[flow as usize])
                .is_some()
            {}
            let Some(&(demand_level, flow)) = by_demand.peek() else {
                break;
            };
            // A level in the heap may be old. It has only risen since, so the least one is looked up again.
            let edge_level = loop {
                let Some(&Reverse((bits, edge))) = heap.peek() else {
                    break f64::INFINITY;
                };
                let level = self.level(edge);
                if level == f64::INFINITY {
                    heap.pop();
                    continue;
                }
                if level.to_bits() <= bits || f64::from_bits(bits) >= demand_level {
                    break level;
                }
                heap.pop();
                heap.push(Reverse((level.to_bits(), edge)));
            };
            if demand_level <= edge_level {
                reached = reached.max(demand_level);
                by_demand.next();
                let weight = incidence.weight(flow);
                self.freeze(incidence, flow, weight, demand_level);
                stopped(flow, demand_level, Stop::Demand);
                continue;
            }
            let Some(Reverse((_, edge))) = heap.pop() else {
                break;
            };
            let level = edge_level.max(reached);
            reached = level;
            for &flow in incidence.members(edge) {
                if self.active[flow as usize] {
                    let weight = incidence.weight(flow);
                    self.freeze(incidence, flow, weight, level);
                    stopped(flow, level, Stop::Edge(edge));
                }
            }
        }
    }
}
