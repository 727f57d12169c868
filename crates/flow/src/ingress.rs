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
/// among them in proportion to their outstanding bytes, as far as those fit into the buffer behind the ingress
/// ([`Network::set_buffer`](crate::Network::set_buffer)). If they do not, the buffer is full, and all flows over the edge
/// before it wait for its credits: that edge carries only so much that those flows get their part, and shares it as every edge
/// does. Capacity that a flow cannot use because of another edge goes to the others, so the edges depend on each other:
/// they are solved in turn until no rate changes. Where full buffers of several edges hold each other and this does not
/// settle, a full buffer holds up only the flows that fill it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ingress;

/// Rounds over all edges that changed.
const ROUNDS: usize = 2_000;
/// Rounds in which full buffers hold the edges before them.
const HOLDING: usize = 300;
/// From this round on, a rate moves half of the way.
const DAMPED: usize = 30;
/// Relative change of a rate that counts.
const SETTLED: f64 = 1e-12;
/// Relative change that is accepted when the rounds are used up.
const ACCEPTED: f64 = 1e-6;

/// A flow's passage through an edge.
#[derive(Clone, Copy)]
struct Hop {
    flow: u32,
    /// Index among all hops of all flows.
    at: u32,
}

struct Lanes<'f, 'n> {
    flows: &'f Flows<'n>,
    /// Hops by edge, and there by ingress.
    hops: Vec<Hop>,
    /// By lane (an ingress of an edge): its hops.
    lanes: Vec<std::ops::Range<usize>>,
    /// By edge: its lanes.
    edges: Vec<std::ops::Range<usize>>,
    /// By hop of all flows: its lane.
    lane_of: Vec<u32>,
    /// By hop of all flows: what the edge leaves the flow; infinite if it limits it not.
    caps: Vec<f64>,
    /// By lane: what the edge before it carries while this lane keeps the buffer between them full; infinite if it does not.
    held: Vec<f64>,
    /// By edge: the lanes that its flows go on through, behind the buffer at its end.
    onward: Vec<Vec<u32>>,
    /// Whether a full buffer holds up all flows of the edge before it, or only those that fill it.
    holds: bool,
}

/// What tells the ingresses of an edge apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum From {
    Edge(u32),
    Source(u32),
    Flow(u32),
}

/// A flow that wants a part of what its lane gets.
#[derive(Clone, Copy)]
struct Claim {
    hop: Hop,
    /// What limits it elsewhere.
    cap: f64,
    got: f64,
}

impl<'f, 'n> Lanes<'f, 'n> {
    fn new(flows: &'f Flows<'n>, holds: bool) -> Self {
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
            caps: vec![f64::INFINITY; sorted.len()],
            held: Vec::new(),
            holds,
            onward: vec![Vec::new(); flows.network().edges().len()],
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
                if let From::Edge(before) = from {
                    this.onward[before as usize].push(this.lanes.len() as u32);
                }
                this.lanes.push(start..this.hops.len());
                this.held.push(f64::INFINITY);
            }
            this.edges.push(first..this.lanes.len());
        }
        this
    }

    /// What flow `flow` gets if only its demand and the hops other than `except` limit it, and which hop.
    fn limit(&self, flow: usize, except: [Option<usize>; 2]) -> (f64, Option<usize>) {
        let mut least = (self.flows.demand(flow), None);
        for at in self.flows.span(flow) {
            if self.caps[at] < least.0 && !except.contains(&Some(at)) {
                least = (self.caps[at], Some(at));
            }
        }
        least
    }

    /// Solves `edge` for what limits its flows elsewhere. `step` is how far its rates move towards the solution. Pushes the
    /// flows that changed and returns the largest relative change.
    fn solve(
        &mut self,
        edge: usize,
        step: f64,
        scratch: &mut Scratch,
        changed: &mut Vec<u32>,
        upstream: &mut Vec<u32>,
    ) -> f64 {
        let lanes = self.edges[edge].clone();
        scratch.claims.clear();
        scratch.offers.clear();
        for lane in lanes.clone() {
            let mut offered = 0.0;
            for &hop in &self.hops[self.lanes[lane].clone()] {
                // What holds the edge before is this lane itself.
                let held = self.held[lane].is_finite().then(|| hop.at as usize - 1);
                let cap = self
                    .limit(hop.flow as usize, [Some(hop.at as usize), held])
                    .0;
                scratch.claims.push(Claim { hop, cap, got: cap });
                offered += cap;
            }
            scratch.offers.push(offered);
        }
        scratch.shares.clear();
        scratch
            .shares
            .extend(scratch.offers.iter().map(|&cap| Share { cap, weight: 1.0 }));
        let share = water_level(&mut scratch.shares, self.capacity(edge));
        let mut largest = 0.0f64;
        let mut claims = std::mem::take(&mut scratch.claims);
        let mut rest = claims.as_mut_slice();
        for (index, lane) in lanes.enumerate() {
            let (here, after) = rest.split_at_mut(self.lanes[lane].len());
            rest = after;
            let full = scratch.offers[index] > share;
            let mut held = f64::INFINITY;
            if full {
                held = self.divide(here, share, &mut scratch.shares);
            }
            let before = here.first().and_then(|claim| self.before(claim.hop));
            if let Some(before) = before {
                let old = self.held[lane];
                if old.is_finite() && held.is_finite() {
                    held = old + step * (held - old);
                }
                let change = relative(old, held);
                if change > SETTLED {
                    self.held[lane] = held;
                    largest = largest.max(change);
                    upstream.push(before);
                }
            }
            for claim in here {
                let limited = full && claim.got < claim.cap;
                let mut cap = if limited { claim.got } else { f64::INFINITY };
                let old = self.caps[claim.hop.at as usize];
                if old.is_finite() && cap.is_finite() {
                    cap = old + step * (cap - old);
                }
                let change = relative(old, cap);
                if change > SETTLED {
                    self.caps[claim.hop.at as usize] = cap;
                    largest = largest.max(change);
                    changed.push(claim.hop.flow);
                }
            }
        }
        scratch.claims = claims;
        largest
    }

    /// Solves the edges in turn, at most `rounds` times, until nothing changes. Gives the last relative change.
    fn settle(&mut self, rounds: usize) -> f64 {
        let flows = self.flows;
        let mut wrong = vec![true; self.edges.len()];
        let mut scratch = Scratch::default();
        let (mut changed, mut upstream) = (Vec::new(), Vec::new());
        let mut largest = 0.0;
        for round in 0..rounds {
            let step = if round < DAMPED { 1.0 } else { 0.5 };
            largest = 0.0f64;
            for edge in 0..wrong.len() {
                if !std::mem::take(&mut wrong[edge]) {
                    continue;
                }
                changed.clear();
                upstream.clear();
                let change = self.solve(edge, step, &mut scratch, &mut changed, &mut upstream);
                largest = largest.max(change);
                for &other in &upstream {
                    wrong[other as usize] = true;
                }
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
        largest
    }

    /// What an edge carries: its capacity, or what a full buffer at its end takes.
    fn capacity(&self, edge: usize) -> f64 {
        let held = self.onward[edge]
            .iter()
            .map(|&lane| self.held[lane as usize]);
        held.fold(self.flows.capacity(edge), f64::min)
    }

    /// The edge before a hop on the path of its flow.
    fn before(&self, hop: Hop) -> Option<u32> {
        let start = self.flows.span(hop.flow as usize).start;
        let at = (hop.at as usize).checked_sub(1).filter(|&at| at >= start)?;
        Some(self.flows.hops()[at])
    }

    /// Divides what a lane gets among its flows, of which the caps add up to more. If their bytes do not fit into the buffer
    /// before it, gives what the edge before then carries, and leaves the flows to that edge.
    fn divide(&self, claims: &mut [Claim], amount: f64, shares: &mut Vec<Share>) -> f64 {
        let window = |claim: &Claim| self.flows.outstanding(claim.hop.flow as usize);
        by_window(claims, amount, window, shares);
        let before = claims.first().and_then(|claim| self.before(claim.hop));
        let buffer = before.and_then(|before| self.flows.network().buffer(EdgeId(before)));
        let (Some(before), Some(buffer)) = (before, buffer) else {
            return f64::INFINITY;
        };
        // A flow that has a window of W and the rate x stays for W / x. What stays for so long is in the buffer.
        let longest = claims
            .iter()
            .filter(|claim| claim.got < claim.cap)
            .map(|claim| window(claim) / claim.got);
        let stay = longest.fold(0.0, f64::max);
        if amount * stay <= buffer {
            return f64::INFINITY;
        }
        let stay = buffer / amount;
        for claim in claims.iter_mut() {
            claim.got = claim.cap.min(window(claim) / stay);
        }
        if self.holds {
            return self.held(before as usize, claims, amount, stay);
        }
        self.by_ingress(claims, 1, amount, shares);
        f64::INFINITY
    }

    /// Divides `amount` among claims, of which `got` is what each takes at most: max-min among the ingresses of the edge that is
    /// `back` before this one, and so on back to the sources.
    fn by_ingress(&self, claims: &mut [Claim], back: usize, amount: f64, shares: &mut Vec<Share>) {
        let total: f64 = claims.iter().map(|claim| claim.got).sum();
        if total <= amount {
            return;
        }
        // A flow whose path is no longer has no ingress there: its source divides by windows.
        let lane = |claim: &Claim| {
            let start = self.flows.span(claim.hop.flow as usize).start;
            let at = (claim.hop.at as usize)
                .checked_sub(back)
                .filter(|&at| at >= start);
            at.map(|at| self.lane_of[at])
        };
        if claims.iter().all(|claim| lane(claim).is_none()) {
            let window = |claim: &Claim| self.flows.outstanding(claim.hop.flow as usize);
            let caps: Vec<f64> = claims.iter().map(|claim| claim.cap).collect();
            claims.iter_mut().for_each(|claim| claim.cap = claim.got);
            by_window(claims, amount, window, shares);
            claims
                .iter_mut()
                .zip(caps)
                .for_each(|(claim, cap)| claim.cap = cap);
            return;
        }
        claims.sort_unstable_by_key(|claim| (lane(claim), claim.hop.at));
        let groups = || claims.chunk_by(|a, b| lane(a) == lane(b));
        shares.clear();
        shares.extend(groups().map(|group| Share {
            cap: group.iter().map(|claim| claim.got).sum(),
            weight: 1.0,
        }));
        let level = water_level(shares, amount);
        for group in claims.chunk_by_mut(|a, b| lane(a) == lane(b)) {
            self.by_ingress(group, back + 1, level, shares);
        }
    }

    /// What `edge` carries if of the flows over it those of `claims` get `amount`. Bytes of these stay in its buffer for `stay`.
    fn held(&self, edge: usize, claims: &[Claim], amount: f64, stay: f64) -> f64 {
        let mut lanes: Vec<Vec<(f64, f64, bool)>> = Vec::new();
        for lane in self.edges[edge].clone() {
            let flows = self.hops[self.lanes[lane].clone()].iter().map(|hop| {
                let flow = hop.flow as usize;
                let mine = claims.iter().any(|claim| claim.hop.flow == hop.flow);
                let window = self.flows.outstanding(flow);
                let mut cap = self.flows.demand(flow);
                for at in self.flows.span(flow) {
                    if at != hop.at as usize && (!mine || at != hop.at as usize + 1) {
                        cap = cap.min(self.caps[at]);
                    }
                }
                (
                    if mine { cap.min(window / stay) } else { cap },
                    window,
                    mine,
                )
            });
            lanes.push(flows.collect());
        }
        let taken = |total: f64| {
            let mut shares: Vec<Share> = lanes
                .iter()
                .map(|lane| Share {
                    cap: lane.iter().map(|flow| flow.0).sum(),
                    weight: 1.0,
                })
                .collect();
            let share = water_level(&mut shares, total);
            let mut sum = 0.0;
            for lane in &lanes {
                let mut flows: Vec<Share> = lane
                    .iter()
                    .map(|&(cap, window, _)| Share {
                        cap: cap / window,
                        weight: window,
                    })
                    .collect();
                let level = water_level(&mut flows, share.min(f64::MAX));
                sum += lane
                    .iter()
                    .filter(|flow| flow.2)
                    .map(|&(cap, window, _)| cap.min(window * level))
                    .sum::<f64>();
            }
            sum
        };
        let (mut low, mut high) = (amount, self.flows.capacity(edge));
        if taken(high) <= amount {
            return f64::INFINITY;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if taken(middle) > amount {
                high = middle
            } else {
                low = middle
            }
        }
        high
    }
}

/// Divides `amount` in proportion to `window`, no claim above its cap.
fn by_window(
    claims: &mut [Claim],
    amount: f64,
    window: impl Fn(&Claim) -> f64,
    shares: &mut Vec<Share>,
) {
    shares.clear();
    shares.extend(claims.iter().map(|claim| Share {
        cap: claim.cap / window(claim),
        weight: window(claim),
    }));
    let level = water_level(shares, amount);
    for claim in claims {
        claim.got = claim.cap.min(window(claim) * level);
    }
}

#[derive(Default)]
struct Scratch {
    offers: Vec<f64>,
    shares: Vec<Share>,
    claims: Vec<Claim>,
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
        let mut lanes = Lanes::new(flows, true);
        if lanes.settle(HOLDING) > ACCEPTED {
            lanes = Lanes::new(flows, false);
            let change = lanes.settle(ROUNDS);
            if change > ACCEPTED {
                return Err(FlowError::NotSettled {
                    rounds: ROUNDS,
                    change,
                });
            }
        }
        let (mut rates, mut limits) = (Vec::new(), Vec::new());
        for flow in 0..flows.len() {
            let (rate, at) = lanes.limit(flow, [None; 2]);
            rates.push(rate);
            limits.push(at.map_or(Limit::Demand, |at| Limit::Edge(EdgeId(flows.hops()[at]))));
        }
        Ok(Estimate::new(rates, limits))
    }
}
