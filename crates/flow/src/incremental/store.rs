//! Flows and edges that change, as arrays.

use std::ops::Range;

use crate::compensated::Sum;
use crate::filling::Stop;
use crate::incidence::Incidence;

/// What an incremental solver knows of an edge: one cache line.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(super) struct Port {
    pub(super) capacity: f64,
    /// Rate per weight of the flows that it stops; infinite if it stops none.
    pub(super) level: f64,
    pub(super) load: Sum,
    /// Sum of the weights of the flows that it stops.
    pub(super) stopped: Sum,
    /// Its key in the queue of the update; infinite if it is not there.
    pub(super) queued: f64,
    /// Number of the change that marked it last.
    pub(super) marked: u32,
    /// How many flows take it.
    pub(super) members: u32,
}

/// What an incremental solver knows of a flow, within one cache line.
#[repr(align(16))]
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) level: f64,
    /// Its level before the update that touched it last.
    pub(super) before: f64,
    pub(super) weight: f64,
    /// Where its path starts in the hops.
    start: u32,
    /// How long its path is; 0 if the flow is not here.
    hops: u32,
    /// The edge that stops it, or [`DEMAND`].
    pub(super) stop: u32,
    /// Number of the update that touched it last.
    pub(super) touched: u32,
    pub(super) demand_level: f64,
}

/// In place of an edge: the flow's demand stops it.
pub(super) const DEMAND: u32 = u32::MAX;

impl State {
    pub(super) fn stop(&self) -> Stop {
        if self.stop == DEMAND {
            Stop::Demand
        } else {
            Stop::Edge(self.stop)
        }
    }

    pub(super) fn is_here(&self) -> bool {
        self.hops > 0
    }

    /// Where its path lies in the hops.
    pub(super) fn span(&self) -> Range<usize> {
        self.start as usize..(self.start + self.hops) as usize
    }
}

/// Which flows take which edges.
#[derive(Default)]
pub(super) struct Paths {
    hops: Vec<u32>,
    /// By hop: where the flow stands in the edge's list.
    places: Vec<u32>,
    /// By edge.
    pub(super) members: Vec<Vec<u32>>,
}

impl Paths {
    pub(super) fn hops(&self, span: Range<usize>) -> &[u32] {
        &self.hops[span]
    }

    pub(super) fn of(&self, state: &State) -> &[u32] {
        self.hops(state.span())
    }
}

impl Incidence for Store {
    fn path(&self, flow: u32) -> &[u32] {
        self.paths.of(&self.states[flow as usize])
    }
    fn members(&self, edge: u32) -> &[u32] {
        &self.paths.members[edge as usize]
    }
    fn weight(&self, flow: u32) -> f64 {
        self.states[flow as usize].weight
    }
}

pub(super) struct Store {
    pub(super) paths: Paths,
    pub(super) ports: Vec<Port>,
    /// By edge: sum of the weights of its flows.
    pub(super) weights: Vec<Sum>,
    pub(super) states: Vec<State>,
    free: Vec<u32>,
    /// Hops of the flows that are here.
    pub(super) live_hops: usize,
    pub(super) here: usize,
}

impl Store {
    pub(super) fn new(capacities: impl Iterator<Item = f64>) -> Self {
        let ports: Vec<Port> = capacities
            .map(|capacity| Port {
                capacity,
                level: f64::INFINITY,
                load: Sum::default(),
                stopped: Sum::default(),
                queued: f64::INFINITY,
                members: 0,
                marked: 0,
            })
            .collect();
        Self {
            paths: Paths {
                members: vec![Vec::new(); ports.len()],
                ..Paths::default()
            },
            weights: vec![Sum::default(); ports.len()],
            ports,
            states: Vec::new(),
            free: Vec::new(),
            live_hops: 0,
            here: 0,
        }
    }

    /// The slot that the next flow takes.
    pub(super) fn next_slot(&self) -> usize {
        self.free
            .last()
            .map_or(self.states.len(), |&slot| slot as usize)
    }

    pub(super) fn is_here(&self, flow: u32) -> bool {
        self.states.get(flow as usize).is_some_and(State::is_here)
    }

    pub(super) fn rate(&self, flow: u32) -> f64 {
        let state = &self.states[flow as usize];
        state.weight * state.level
    }

    /// The rate that a flow will have when the edges of its path are mended: each level moved by what is missing on the
    /// edge, by at most `bound` of itself.
    pub(super) fn rate_ahead(&self, flow: u32, bound: f64) -> f64 {
        let state = &self.states[flow as usize];
        let levels = self.paths.of(state).iter().map(|&edge| {
            let port = &self.ports[edge as usize];
            let stopped = port.stopped.value();
            if port.level == f64::INFINITY || stopped <= 0.0 {
                return port.level;
            }
            let missing = (port.capacity - port.load.value()) / stopped;
            port.level + missing.clamp(-bound * port.level, bound * port.level)
        });
        state.weight * levels.fold(state.demand_level, f64::min)
    }

    /// Adds a flow at level 0.
    pub(super) fn insert(&mut self, path: &[u32], demand: f64, weight: f64) -> u32 {
        self.compact();
        let slot = self.next_slot();
        // Twice the narrowest edge is as good as infinite, and can be summed.
        let narrowest = path
            .iter()
            .map(|&edge| self.ports[edge as usize].capacity)
            .fold(f64::INFINITY, f64::min);
        let state = State {
            level: 0.0,
            before: 0.0,
            weight,
            start: self.paths.hops.len() as u32,
            hops: path.len() as u32,
            stop: DEMAND,
            touched: 0,
            demand_level: demand.min(2.0 * narrowest) / weight,
        };
        for &edge in path {
            let members = &mut self.paths.members[edge as usize];
            self.paths.hops.push(edge);
            self.paths.places.push(members.len() as u32);
            members.push(slot as u32);
            self.ports[edge as usize].members += 1;
            self.weights[edge as usize].add(weight);
        }
        if self.free.pop().is_some() {
            self.states[slot] = state;
        } else {
            self.states.push(state);
        }
        self.live_hops += path.len();
        self.here += 1;
        slot as u32
    }

    /// Takes a flow off its edges.
    pub(super) fn remove(&mut self, flow: u32) {
        let State { weight, .. } = self.states[flow as usize];
        let span = self.states[flow as usize].span();
        self.live_hops -= span.len();
        for hop in span {
            let (edge, place) = (self.paths.hops[hop], self.paths.places[hop] as usize);
            let members = &mut self.paths.members[edge as usize];
            members.swap_remove(place);
            if let Some(&moved) = members.get(place) {
                let path = self.states[moved as usize].span();
                let hops = &self.paths.hops[path.clone()];
                if let Some(at) = hops.iter().position(|&at| at == edge) {
                    self.paths.places[path.start + at] = place as u32;
                }
            }
            let port = &mut self.ports[edge as usize];
            port.members -= 1;
            self.weights[edge as usize].add(-weight);
            if port.members == 0 {
                self.weights[edge as usize] = Sum::default();
                port.level = f64::INFINITY;
                port.load = Sum::default();
                port.stopped = Sum::default();
            }
        }
        self.here -= 1;
        self.states[flow as usize].hops = 0;
        self.free.push(flow);
    }

    /// Drops the paths of flows that have left, when they are more than the others.
    fn compact(&mut self) {
        let paths = &mut self.paths;
        if paths.hops.len() < 2 * self.live_hops + 1024 {
            return;
        }
        let (mut hops, mut places) = (
            Vec::with_capacity(self.live_hops),
            Vec::with_capacity(self.live_hops),
        );
        for state in self.states.iter_mut().filter(|state| state.is_here()) {
            let path = state.span();
            state.start = hops.len() as u32;
            hops.extend_from_slice(&paths.hops[path.clone()]);
            places.extend_from_slice(&paths.places[path]);
        }
        paths.hops = hops;
        paths.places = places;
    }

    /// The least level on the path of a flow, or that of its demand.
    pub(super) fn least_level(&self, state: &State) -> f64 {
        let levels = self
            .paths
            .of(state)
            .iter()
            .map(|&edge| self.ports[edge as usize].level);
        levels.fold(state.demand_level, f64::min)
    }

    /// The least level of the edges of `flow` but `except`, or its demand, and what has it.
    pub(super) fn limit_elsewhere(&self, flow: u32, except: u32) -> (f64, u32) {
        let state = &self.states[flow as usize];
        let mut least = (state.demand_level, DEMAND);
        for &edge in self.paths.of(state) {
            let level = self.ports[edge as usize].level;
            if level < least.0 && edge != except {
                least = (level, edge);
            }
        }
        least
    }

    pub(super) fn set_level(&mut self, flow: u32, level: f64, stop: u32) {
        let state = &mut self.states[flow as usize];
        let (old, weight) = (state.stop, state.weight);
        state.level = level;
        state.stop = stop;
        if old == stop {
            return;
        }
        if old != DEMAND {
            self.ports[old as usize].stopped.add(-weight);
        }
        if stop != DEMAND {
            self.ports[stop as usize].stopped.add(weight);
        }
    }
}
