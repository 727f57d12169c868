//! Max-min rates kept while flows arrive and leave.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::compensated::Sum;
use crate::error::FlowError;
use crate::estimate::Limit;
use crate::filling::{Filling, Stop};
use crate::flows::{Flow, FlowId, Flows};
use crate::incidence::Incidence;
use crate::level::{Share, water_level};
use crate::network::{EdgeId, Network};
use crate::store::Store;

/// How near to the exact rates an update must come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// Equal to a full solve to 1e-9.
    Exact,
    /// Rates that are the exact max-min rates of a network in which no capacity differs from the given one by
    /// more than this part of it. The bound holds after any number of updates: what one update leaves undone, the next
    /// ones see.
    Within(f64),
}

/// How an update found the new rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It followed the change from edge to edge.
    Local,
    /// The change went too far: all flows at or above the level of the first change were filled again.
    Refill,
}

/// What one arrival or departure did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Other flows whose rate changed by more than 1e-9 of itself.
    pub affected: usize,
    /// Edges whose level was computed again.
    pub edges: usize,
    /// How the rates were found.
    pub method: Method,
}

/// Relative error of a level below which an exact update calls it unchanged.
const EXACT: f64 = 1e-12;
/// An approximate update follows changes down to the bound divided by this, so that what several edges leave undone on the
/// path of one flow stays within the bound in most cases.
const MARGIN: f64 = 4.0;
/// Part of a capacity that rounding may take from the sum of the rates.
const ROUNDING: f64 = 1e-15;
/// A change of a rate that counts as one.
const CHANGED: f64 = 1e-9;

/// The max-min rates of a changing set of flows.
///
/// An edge has a level: the rate per weight of the flows that it stops. The rates are max-min rates exactly if each
/// flow has the least of the levels on its path (or its demand), every edge with a level is full, and no edge is
/// overloaded. An arrival or departure breaks this at some edges. They are mended by increasing level, since
/// a level depends on lower levels alone; what a mended edge does to its flows breaks others, and so on.
pub struct IncrementalMaxMin {
    network: Network,
    store: Store,
    /// Flows by demand level as of the last refill. It may name flows that have left.
    order: Vec<(f64, u32)>,
    /// Flows that have come since.
    later: Vec<(f64, u32)>,
    precision: Precision,
    update: u64,
    touched: Vec<u32>,
    scratch: Vec<Share>,
    limits: Vec<(f64, Stop)>,
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    filling: Filling,
}

impl IncrementalMaxMin {
    /// Solves `flows` exactly; updates from then on are as near as `precision` says.
    pub fn new(flows: &Flows<'_>, precision: Precision) -> Result<Self, FlowError> {
        if let Precision::Within(bound) = precision
            && !(bound > 0.0 && bound <= 0.1)
        {
            return Err(FlowError::ErrorBound { value: bound });
        }
        let network = flows.network();
        let capacities = || network.edges().iter().map(|edge| edge.capacity());
        let mut solver = Self {
            filling: Filling::new(capacities(), 0),
            store: Store::new(capacities()),
            network: network.clone(),
            order: Vec::new(),
            later: Vec::new(),
            precision,
            update: 0,
            touched: Vec::new(),
            scratch: Vec::new(),
            limits: Vec::new(),
            queue: BinaryHeap::new(),
        };
        for flow in 0..flows.len() {
            solver.insert(flows.path(flow), flows.demand(flow), flows.weight(flow));
        }
        solver.refill(0.0);
        Ok(solver)
    }

    /// How many flows are here.
    pub fn len(&self) -> usize {
        self.store.here
    }

    /// Whether no flow is here.
    pub fn is_empty(&self) -> bool {
        self.store.here == 0
    }

    /// The rate of a flow, in the unit of the capacities.
    pub fn rate(&self, flow: FlowId) -> Result<f64, FlowError> {
        self.check(flow)?;
        Ok(self.store.members[flow.index()].rate())
    }

    /// What limits a flow.
    pub fn limit(&self, flow: FlowId) -> Result<Limit, FlowError> {
        self.check(flow)?;
        Ok(match self.store.members[flow.index()].stop {
            Stop::Demand => Limit::Demand,
            Stop::Edge(edge) => Limit::Edge(EdgeId(edge)),
        })
    }

    /// Ids and rates of all flows that are here, in order of the ids.
    pub fn rates(&self) -> impl Iterator<Item = (FlowId, f64)> + '_ {
        self.store
            .members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.here)
            .map(|(flow, member)| (FlowId(flow as u32), member.rate()))
    }

    /// The flows that the last update touched and that are still here, with the rate before and after.
    pub fn changes(&self) -> impl Iterator<Item = (FlowId, f64, f64)> + '_ {
        self.touched.iter().filter_map(|&flow| {
            let member = &self.store.members[flow as usize];
            let before = member.weight * member.before;
            (member.here && differs(member.before, member.level))
                .then(|| (FlowId(flow), before, member.rate()))
        })
    }

    /// The largest part of a capacity by which an edge is overloaded, or not full although it stops flows. It is the error that
    /// `Precision::Within` bounds.
    pub fn residual(&self) -> f64 {
        self.store
            .ports
            .iter()
            .map(|port| {
                let excess = port.load.value() - port.capacity;
                let missing = if port.level.is_finite() { -excess } else { 0.0 };
                excess.max(missing) / port.capacity
            })
            .fold(0.0, f64::max)
    }

    /// Adds a flow and updates the rates.
    pub fn arrive(&mut self, flow: &Flow) -> Result<(FlowId, Change), FlowError> {
        let slot = self.store.next_slot();
        if slot >= u32::MAX as usize
            || 2 * (self.store.live_hops + flow.path.len()) + 1024 >= u32::MAX as usize
        {
            return Err(FlowError::TooManyFlows {
                limit: u32::MAX as usize,
            });
        }
        flow.check(&self.network, slot)?;
        let path: Vec<u32> = flow.path.iter().map(|edge| edge.0).collect();
        self.begin();
        let id = self.insert(&path, flow.demand, flow.weight);
        let (level, stop) = self.store.limit_elsewhere(id, None);
        self.store.set_level(id, level, stop);
        let member = &mut self.store.members[id as usize];
        member.touched = self.update;
        member.before = level;
        let rate = member.rate();
        for edge in path {
            self.store.ports[edge as usize].load.add(rate);
            self.look(edge, 0.0);
        }
        Ok((FlowId(id), self.settle()))
    }

    /// Takes a flow away and updates the rates. Its id may be given to a later flow.
    pub fn depart(&mut self, flow: FlowId) -> Result<Change, FlowError> {
        self.check(flow)?;
        self.begin();
        let id = flow.0;
        let rate = self.store.members[flow.index()].rate();
        self.store.set_level(id, 0.0, Stop::Demand);
        let path = self.store.path(id).to_vec();
        for &edge in &path {
            self.store.ports[edge as usize].load.add(-rate);
        }
        self.store.remove(id);
        for edge in path {
            self.look(edge, 0.0);
        }
        Ok(self.settle())
    }

    fn check(&self, flow: FlowId) -> Result<(), FlowError> {
        match self.store.members.get(flow.index()) {
            Some(member) if member.here => Ok(()),
            _ => Err(FlowError::NoSuchFlow { flow: flow.index() }),
        }
    }

    fn insert(&mut self, path: &[u32], demand: f64, weight: f64) -> u32 {
        let slot = self.store.insert(path, demand, weight);
        self.later
            .push((self.store.members[slot as usize].demand_level, slot));
        self.filling.active.resize(self.store.members.len(), false);
        slot
    }

    fn begin(&mut self) {
        self.update += 1;
        self.touched.clear();
        self.queue.clear();
    }

    /// Mends the edges in the queue until none is wrong.
    fn settle(&mut self) -> Change {
        // A refill costs several times as much per hop as a look at a member of an edge.
        let budget = self.store.live_hops / 4 + 1_000;
        let (mut spent, mut edges) = (0, 0);
        let mut lowest = f64::INFINITY;
        let mut method = Method::Local;
        while let Some(Reverse((bits, edge))) = self.queue.pop() {
            let key = f64::from_bits(bits);
            if key != self.store.ports[edge as usize].queued {
                continue;
            }
            self.store.ports[edge as usize].queued = f64::INFINITY;
            if !self.wrong(edge) {
                continue;
            }
            spent += self.store.ports[edge as usize].members.len();
            if spent > budget {
                method = Method::Refill;
                // Levels are mended from below: what is under the lowest key has not changed.
                self.refill(lowest.min(key));
                break;
            }
            edges += 1;
            let level = self.level_of(edge);
            let port = &self.store.ports[edge as usize];
            let next = self
                .queue
                .peek()
                .map_or(f64::INFINITY, |top| f64::from_bits(top.0.0));
            if level < port.level && level > key && next < level {
                // The key was a lower bound; another edge comes first.
                self.store.ports[edge as usize].queued = level;
                self.queue.push(Reverse((level.to_bits(), edge)));
                continue;
            }
            lowest = lowest.min(key).min(level);
            self.apply(edge, level, &mut spent);
        }
        let affected = self.changes().count();
        Change {
            affected,
            edges,
            method,
        }
    }

    /// Whether the level of `edge` is off by more than the precision allows.
    fn wrong(&self, edge: u32) -> bool {
        let port = &self.store.ports[edge as usize];
        let excess = port.load.value() - port.capacity;
        let bound = match self.precision {
            Precision::Exact => EXACT,
            Precision::Within(bound) => bound / MARGIN,
        };
        let rounding = ROUNDING * port.capacity;
        if port.level == f64::INFINITY {
            // The fastest flow has at least the mean rate, and would have to give the excess.
            let mean = port.capacity / port.members.len().max(1) as f64;
            return excess > bound * mean + rounding;
        }
        // So much would the level move, if only the flows that the edge stops moved.
        let stopped = (port.stopped.value() * port.level).max(0.0);
        excess.abs() > bound * stopped.min(port.capacity) + rounding
    }

    /// Queues `edge` if it is wrong. `reached` is the level below which all is final.
    fn look(&mut self, edge: u32, reached: f64) {
        if !self.wrong(edge) {
            return;
        }
        let port = &mut self.store.ports[edge as usize];
        let excess = port.load.value() - port.capacity;
        // An edge that is not full rises from its level; a full one falls at most to this.
        let key = if excess <= 0.0 {
            port.level
        } else if port.level.is_finite() && port.stopped.value() > 0.0 {
            (port.level - excess / port.stopped.value()).max(reached)
        } else {
            reached
        };
        let key = key.max(0.0) + 0.0;
        if key < port.queued {
            port.queued = key;
            self.queue.push(Reverse((key.to_bits(), edge)));
        }
    }

    /// The level of `edge` for what limits its flows elsewhere; leaves those limits in `self.limits`.
    fn level_of(&mut self, edge: u32) -> f64 {
        let port = &self.store.ports[edge as usize];
        self.scratch.clear();
        self.limits.clear();
        let mut load = Sum::default();
        for &flow in &port.members {
            let member = &self.store.members[flow as usize];
            load.add(member.rate());
            let (cap, stop) = if member.stop == Stop::Edge(edge) {
                self.store.limit_elsewhere(flow, Some(edge))
            } else {
                (member.level, member.stop)
            };
            self.limits.push((cap, stop));
            self.scratch.push(Share {
                cap,
                weight: member.weight,
            });
        }
        let capacity = port.capacity;
        self.store.ports[edge as usize].load = load;
        water_level(&mut self.scratch, capacity)
    }

    /// Gives `edge` its new level, its flows theirs, and queues the edges that this makes wrong.
    fn apply(&mut self, edge: u32, level: f64, spent: &mut usize) {
        let reached = level.min(self.store.ports[edge as usize].level);
        self.store.ports[edge as usize].level = level;
        let limits = std::mem::take(&mut self.limits);
        for (place, &(cap, stop)) in limits.iter().enumerate() {
            let flow = self.store.ports[edge as usize].members[place];
            let (new_level, new_stop) = if cap <= level {
                (cap, stop)
            } else {
                (level, Stop::Edge(edge))
            };
            let member = &mut self.store.members[flow as usize];
            let old_level = member.level;
            if new_level == old_level && new_stop == member.stop {
                continue;
            }
            if member.touched != self.update {
                member.touched = self.update;
                member.before = old_level;
                self.touched.push(flow);
            }
            let delta = member.weight * new_level - member.weight * old_level;
            self.store.set_level(flow, new_level, new_stop);
            if delta == 0.0 {
                continue;
            }
            for hop in 0..self.store.path(flow).len() {
                let at = self.store.path(flow)[hop];
                self.store.ports[at as usize].load.add(delta);
                *spent += 1;
                if at != edge {
                    self.look(at, reached);
                }
            }
        }
        self.limits = limits;
    }

    /// Fills all flows at or above `from` again.
    fn refill(&mut self, from: f64) {
        for &Reverse((_, edge)) in &self.queue {
            self.store.ports[edge as usize].queued = f64::INFINITY;
        }
        self.queue.clear();
        let from = match self.precision {
            Precision::Exact => from * (1.0 - 1e-9),
            // What is below is only nearly right: this is the chance to mend it.
            Precision::Within(_) => 0.0,
        };
        self.sort_order();
        let mut filling = std::mem::replace(&mut self.filling, Filling::new([].into_iter(), 0));
        filling.restart(self.store.ports.iter().map(|port| port.capacity));
        for (flow, member) in self.store.members.iter().enumerate() {
            if !member.here {
                continue;
            }
            if member.level >= from {
                filling.activate(&self.store, flow as u32);
            } else {
                for &edge in self.store.path(flow as u32) {
                    filling.remaining[edge as usize].add(-member.rate());
                }
            }
        }
        let mut stopped = Vec::new();
        let mut saturated = Vec::new();
        filling.run(
            &self.store,
            self.order.iter().copied(),
            |flow, level, stop| stopped.push((flow, level, stop)),
            |edge, level| saturated.push((edge, level)),
        );
        for (port, remaining) in self.store.ports.iter_mut().zip(&filling.remaining) {
            port.load = Sum::new(port.capacity - remaining.value());
        }
        self.filling = filling;
        for port in &mut self.store.ports {
            if port.level >= from {
                port.level = f64::INFINITY;
            }
        }
        for (edge, level) in saturated {
            self.store.ports[edge as usize].level = level;
        }
        for (flow, level, stop) in stopped {
            let member = &mut self.store.members[flow as usize];
            if member.touched != self.update {
                member.touched = self.update;
                member.before = member.level;
                self.touched.push(flow);
            }
            self.store.set_level(flow, level, stop);
        }
    }

    /// Takes the later flows into the order, and leaves out those that are no longer what it says.
    fn sort_order(&mut self) {
        self.later.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let members = &self.store.members;
        let valid = |&(level, flow): &(f64, u32)| {
            let member = &members[flow as usize];
            member.here && member.demand_level == level
        };
        let mut merged = Vec::with_capacity(self.store.here);
        let mut later = self.later.drain(..).filter(valid).peekable();
        for entry in self.order.iter().copied().filter(valid) {
            while let Some(new) = later.next_if(|new| new.0 < entry.0) {
                merged.push(new);
            }
            merged.push(entry);
        }
        merged.extend(later);
        self.order = merged;
    }
}

fn differs(before: f64, after: f64) -> bool {
    (after - before).abs() > CHANGED * before.abs().max(after.abs())
}
