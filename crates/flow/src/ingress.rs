//! Max-min between the ingresses of each port, by outstanding bytes inside one.

use crate::error::FlowError;
use crate::estimate::{Estimate, Estimator, Limit};
use crate::flows::Flows;
use crate::level::{Share, water_level};
use crate::network::EdgeId;

/// A port's arbiter serves its ingresses in turn, not its flows (rPCIeBench, NSDI'24, section 5.1: credits are
/// divided evenly over the active lanes); inside one ingress a flow has the share of its outstanding bytes (section 4.5).
///
/// The ingress of a flow at an edge is the edge before it on its path; at its first edge, its source. Each edge
/// shares its capacity max-min among its ingresses. An ingress that gets less than its flows could use shares that
/// among them in proportion to their outstanding bytes. Capacity that a flow cannot use because of another edge goes to
/// the others, so the edges depend on each other: they are solved in turn until no rate changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ingress;

/// Rounds over all edges that changed.
const ROUNDS: usize = 2_000;
/// From this round on, a level moves half of the way.
const DAMPED: usize = 200;
/// Relative change of a level that counts.
const SETTLED: f64 = 1e-12;
/// Relative change that is accepted when the rounds are used up.
const ACCEPTED: f64 = 1e-6;

/// One ingress of one edge: its hops in `Lanes::hops`, and the level of its flows.
struct Lane {
    hops: std::ops::Range<usize>,
    level: f64,
}

/// A flow's passage through a lane.
#[derive(Clone, Copy)]
struct Hop {
    flow: u32,
    /// Index among all hops of all flows.
    at: u32,
}

struct Lanes<'f, 'n> {
    flows: &'f Flows<'n>,
    lanes: Vec<Lane>,
    hops: Vec<Hop>,
    /// By edge: its lanes.
    edges: Vec<std::ops::Range<usize>>,
    /// By hop of all flows: its lane.
    lane_of: Vec<u32>,
}

/// What tells the ingresses of an edge apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum From {
    Edge(u32),
    Source(u32),
    Flow(u32),
}

impl<'f, 'n> Lanes<'f, 'n> {
    fn new(flows: &'f Flows<'n>) -> Self {
        let mut sorted: Vec<(u32, From, Hop)> = Vec::with_capacity(flows.hops().len());
        for flow in 0..flows.len() {
            let mut from = flows
                .source(flow)
                .map_or(From::Flow(flow as u32), From::Source);
            for at in flows.span(flow) {
                let edge = flows.hops()[at];
                let hop = Hop {
                    flow: flow as u32,
                    at: at as u32,
                };
                sorted.push((edge, from, hop));
                from = From::Edge(edge);
            }
        }
        sorted.sort_unstable_by_key(|&(edge, from, hop)| (edge, from, hop.at));
        let mut this = Self {
            flows,
            lanes: Vec::new(),
            hops: Vec::with_capacity(sorted.len()),
            edges: Vec::with_capacity(flows.network().edges().len()),
            lane_of: vec![0; sorted.len()],
        };
        let mut rest = sorted.as_slice();
        for edge in 0..flows.network().edges().len() as u32 {
            let first = this.lanes.len();
            while let Some(&(_, from, _)) = rest.first().filter(|hop| hop.0 == edge) {
                let start = this.hops.len();
                while let Some(&(_, _, hop)) =
                    rest.first().filter(|hop| (hop.0, hop.1) == (edge, from))
                {
                    this.lane_of[hop.at as usize] = this.lanes.len() as u32;
                    this.hops.push(hop);
                    rest = &rest[1..];
                }
                this.lanes.push(Lane {
                    hops: start..this.hops.len(),
                    level: f64::INFINITY,
                });
            }
            this.edges.push(first..this.lanes.len());
        }
        this
    }

    /// What flow `flow` gets if only its demand and the hops other than `except` limit it, and which hop.
    fn limit(&self, flow: usize, except: Option<usize>) -> (f64, Option<usize>) {
        let weight = self.flows.outstanding(flow);
        let mut least = (self.flows.demand(flow), None);
        for at in self.flows.span(flow) {
            let level = self.lanes[self.lane_of[at] as usize].level;
            if weight * level < least.0 && Some(at) != except {
                least = (weight * level, Some(at));
            }
        }
        least
    }

    /// Solves `edge` for what limits its flows elsewhere. `step` is how far its levels move towards the solution. Pushes the
    /// flows of changed lanes and returns the largest relative change.
    fn solve(
        &mut self,
        edge: usize,
        step: f64,
        scratch: &mut Scratch,
        changed: &mut Vec<u32>,
    ) -> f64 {
        let lanes = self.edges[edge].clone();
        scratch.lanes.clear();
        scratch.limits.clear();
        for lane in lanes.clone() {
            let mut offered = 0.0;
            for hop in &self.hops[self.lanes[lane].hops.clone()] {
                let limit = self.limit(hop.flow as usize, Some(hop.at as usize)).0;
                scratch.limits.push(limit);
                offered += limit;
            }
            scratch.lanes.push(Share {
                cap: offered,
                weight: 1.0,
            });
        }
        let offers: Vec<f64> = scratch.lanes.iter().map(|share| share.cap).collect();
        let share = water_level(&mut scratch.lanes, self.flows.capacity(edge));
        let mut largest = 0.0f64;
        let mut limits = scratch.limits.iter();
        for (lane, offered) in lanes.zip(offers) {
            let hops = self.lanes[lane].hops.clone();
            scratch.flows.clear();
            scratch
                .flows
                .extend(self.hops[hops.clone()].iter().zip(limits.by_ref()).map(
                    |(hop, &limit)| {
                        let weight = self.flows.outstanding(hop.flow as usize);
                        Share {
                            cap: limit / weight,
                            weight,
                        }
                    },
                ));
            let mut level = if offered > share {
                water_level(&mut scratch.flows, share)
            } else {
                f64::INFINITY
            };
            let old = self.lanes[lane].level;
            if old.is_finite() && level.is_finite() {
                level = old + step * (level - old);
            }
            let change = relative(old, level);
            if change > SETTLED {
                self.lanes[lane].level = level;
                largest = largest.max(change);
                changed.extend(self.hops[hops].iter().map(|hop| hop.flow));
            }
        }
        largest
    }
}

#[derive(Default)]
struct Scratch {
    lanes: Vec<Share>,
    flows: Vec<Share>,
    limits: Vec<f64>,
}

fn relative(old: f64, new: f64) -> f64 {
    if old == new {
        0.0
    } else if old.is_infinite() || new.is_infinite() {
        1.0
    } else {
        (new - old).abs() / old.max(new)
    }
}

impl Estimator for Ingress {
    fn name(&self) -> &'static str {
        "ingress"
    }

    fn estimate(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        let mut lanes = Lanes::new(flows);
        let edges = flows.network().edges().len();
        let mut wrong = vec![true; edges];
        let mut scratch = Scratch::default();
        let mut changed = Vec::new();
        let mut largest = 0.0;
        for round in 0..ROUNDS {
            let step = if round < DAMPED { 1.0 } else { 0.5 };
            largest = 0.0f64;
            for edge in 0..edges {
                if !std::mem::take(&mut wrong[edge]) {
                    continue;
                }
                changed.clear();
                let change = lanes.solve(edge, step, &mut scratch, &mut changed);
                largest = largest.max(change);
                for &flow in &changed {
                    for &other in flows.path(flow as usize) {
                        wrong[other as usize] |= other as usize != edge || step < 1.0;
                    }
                }
            }
            if largest == 0.0 {
                break;
            }
        }
        if largest > ACCEPTED {
            return Err(FlowError::NotSettled {
                rounds: ROUNDS,
                change: largest,
            });
        }
        let (mut rates, mut limits) = (Vec::new(), Vec::new());
        for flow in 0..flows.len() {
            let (rate, at) = lanes.limit(flow, None);
            rates.push(rate);
            limits.push(at.map_or(Limit::Demand, |at| Limit::Edge(EdgeId(flows.hops()[at]))));
        }
        Ok(Estimate::new(rates, limits))
    }
}
