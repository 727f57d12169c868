//! Max-min rates kept while flows arrive and leave.

use std::ops::Range;

use crate::error::FlowError;
use crate::estimate::Limit;
use crate::filling::{Filling, Stop};
use crate::flows::{Flow, FlowId, Flows};
use crate::incidence::Incidence;
use crate::level::Share;
use crate::network::{EdgeId, Network};

mod mend;
mod refill;
mod store;

use mend::{Agenda, Move};
use store::{DEMAND, Store};

/// How near to the exact rates an update must come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// Equal to a full solve to 1e-9.
    Exact,
    /// Rates that are the exact max-min rates of a network in which no capacity differs from the given one by
    /// more than an eighth of this. It holds after any number of updates: what one update leaves undone, the next ones see.
    /// At an edge that stops few of its many flows, rates differ more from those of a full solve: what the others have too much
    /// or too little, these few have too little or too much. `cargo bench` prints the largest difference.
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
    /// By flow: its demand level, NaN if it is not here. A refill reads it in the order of the demands: in little memory, it
    /// stays in the cache.
    demand_levels: Vec<f64>,
    /// Flows that have come since.
    later: Vec<(f64, u32)>,
    /// By flow: where the last refill stopped it, if it did.
    results: Vec<(f64, Stop)>,
    /// The order before the last refill: memory for the next one.
    spare_order: Vec<(f64, u32)>,
    precision: Precision,
    /// Number of this update. Flows that no update touched have 0.
    update: u32,
    touched: Vec<u32>,
    shares: Vec<Share>,
    moves: Vec<Move>,
    /// Where the paths of flows that change lie, and by how much their rates do.
    steps: Vec<(Range<usize>, f64)>,
    /// Edges of these paths, each once.
    marked: Vec<u32>,
    /// Number of the change of an edge that marked them.
    applied: u32,
    agenda: Agenda,
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
            demand_levels: Vec::new(),
            later: Vec::new(),
            results: Vec::new(),
            spare_order: Vec::new(),
            precision,
            update: 0,
            touched: Vec::new(),
            shares: Vec::new(),
            moves: Vec::new(),
            steps: Vec::new(),
            marked: Vec::new(),
            applied: 0,
            agenda: Agenda::new(),
        };
        for flow in 0..flows.len() {
            solver.insert(flows.path(flow), flows.demand(flow), flows.weight(flow));
        }
        solver.begin();
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
        Ok(self.current_rate(flow.0))
    }

    /// What limits a flow.
    pub fn limit(&self, flow: FlowId) -> Result<Limit, FlowError> {
        self.check(flow)?;
        Ok(match self.store.states[flow.index()].stop() {
            Stop::Demand => Limit::Demand,
            Stop::Edge(edge) => Limit::Edge(EdgeId(edge)),
        })
    }

    /// Ids and rates of all flows that are here, in order of the ids.
    pub fn rates(&self) -> impl Iterator<Item = (FlowId, f64)> + '_ {
        (0..self.store.states.len() as u32)
            .filter(|&flow| self.store.is_here(flow))
            .map(|flow| (FlowId(flow), self.current_rate(flow)))
    }

    /// The flows that the last update touched and that are still here, with the rate before and after.
    pub fn changes(&self) -> impl Iterator<Item = (FlowId, f64, f64)> + '_ {
        self.touched.iter().filter_map(|&flow| {
            let state = &self.store.states[flow as usize];
            (state.is_here() && differs(state.before, state.level)).then(|| {
                let before = state.weight * state.before;
                (FlowId(flow), before, state.weight * state.level)
            })
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
        let (level, stop) = self.store.limit_elsewhere(id, DEMAND);
        self.store.set_level(id, level, stop);
        self.store.states[id as usize].touched = self.update;
        self.store.states[id as usize].before = level;
        let rate = self.store.rate(id);
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
        let rate = self.store.rate(id);
        self.store.set_level(id, 0.0, DEMAND);
        let path = self.store.path(id).to_vec();
        for &edge in &path {
            self.store.ports[edge as usize].load.add(-rate);
        }
        self.store.remove(id);
        self.demand_levels[flow.index()] = f64::NAN;
        for edge in path {
            self.look(edge, 0.0);
        }
        Ok(self.settle())
    }

    fn check(&self, flow: FlowId) -> Result<(), FlowError> {
        if self.store.is_here(flow.0) {
            return Ok(());
        }
        Err(FlowError::NoSuchFlow { flow: flow.index() })
    }

    /// The rate with what approximate updates have left undone at the edges of the path.
    fn current_rate(&self, flow: u32) -> f64 {
        match self.precision {
            Precision::Exact => self.store.rate(flow),
            Precision::Within(bound) => self.store.rate_ahead(flow, bound),
        }
    }

    fn insert(&mut self, path: &[u32], demand: f64, weight: f64) -> u32 {
        let slot = self.store.insert(path, demand, weight);
        let level = self.store.states[slot as usize].demand_level;
        if self.demand_levels.len() <= slot as usize {
            self.demand_levels.resize(slot as usize + 1, f64::NAN);
        }
        self.demand_levels[slot as usize] = level;
        self.later.push((level, slot));
        slot
    }

    fn begin(&mut self) {
        self.agenda.start();
        self.update = self.update.wrapping_add(1);
        if self.update == 0 {
            // Numbers start again: no flow may seem to be touched by an update to come.
            for state in &mut self.store.states {
                state.touched = 0;
            }
            self.update = 1;
        }
        self.touched.clear();
    }
}

fn differs(before: f64, after: f64) -> bool {
    (after - before).abs() > CHANGED * before.abs().max(after.abs())
}
