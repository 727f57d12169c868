//! Waiting times, computed in turn until no rate changes.

use super::delay::Loop;
use super::queues::Structure;
use super::share::{self, Offer, Outcome};
use crate::flows::Flows;
use crate::port::Arbiter;

/// Rounds over all constraints.
const ROUNDS: usize = 6_000;
/// Change of a waiting time, as a part of how long a byte is on its way, that ends the rounds.
const SETTLED: f64 = 1e-10;
/// Rounds after which the change must have become less, or else waiting times move half as far.
const WATCHED: usize = 100;
/// Least part of the way to its new value that a waiting time moves in a round.
const SMALLEST_STEP: f64 = 1.0 / 512.0;
/// Range of each rate over `WATCHED` rounds, as a part of it, that ends rounds of smaller steps too.
const STEADY: f64 = 1e-3;
/// Change of a time, as a part of it, that counts as none.
const UNCHANGED: f64 = 1e-13;

pub(super) struct Solver<'f, 'n> {
    flows: &'f Flows<'n>,
    structure: Structure,
    pub(super) rates: Vec<f64>,
    /// By queue: how long its bytes wait.
    waits: Vec<f64>,
    /// By flow: how long a byte is on its way with all its waiting.
    times: Vec<f64>,
    /// Counts changes.
    now: u64,
    scratch: Scratch,
}

/// What a rate was in some rounds.
#[derive(Clone, Copy, Default)]
struct Range {
    least: f64,
    most: f64,
    sum: f64,
    count: u32,
}

impl Range {
    fn add(&mut self, rate: f64) {
        self.least = if self.count == 0 {
            rate
        } else {
            rate.min(self.least)
        };
        self.most = rate.max(self.most);
        self.sum += rate;
        self.count += 1;
    }

    fn is_steady(&self) -> bool {
        self.most - self.least <= STEADY * self.most
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

/// Memory that is used again for each constraint.
#[derive(Default)]
struct Scratch {
    loops: Vec<Loop>,
    parts: Vec<Part>,
    outcomes: Vec<Outcome>,
    behind: Vec<u32>,
    /// Waiting times to put back.
    saved: Vec<(u32, f64)>,
}

/// A claim, and where its flows lie among the loops.
struct Part {
    claim: u32,
    flows: std::ops::Range<usize>,
    over: std::ops::Range<usize>,
    least: f64,
    load: f64,
}

impl<'f, 'n> Solver<'f, 'n> {
    pub(super) fn new(flows: &'f Flows<'n>) -> Self {
        let structure = Structure::new(flows);
        let mut this = Self {
            flows,
            waits: vec![0.0; structure.queues.len()],
            structure,
            rates: vec![0.0; flows.len()],
            times: vec![0.0; flows.len()],
            now: 1,
            scratch: Scratch::default(),
        };
        this.set_rates();
        this
    }

    /// Computes all waiting times until no rate changes. Gives false if that does not come.
    pub(super) fn settle(&mut self) -> bool {
        let mut ranges = vec![Range::default(); self.rates.len()];
        let (mut step, mut watched) = (1.0, f64::INFINITY);
        let mut is_steady = false;
        for round in 1..=ROUNDS {
            let (mut at, mut change) = (0, 0.0f64);
            while at < self.structure.constraints.len() {
                change = change.max(self.solve(at as u32, step));
                at += 1;
            }
            self.set_rates();
            if change <= SETTLED * step {
                self.fit();
                return true;
            }
            for (range, &rate) in ranges.iter_mut().zip(&self.rates) {
                range.add(rate);
            }
            if round % WATCHED > 0 {
                continue;
            }
            is_steady = step < 1.0 && ranges.iter().all(Range::is_steady);
            if is_steady || round == ROUNDS {
                break;
            }
            ranges.fill(Range::default());
            // Waiting times go round: smaller steps end that.
            if change > 0.9 * watched {
                step = (0.5 * step).max(SMALLEST_STEP);
            }
            watched = change;
        }
        self.rates = ranges.iter().map(Range::mean).collect();
        self.fit();
        is_steady
    }

    /// Slows the flows of each edge down to its capacity.
    fn fit(&mut self) {
        let mut loads = vec![0.0; self.flows.network().edges().len()];
        for (flow, rate) in self.rates.iter().enumerate() {
            for &edge in self.flows.path(flow) {
                loads[edge as usize] += rate;
            }
        }
        for (flow, rate) in self.rates.iter_mut().enumerate() {
            let over = self.flows.path(flow).iter().map(|&edge| {
                let edge = edge as usize;
                (loads[edge] / self.flows.capacity(edge)).max(1.0)
            });
            *rate /= over.fold(1.0, f64::max);
        }
    }

    /// Sets times and rates for the waiting times.
    fn set_rates(&mut self) {
        for flow in 0..self.rates.len() {
            self.times[flow] = self.time(flow, None);
            self.rates[flow] = loop_of(self.flows, flow as u32, self.times[flow]).rate(0.0);
        }
    }

    /// How long a byte of `flow` is on its way, without what it waits in `queue`.
    fn time(&self, flow: usize, queue: Option<u32>) -> f64 {
        let queues = &self.structure.queue_of[self.flows.span(flow)];
        let waits = queues.iter().filter(|&&at| Some(at) != queue);
        let waits = waits.map(|&at| self.waits[at as usize]);
        self.flows.latency(flow) + waits.sum::<f64>()
    }

    /// Moves the waiting time of a claim towards `target`. Gives the change as a part of how long a byte of its flows is on its way.
    fn approach(&mut self, id: u32, target: f64, step: f64) -> f64 {
        let claim = &mut self.structure.claims[id as usize];
        let before = claim.wait;
        claim.wait += step * (target - before);
        let change = (claim.wait - before).abs();
        if change <= 0.0 {
            return 0.0;
        }
        let time = claim.flows.iter().map(|&flow| {
            let flow = flow as usize;
            self.flows.outstanding(flow) * self.flows.greatest_cost(flow) / self.rates[flow]
        });
        let time = time.fold(f64::INFINITY, f64::min);
        let queue = claim.queue;
        let wait = self.structure.wait(queue, None);
        let longer = wait - std::mem::replace(&mut self.waits[queue as usize], wait);
        if longer != 0.0 {
            self.lengthen(queue, longer);
        }
        change / time
    }

    /// Adds what bytes wait longer in a queue to the times of its flows.
    fn lengthen(&mut self, queue: u32, longer: f64) {
        self.now += 1;
        let Structure {
            queues, queue_of, ..
        } = &mut self.structure;
        for at in 0..queues[queue as usize].flows.len() {
            let flow = queues[queue as usize].flows[at];
            let index = flow as usize;
            let time = &mut self.times[index];
            *time += longer;
            if longer.abs() <= UNCHANGED * *time {
                continue;
            }
            self.rates[index] = loop_of(self.flows, flow, *time).rate(0.0);
            for &other in &queue_of[self.flows.span(index)] {
                queues[other as usize].changed = self.now;
            }
        }
    }

    /// Whether a constraint would be solved as it was the last time.
    fn is_solved(&self, id: u32) -> bool {
        let constraint = &self.structure.constraints[id as usize];
        constraint.claims.iter().all(|&claim| {
            let queue = self.structure.claims[claim as usize].queue;
            self.structure.queues[queue as usize].changed < constraint.solved
        })
    }

    /// Sets what a full buffer lets through.
    fn set_capacity(&mut self, id: u32, capacity: f64, step: f64) {
        let constraint = &mut self.structure.constraints[id as usize];
        let before = std::mem::replace(&mut constraint.capacity, capacity);
        let same = before == capacity || (capacity - before).abs() <= UNCHANGED * before;
        if !same {
            if before.is_finite() && capacity.is_finite() {
                constraint.capacity = before + step * (capacity - before);
            }
            constraint.solved = 0;
        }
    }

    /// Computes how long a constraint makes its queues wait. Gives the largest change.
    fn solve(&mut self, id: u32, step: f64) -> f64 {
        let mut largest = 0.0f64;
        if self.is_solved(id) {
            return largest;
        }
        self.now += 1;
        self.structure.constraints[id as usize].solved = self.now;
        let this = &self.structure.constraints[id as usize];
        let (capacity, mut level) = (this.capacity, this.level);
        let arbiter = self.flows.network().port(this.edge).arbiter;
        if capacity.is_infinite() {
            for at in 0..self.structure.constraints[id as usize].claims.len() {
                let claim = self.structure.constraints[id as usize].claims[at];
                if let Some(held_by) = self.structure.claims[claim as usize].held_by {
                    self.set_capacity(held_by, f64::INFINITY, step);
                }
                // Nothing holds it up any more. It comes to that by steps as it went, so that a limit that comes and goes with
                // the waiting that it causes finds its balance.
                largest = largest.max(self.approach(claim, 0.0, step));
            }
            return largest;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        self.collect(id, &mut scratch);
        let offers: Vec<Offer<'_>> = scratch
            .parts
            .iter()
            .map(|part| {
                let claim = &self.structure.claims[part.claim as usize];
                let queue = &self.structure.queues[claim.queue as usize];
                Offer {
                    flows: &scratch.loops[part.flows.clone()],
                    over: &scratch.loops[part.over.clone()],
                    least: part.least,
                    buffer: queue.buffer,
                    round: queue.round,
                    load: part.load,
                    guess: claim.guess,
                }
            })
            .collect();
        scratch.outcomes.clear();
        match arbiter {
            Arbiter::InTurn => {
                share::in_turn(&offers, capacity, &mut level, &mut scratch.outcomes);
            }
            Arbiter::OldestFirst => {
                share::oldest_first(&offers, capacity, &mut level, &mut scratch.outcomes);
            }
        }
        self.structure.constraints[id as usize].level = level;
        for ((part, offer), outcome) in scratch.parts.iter().zip(&offers).zip(&scratch.outcomes) {
            let &Outcome { wait, rate } = outcome;
            let longest = offer.longest(rate);
            let full = wait > longest;
            let held_by = if full {
                self.structure.hold(part.claim, self.flows)
            } else {
                self.structure.claims[part.claim as usize].held_by
            };
            if let Some(held_by) = held_by {
                let through = if full {
                    rate * part.load
                } else {
                    f64::INFINITY
                };
                self.set_capacity(held_by, through, step);
            }
            self.structure.claims[part.claim as usize].guess = wait;
            let target = if held_by.is_some() {
                wait.min(longest)
            } else {
                wait
            };
            // A queue that waits longer for something else does not wait for this.
            let target = if target > part.least { target } else { 0.0 };
            largest = largest.max(self.approach(part.claim, target, step));
        }
        drop(offers);
        self.scratch = scratch;
        if step < 1.0 && largest > 0.1 * SETTLED * step {
            // It is only on the way to what it was solved for.
            self.structure.constraints[id as usize].solved = 0;
        }
        largest
    }

    /// Collects the claims on a constraint, and what their flows send by what they wait for it.
    fn collect(&mut self, constraint: u32, scratch: &mut Scratch) {
        scratch.loops.clear();
        scratch.parts.clear();
        for at in 0..self.structure.constraints[constraint as usize].claims.len() {
            let id = self.structure.constraints[constraint as usize].claims[at];
            let queue = self.structure.claims[id as usize].queue;
            let least = self.structure.wait(queue, Some(id));
            // What the claim causes in other queues does not count, as it would come back with another waiting time.
            scratch.behind.clear();
            scratch.saved.clear();
            self.structure.queues_behind(id, &mut scratch.behind);
            for &behind in &scratch.behind {
                let wait = self.structure.wait(behind, Some(id));
                let known = &mut self.waits[behind as usize];
                if *known != wait && behind != queue {
                    scratch.saved.push((behind, std::mem::replace(known, wait)));
                }
            }
            let claim = &self.structure.claims[id as usize];
            let first = scratch.loops.len();
            let here = self.waits[queue as usize];
            for list in [&claim.flows, &claim.over] {
                for &flow in list {
                    let index = flow as usize;
                    let elsewhere = if scratch.saved.is_empty() {
                        (self.times[index] - here).max(self.flows.latency(index))
                    } else {
                        self.time(index, Some(queue))
                    };
                    scratch.loops.push(loop_of(self.flows, flow, elsewhere));
                }
            }
            let rate =
                |list: &[u32]| -> f64 { list.iter().map(|&flow| self.rates[flow as usize]).sum() };
            let all = &self.structure.queues[queue as usize].flows;
            let load = if all.len() > claim.flows.len() {
                let (part, all) = (rate(&claim.flows), rate(all));
                if part > 0.0 && all.is_finite() {
                    (all / part).max(1.0)
                } else {
                    1.0
                }
            } else {
                1.0
            };
            let flows = first..first + claim.flows.len();
            let over = if claim.over.is_empty() {
                flows.clone()
            } else {
                flows.end..scratch.loops.len()
            };
            scratch.parts.push(Part {
                claim: id,
                flows,
                over,
                least,
                load,
            });
            for &(behind, wait) in scratch.saved.iter().rev() {
                self.waits[behind as usize] = wait;
            }
        }
    }

    /// The edge for which a flow waits longest; none if it has its demand, or what its window allows on an idle fabric.
    pub(super) fn bottleneck(&self, flow: usize) -> Option<u32> {
        let alone = loop_of(self.flows, flow as u32, self.flows.latency(flow));
        if self.rates[flow] >= alone.rate(0.0) * (1.0 - 1e-9) {
            return None;
        }
        let queues = &self.structure.queue_of[self.flows.span(flow)];
        let claims = queues.iter().flat_map(|&queue| {
            let queue = &self.structure.queues[queue as usize];
            queue.claims.iter().copied()
        });
        let wait = |claim: u32| self.structure.claims[claim as usize].wait;
        claims
            .max_by(|&a, &b| wait(a).total_cmp(&wait(b)))
            .map(|claim| self.structure.cause(claim))
    }
}

/// A flow of which a byte is on its way for `elsewhere`, beside the waiting in question.
fn loop_of(flows: &Flows<'_>, flow: u32, elsewhere: f64) -> Loop {
    let index = flow as usize;
    let cost = flows.greatest_cost(index);
    Loop {
        demand: flows.demand(index) * cost,
        window: flows.outstanding(index) * cost,
        elsewhere,
    }
}
