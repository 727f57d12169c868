//! Flows and edges that change, as arrays.

use std::ops::Range;

use crate::compensated::Sum;
use crate::filling::Stop;
use crate::incidence::Incidence;

/// State of an edge: one cache line.
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
    /// How many flows it stops.
    pub(super) count: u32,
    /// How many flows take it.
    pub(super) members: u32,
}

/// State of a flow. Its level is that of what stops it.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) weight: f64,
    pub(super) demand_level: f64,
    /// Its level before the update that touched it last.
    pub(super) before: f64,
    /// Number of the update that touched it, and not only its edge, last.
    pub(super) touched: u32,
    /// The edge that stops it, or [`DEMAND`].
    pub(super) stop: u32,
    /// Where its path starts in the hops.
    start: u32,
    /// How long its path is; 0 if the flow is not here.
    hops: u32,
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
    /// By hop: whether the edge's list of contended flows has the flow.
    pub(super) listed: Vec<bool>,
    /// By edge.
    pub(super) members: Vec<Vec<u32>>,
}

impl Paths {
    pub(super) fn of(&self, state: &State) -> &[u32] {
        &self.hops[state.span()]
    }

    pub(super) fn edge(&self, hop: usize) -> u32 {
        self.hops[hop]
    }

    /// The hop of `span` that takes `edge`.
    pub(super) fn position(&self, span: Range<usize>, edge: u32) -> Option<usize> {
        let at = self.hops[span.clone()]
            .iter()
            .position(|&hop| hop == edge)?;
        Some(span.start + at)
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
                count: 0,
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

    /// The rate per weight of a flow.
    pub(super) fn level(&self, state: &State) -> f64 {
        match state.stop {
            DEMAND => state.demand_level,
            edge => self.ports[edge as usize].level,
        }
    }

    pub(super) fn rate(&self, flow: u32) -> f64 {
        let state = &self.states[flow as usize];
        state.weight * self.level(state)
    }

    /// Adds a flow that nothing but its demand stops. Its rate is not in the loads yet.
    pub(super) fn insert(&mut self, path: &[u32], demand: f64, weight: f64) -> u32 {
        self.compact();
        let slot = self.next_slot();
        // Twice the narrowest edge is as good as infinite, and can be summed.
        let narrowest = path
            .iter()
            .map(|&edge| self.ports[edge as usize].capacity)
            .fold(f64::INFINITY, f64::min);
        let state = State {
            weight,
            demand_level: demand.min(2.0 * narrowest) / weight,
            before: 0.0,
            touched: 0,
            stop: DEMAND,
            start: self.paths.hops.len() as u32,
            hops: path.len() as u32,
        };
        for &edge in path {
            let members = &mut self.paths.members[edge as usize];
            self.paths.hops.push(edge);
            self.paths.places.push(members.len() as u32);
            self.paths.listed.push(false);
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

    /// Takes a flow off its edges, which nothing stops and no list has.
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
                if let Some(at) = self.paths.position(path, edge) {
                    self.paths.places[at] = place as u32;
                }
            }
            let port = &mut self.ports[edge as usize];
            port.members -= 1;
            self.weights[edge as usize].add(-weight);
            if port.members == 0 {
                self.weights[edge as usize] = Sum::default();
                port.level = f64::INFINITY;
                port.load = Sum::default();
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
        let (mut hops, mut places, mut listed) = (
            Vec::with_capacity(self.live_hops),
            Vec::with_capacity(self.live_hops),
            Vec::with_capacity(self.live_hops),
        );
        for state in self.states.iter_mut().filter(|state| state.is_here()) {
            let path = state.span();
            state.start = hops.len() as u32;
            hops.extend_from_slice(&paths.hops[path.clone()]);
            places.extend_from_slice(&paths.places[path.clone()]);
            listed.extend_from_slice(&paths.listed[path]);
        }
        paths.hops = hops;
        paths.places = places;
        paths.listed = listed;
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

    /// Sets what stops a flow. The caller moves the loads.
    pub(super) fn set_stop(&mut self, flow: u32, stop: u32) {
        let state = &mut self.states[flow as usize];
        let weight = state.weight;
        let old = std::mem::replace(&mut state.stop, stop);
        if old != DEMAND {
            let port = &mut self.ports[old as usize];
            port.stopped.add(-weight);
            port.count -= 1;
            if port.count == 0 {
                port.stopped = Sum::default();
            }
        }
        if stop != DEMAND {
            let port = &mut self.ports[stop as usize];
            port.stopped.add(weight);
            port.count += 1;
        }
    }
}
