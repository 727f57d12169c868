//! Waiting times, computed in turn until no rate changes.

use super::delay::{self, Loop};
use super::queues::Structure;
use crate::flows::Flows;
use crate::level::{Share, water_level};
use crate::port::Arbiter;

/// Rounds over all constraints.
const ROUNDS: usize = 3_000;
/// From this round on, the mean of the rates is taken: where full buffers hold each other in a ring, waiting times may go round
/// for ever.
const AVERAGED: usize = 2_000;
/// Change of a waiting time, as a part of how long a byte is on its way, that ends the rounds.
const SETTLED: f64 = 1e-11;
/// Part of a waiting time that it moves towards its new value, by round.
const STEPS: [(usize, f64); 3] = [(300, 1.0), (1_000, 0.5), (usize::MAX, 0.25)];

/// What a constraint lets through of a claim, seen alone.
struct Offer {
    claim: u32,
    /// Flows that pass the constraint, and all of the queue that take its edge.
    flows: Vec<Loop>,
    over: Vec<Loop>,
    /// What the queue waits for anything else.
    least: f64,
    /// Bytes of its buffer, and the time beside its waiting that each takes room for.
    buffer: f64,
    round: f64,
    /// Of the bytes that leave the buffer, how many for each one of this claim.
    load: f64,
}

impl Offer {
    /// For how long its bytes wait at most if they have the rate `amount`: then the buffer is full.
    fn longest(&self, amount: f64) -> f64 {
        (self.buffer / (amount * self.load) - self.round).max(0.0)
    }

    /// What it sends if its bytes wait for `wait` in the buffer and as long as needed before it.
    fn held_rate(&self, wait: f64) -> f64 {
        let free = delay::rate(&self.flows, wait);
        let room = self.buffer / (self.load * (wait + self.round));
        free.min(room)
    }
}

pub(super) struct Solver<'f, 'n> {
    flows: &'f Flows<'n>,
    structure: Structure,
    pub(super) rates: Vec<f64>,
}

impl<'f, 'n> Solver<'f, 'n> {
    pub(super) fn new(flows: &'f Flows<'n>) -> Self {
        let mut this = Self {
            flows,
            structure: Structure::new(flows),
            rates: vec![0.0; flows.len()],
        };
        this.set_rates();
        this
    }

    /// Computes all waiting times until no rate changes.
    pub(super) fn settle(&mut self) {
        let mut sums = vec![0.0; self.rates.len()];
        for round in 0..ROUNDS {
            let step = STEPS.iter().find(|(until, _)| round < *until);
            let step = step.map_or(1.0, |&(_, step)| step);
            let (mut at, mut change) = (0, 0.0f64);
            while at < self.structure.constraints.len() {
                change = change.max(self.solve(at as u32, step));
                at += 1;
            }
            self.set_rates();
            if change <= SETTLED * step {
                return self.fit();
            }
            if round >= AVERAGED {
                for (sum, rate) in sums.iter_mut().zip(&self.rates) {
                    *sum += rate;
                }
            }
        }
        let count = (ROUNDS - AVERAGED) as f64;
        self.rates = sums.into_iter().map(|sum| sum / count).collect();
        self.fit();
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

    /// Sets the rates for the waiting times.
    fn set_rates(&mut self) {
        for flow in 0..self.rates.len() {
            self.rates[flow] = self.loop_of(flow as u32, None, None).rate(0.0);
        }
    }

    /// Moves the waiting time of a claim towards `target`. Gives the change as a part of how long a byte of its flows is on its way.
    fn approach(&mut self, claim: u32, target: f64, step: f64) -> f64 {
        let claim = &mut self.structure.claims[claim as usize];
        let time = claim.flows.iter().map(|&flow| {
            let flow = flow as usize;
            self.flows.outstanding(flow) / self.rates[flow]
        });
        let time = time.fold(f64::INFINITY, f64::min);
        let before = claim.wait;
        claim.wait += step * (target - before);
        let change = (claim.wait - before).abs();
        if change > 0.0 { change / time } else { 0.0 }
    }

    /// A flow with what it waits in all queues but `queue`. What `without` causes does not count.
    fn loop_of(&self, flow: u32, queue: Option<u32>, without: Option<u32>) -> Loop {
        let index = flow as usize;
        let queues = &self.structure.queue_of[self.flows.span(index)];
        let waits = queues.iter().filter(|&&at| Some(at) != queue);
        let waits = waits.map(|&at| self.structure.wait(at, without));
        Loop {
            demand: self.flows.demand(index),
            window: self.flows.outstanding(index),
            elsewhere: self.flows.latency(index) + waits.sum::<f64>(),
        }
    }

    /// Computes how long a constraint makes its queues wait. Gives the largest change.
    fn solve(&mut self, constraint: u32, step: f64) -> f64 {
        let mut largest = 0.0f64;
        let (capacity, is_buffer, arbiter) = {
            let this = &self.structure.constraints[constraint as usize];
            let port = self.flows.network().port(this.edge);
            (this.capacity, this.is_buffer, port.arbiter)
        };
        if capacity.is_infinite() {
            for at in 0..self.structure.constraints[constraint as usize].claims.len() {
                let claim = self.structure.constraints[constraint as usize].claims[at];
                if let Some(held_by) = self.structure.claims[claim as usize].held_by {
                    self.structure.constraints[held_by as usize].capacity = f64::INFINITY;
                }
                largest = largest.max(self.approach(claim, 0.0, step));
            }
            return largest;
        }
        let offers = self.offers(constraint, is_buffer);
        let amounts: Vec<(f64, f64)> = match arbiter {
            Arbiter::InTurn => in_turn(&offers, capacity, is_buffer),
            Arbiter::OldestFirst => oldest_first(&offers, capacity),
        };
        for (offer, (wait, amount)) in offers.iter().zip(amounts) {
            let longest = offer.longest(amount);
            let full = wait > longest;
            let held_by = if full {
                self.structure.hold(offer.claim, self.flows)
            } else {
                self.structure.claims[offer.claim as usize].held_by
            };
            if let Some(held_by) = held_by {
                self.structure.constraints[held_by as usize].capacity = if full {
                    amount * offer.load
                } else {
                    f64::INFINITY
                };
            }
            let target = if held_by.is_some() {
                wait.min(longest)
            } else {
                wait
            };
            // A queue that waits longer for something else does not wait for this.
            let target = if target > offer.least { target } else { 0.0 };
            largest = largest.max(self.approach(offer.claim, target, step));
        }
        largest
    }

    fn offers(&self, constraint: u32, whole: bool) -> Vec<Offer> {
        let claims = &self.structure.constraints[constraint as usize].claims;
        let offers = claims.iter().map(|&id| {
            let claim = &self.structure.claims[id as usize];
            let queue = &self.structure.queues[claim.queue as usize];
            let loops = |list: &[u32]| -> Vec<Loop> {
                list.iter()
                    .map(|&flow| self.loop_of(flow, Some(claim.queue), Some(id)))
                    .collect()
            };
            let rate =
                |list: &[u32]| -> f64 { list.iter().map(|&flow| self.rates[flow as usize]).sum() };
            let (part, all) = (rate(&claim.flows), rate(&queue.flows));
            let load = if part > 0.0 && all.is_finite() {
                (all / part).max(1.0)
            } else {
                1.0
            };
            Offer {
                claim: id,
                flows: loops(&claim.flows),
                over: if whole {
                    loops(&claim.over)
                } else {
                    Vec::new()
                },
                least: self.structure.wait(claim.queue, Some(id)),
                buffer: queue.buffer,
                round: queue.round,
                load,
            }
        });
        offers.collect()
    }

    /// The edge for which a flow waits longest; none if it has its demand, or what its window allows on an idle fabric.
    pub(super) fn bottleneck(&self, flow: usize) -> Option<u32> {
        let alone = Loop {
            demand: self.flows.demand(flow),
            window: self.flows.outstanding(flow),
            elsewhere: self.flows.latency(flow),
        };
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

/// Waiting time and rate of each offer, if the ingresses are served in turn.
fn in_turn(offers: &[Offer], capacity: f64, whole: bool) -> Vec<(f64, f64)> {
    let wait = |offer: &Offer, level: f64| {
        let loops = if whole { &offer.over } else { &offer.flows };
        if level.is_infinite() {
            offer.least
        } else {
            delay::wait_for(loops, level, offer.least)
        }
    };
    let level = if whole {
        let taken = |level: f64| -> f64 {
            offers
                .iter()
                .map(|offer| delay::rate(&offer.flows, wait(offer, level)))
                .sum()
        };
        let most = offers
            .iter()
            .map(|offer| delay::rate(&offer.over, offer.least));
        let most = most.fold(0.0, f64::max).min(f64::MAX);
        if taken(f64::INFINITY) <= capacity {
            f64::INFINITY
        } else {
            delay::root(0.0, most, |level| capacity - taken(level))
        }
    } else {
        let mut shares: Vec<Share> = offers
            .iter()
            .map(|offer| Share {
                cap: delay::rate(&offer.flows, offer.least),
                weight: 1.0,
            })
            .collect();
        water_level(&mut shares, capacity)
    };
    let result = offers.iter().map(|offer| {
        let wait = wait(offer, level);
        (wait, delay::rate(&offer.flows, wait))
    });
    result.collect()
}

/// Waiting time and rate of each offer, if all wait equally long.
fn oldest_first(offers: &[Offer], capacity: f64) -> Vec<(f64, f64)> {
    let taken = |wait: f64| -> f64 {
        offers
            .iter()
            .map(|offer| offer.held_rate(wait.max(offer.least)))
            .sum()
    };
    let window: f64 = offers
        .iter()
        .flat_map(|offer| &offer.flows)
        .map(|flow| flow.window)
        .sum();
    let wait = if taken(0.0) <= capacity {
        0.0
    } else {
        delay::root(0.0, window / capacity, |wait| taken(wait) - capacity)
    };
    let result = offers.iter().map(|offer| {
        let amount = offer.held_rate(wait.max(offer.least));
        let free = delay::rate(&offer.flows, wait.max(offer.least));
        // With a full buffer the rest waits before it.
        let wait = if amount < free * (1.0 - 1e-12) {
            f64::INFINITY
        } else {
            wait.max(offer.least)
        };
        (wait, amount)
    });
    result.collect()
}
