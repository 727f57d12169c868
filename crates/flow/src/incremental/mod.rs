//! Max-min rates kept while flows arrive and leave.

use crate::error::FlowError;
use crate::estimate::Limit;
use crate::filling::{Filling, Stop};
use crate::flows::{Flow, FlowId, Flows};
use crate::incidence::Incidence;
use crate::level::Share;
use crate::network::{EdgeId, Network};

mod bound;
mod contended;
mod mend;
mod refill;
mod rows;
mod store;

use contended::Contended;
use mend::{Agenda, Move, Work};
use rows::Rows;
use store::{DEMAND, Store};

/// How near to the exact rates an update must come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// Equal to a full solve to 1e-9.
    Exact,
    /// No rate differs from that of a full solve by more than this of itself. An update that would take much work leaves small
    /// changes of levels undone, as long as the error that [`Change::error`] states can be shown to be within the bound;
    /// otherwise all flows are filled again.
    Within(f64),
}

/// How an update found the new rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It followed the change from edge to edge.
    Local,
    /// That took too much work: all flows at or above the level of the first change were filled again.
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
    /// No rate differs from that of a full solve by more than this of itself.
    pub error: f64,
}

/// A change of a rate that counts as one.
const CHANGED: f64 = 1e-9;
/// Relative error of a level below which an exact update calls it unchanged.
const EXACT: f64 = 1e-12;
/// Relative error of a rate that is called exact.
const EXACT_RATES: f64 = 1e-9;

/// The max-min rates of a changing set of flows.
///
/// An edge has a level: the rate per weight of the flows that it stops. The rates are max-min rates exactly if each
/// flow has the least of the levels on its path (or its demand), every edge with a level is full, and no edge is
/// overloaded. An arrival or departure breaks this at some edges. They are mended by increasing level, since
/// a level depends on lower levels alone; what a mended edge does to its flows breaks others, and so on.
///
/// A flow has no rate of its own: it is that of the level of the edge that stops it. So a new level changes the rates of all
/// flows that the edge stops at once, and the loads of other edges by a row of sums (`rows`), and needs to look only at the
/// flows that something else may stop instead (`contended`). An update visits as many edges as get a new level, and
/// not as many flows as get a new rate.
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
    results: Vec<Option<(f64, Stop)>>,
    /// The order before the last refill: memory for the next one.
    spare_order: Vec<(f64, u32)>,
    precision: Precision,
    /// Whether updates have left errors.
    is_inexact: bool,
    /// Number of this update. Flows and edges that no update touched have 0.
    update: u32,
    /// The flow that this update brought.
    arrived: Option<u32>,
    /// Flows that this update gave another edge to stop them.
    touched: Vec<u32>,
    /// Edges that this update gave a new level.
    touched_edges: Vec<u32>,
    /// By edge: the update that touched it last, and its level before.
    levels_before: Vec<(u32, f64)>,
    contended: Contended,
    rows: Rows,
    shares: Vec<Share>,
    moves: Vec<Move>,
    agenda: Agenda,
    filling: Filling,
}

impl IncrementalMaxMin {
    /// Solves `flows` exactly; updates from then on are as near as `precision` says. Flows take their rate of each edge
    /// of their paths, and nothing else.
    pub fn new(flows: &Flows<'_>, precision: Precision) -> Result<Self, FlowError> {
        if let Precision::Within(bound) = precision
            && !(bound > 0.0 && bound <= 0.1)
        {
            return Err(FlowError::ErrorBound { value: bound });
        }
        let takes_more = |flow| !flows.costs(flow).is_empty();
        if flows.has_sides() || (0..flows.len()).any(takes_more) {
            return Err(costly());
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
            is_inexact: false,
            update: 0,
            arrived: None,
            touched: Vec::new(),
            touched_edges: Vec::new(),
            levels_before: vec![(0, 0.0); network.edges().len()],
            contended: Contended::new(network.edges().len()),
            rows: Rows::new(network.edges().len()),
            shares: Vec::new(),
            moves: Vec::new(),
            agenda: Agenda::new(),
        };
        for flow in 0..flows.len() {
            solver.insert(flows.path(flow), flows.demand(flow), flows.weight(flow));
        }
        solver.begin();
        solver.refill(0.0);
        solver.touched.clear();
        solver.contended.make_current(&mut solver.store);
        for edge in 0..network.edges().len() as u32 {
            solver.rows.row(&solver.store, edge);
        }
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
        Ok(self.store.rate(flow.0))
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
            .map(|flow| (FlowId(flow), self.store.rate(flow)))
    }

    /// The flows whose rate the last update changed and that were there before, with the rate before and after.
    pub fn changes(&self) -> impl Iterator<Item = (FlowId, f64, f64)> + '_ {
        let by_edge = self.changed_edges().flat_map(move |edge| {
            let members = &self.store.paths.members[edge as usize];
            members.iter().copied().filter(move |&flow| {
                let state = &self.store.states[flow as usize];
                state.stop == edge && state.touched != self.update
            })
        });
        self.touched
            .iter()
            .copied()
            .filter(|&flow| self.is_changed(flow))
            .chain(by_edge)
            .map(|flow| {
                let before = self.store.states[flow as usize].weight * self.level_before(flow);
                (FlowId(flow), before, self.store.rate(flow))
            })
    }

    /// How many flows `changes` gives.
    fn affected(&self) -> usize {
        let stopped = |edge: u32| self.store.ports[edge as usize].count as usize;
        let by_edge: usize = self.changed_edges().map(stopped).sum();
        // These are no part of what their edge stops.
        let apart = self.touched.iter().chain(&self.arrived);
        let twice = apart.filter(|&&flow| {
            let stop = self.store.states[flow as usize].stop;
            self.store.is_here(flow) && stop != DEMAND && self.is_changed_edge(stop)
        });
        let touched = self.touched.iter().filter(|&&flow| self.is_changed(flow));
        by_edge - twice.count() + touched.count()
    }

    /// Edges that stop flows at another level than before the last update.
    fn changed_edges(&self) -> impl Iterator<Item = u32> + '_ {
        let edges = self.touched_edges.iter().copied();
        edges.filter(|&edge| self.is_changed_edge(edge))
    }

    fn is_changed_edge(&self, edge: u32) -> bool {
        let (update, before) = self.levels_before[edge as usize];
        let port = &self.store.ports[edge as usize];
        update == self.update && port.count > 0 && differs(before, port.level)
    }

    /// Whether the last update changed the rate of a flow that it touched.
    fn is_changed(&self, flow: u32) -> bool {
        let state = &self.store.states[flow as usize];
        state.is_here() && differs(state.before, self.store.level(state))
    }

    /// The level of a flow before this update.
    fn level_before(&self, flow: u32) -> f64 {
        let state = &self.store.states[flow as usize];
        if state.touched == self.update {
            return state.before;
        }
        match state.stop {
            DEMAND => state.demand_level,
            edge => match self.levels_before[edge as usize] {
                (update, before) if update == self.update => before,
                _ => self.store.ports[edge as usize].level,
            },
        }
    }

    /// Notes the level of `flow` before what stops it changes.
    fn touch(&mut self, flow: u32) {
        let before = self.level_before(flow);
        let state = &mut self.store.states[flow as usize];
        if state.touched != self.update {
            state.touched = self.update;
            state.before = before;
            self.touched.push(flow);
        }
    }

    /// Notes the level of `edge` before it changes.
    fn touch_edge(&mut self, edge: u32) {
        let known = &mut self.levels_before[edge as usize];
        if known.0 != self.update {
            *known = (self.update, self.store.ports[edge as usize].level);
            self.touched_edges.push(edge);
        }
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
        if !flow.costs.is_empty() || !flow.sides.is_empty() {
            return Err(costly());
        }
        let path: Vec<u32> = flow.path.iter().map(|edge| edge.0).collect();
        self.begin();
        self.contended.make_current(&mut self.store);
        let id = self.insert(&path, flow.demand, flow.weight);
        let (level, stop) = self.store.limit_elsewhere(id, DEMAND);
        self.store.set_stop(id, stop);
        self.rows.add(&self.store, id, stop);
        self.contended.list(&mut self.store, id);
        let state = &mut self.store.states[id as usize];
        (state.touched, state.before) = (self.update, level);
        self.arrived = Some(id);
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
        self.contended.make_current(&mut self.store);
        let id = flow.0;
        let rate = self.store.rate(id);
        self.rows
            .remove(&self.store, id, self.store.states[id as usize].stop);
        self.contended.remove(&mut self.store, id);
        self.store.set_stop(id, DEMAND);
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

    /// Mends what the arrival or departure made wrong.
    fn settle(&mut self) -> Change {
        // Beyond this a refill is cheaper than to go on; up to it the attempt costs little beside one.
        let mut work = Work::new(self.store.live_hops / 4 + 1_000);
        if std::mem::replace(&mut self.is_inexact, false) {
            // What the last update left undone is done now, if there is time.
            for edge in 0..self.store.ports.len() as u32 {
                self.look(edge, 0.0);
            }
        }
        let mut method = Method::Local;
        let mut error = EXACT_RATES;
        match (self.follow(&mut work), self.precision) {
            // Levels are mended from below: what is under the lowest key has not changed.
            (Err(lowest), Precision::Exact) => {
                self.refill(lowest * (1.0 - 1e-9));
                method = Method::Refill;
            }
            (Ok(()), Precision::Within(bound)) if self.is_inexact => match self.error_bound() {
                Some(shown) if shown <= bound => error = shown,
                _ => method = Method::Refill,
            },
            (Err(_), Precision::Within(_)) => method = Method::Refill,
            (Ok(()), _) => {}
        }
        if method == Method::Refill && self.precision != Precision::Exact {
            self.refill(0.0);
            self.is_inexact = false;
        }
        Change {
            affected: self.affected(),
            edges: work.edges,
            method,
            error,
        }
    }

    fn check(&self, flow: FlowId) -> Result<(), FlowError> {
        if self.store.is_here(flow.0) {
            return Ok(());
        }
        Err(FlowError::NoSuchFlow { flow: flow.index() })
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
        self.agenda.start(EXACT);
        self.update = self.update.wrapping_add(1);
        if self.update == 0 {
            // Numbers start again: no flow may seem to be touched by an update to come.
            for state in &mut self.store.states {
                state.touched = 0;
            }
            for (update, _) in &mut self.levels_before {
                *update = 0;
            }
            self.update = 1;
        }
        self.arrived = None;
        self.touched.clear();
        self.touched_edges.clear();
    }
}

fn costly() -> FlowError {
    FlowError::Estimator {
        estimator: "incremental".to_owned(),
        reason: "a flow takes more of its edges than its rate, or something beside its path"
            .to_owned(),
    }
}

fn differs(before: f64, after: f64) -> bool {
    (after - before).abs() > CHANGED * before.abs().max(after.abs())
}
