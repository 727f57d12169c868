//! Flows and edges that change, as arrays.

use crate::compensated::Sum;
use crate::filling::Stop;
use crate::incidence::Incidence;

/// What an incremental solver knows of an edge.
pub(crate) struct Port {
    pub(crate) capacity: f64,
    /// Rate per weight of the flows that it stops; infinite if it stops none.
    pub(crate) level: f64,
    pub(crate) load: Sum,
    /// Sum of the weights of the flows that it stops.
    pub(crate) stopped: Sum,
    pub(crate) members: Vec<u32>,
    /// Its key in the queue; infinite if it is not there.
    pub(crate) queued: f64,
}

/// What an incremental solver knows of a flow.
#[derive(Clone, Copy)]
pub(crate) struct Member {
    /// Where its path lies in `Store::hops`.
    start: u32,
    hops: u32,
    pub(crate) weight: f64,
    pub(crate) demand_level: f64,
    pub(crate) level: f64,
    pub(crate) stop: Stop,
    pub(crate) here: bool,
    /// Its level before the update `touched`.
    pub(crate) before: f64,
    /// Number of the update that touched it last.
    pub(crate) touched: u64,
}

impl Member {
    pub(crate) fn rate(&self) -> f64 {
        self.weight * self.level
    }
}

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) members: Vec<Member>,
    pub(crate) ports: Vec<Port>,
    hops: Vec<u32>,
    /// By hop: where the flow stands in the edge's list.
    places: Vec<u32>,
    free: Vec<u32>,
    /// Hops of the flows that are here.
    pub(crate) live_hops: usize,
    pub(crate) here: usize,
}

impl Incidence for Store {
    fn path(&self, flow: u32) -> &[u32] {
        let member = &self.members[flow as usize];
        &self.hops[member.start as usize..(member.start + member.hops) as usize]
    }
    fn members(&self, edge: u32) -> &[u32] {
        &self.ports[edge as usize].members
    }
    fn weight(&self, flow: u32) -> f64 {
        self.members[flow as usize].weight
    }
}

impl Store {
    pub(crate) fn new(capacities: impl Iterator<Item = f64>) -> Self {
        let ports = capacities.map(|capacity| Port {
            capacity,
            level: f64::INFINITY,
            load: Sum::default(),
            stopped: Sum::default(),
            members: Vec::new(),
            queued: f64::INFINITY,
        });
        Self {
            ports: ports.collect(),
            ..Self::default()
        }
    }

    /// The slot that the next flow takes.
    pub(crate) fn next_slot(&self) -> usize {
        self.free
            .last()
            .map_or(self.members.len(), |&slot| slot as usize)
    }

    /// Adds a flow at level 0.
    pub(crate) fn insert(&mut self, path: &[u32], demand: f64, weight: f64) -> u32 {
        self.compact();
        let slot = self.next_slot();
        // Twice the narrowest edge is as good as infinite, and can be summed.
        let narrowest = path
            .iter()
            .map(|&edge| self.ports[edge as usize].capacity)
            .fold(f64::INFINITY, f64::min);
        let member = Member {
            start: self.hops.len() as u32,
            hops: path.len() as u32,
            weight,
            demand_level: demand.min(2.0 * narrowest) / weight,
            level: 0.0,
            stop: Stop::Demand,
            here: true,
            before: 0.0,
            touched: 0,
        };
        for &edge in path {
            let members = &mut self.ports[edge as usize].members;
            self.hops.push(edge);
            self.places.push(members.len() as u32);
            members.push(slot as u32);
        }
        if self.free.pop().is_some() {
            self.members[slot] = member;
        } else {
            self.members.push(member);
        }
        self.live_hops += path.len();
        self.here += 1;
        slot as u32
    }

    /// Takes a flow off its edges. Its path can be read until the next flow is added.
    pub(crate) fn remove(&mut self, flow: u32) {
        let member = self.members[flow as usize];
        for hop in member.start as usize..(member.start + member.hops) as usize {
            let (edge, place) = (self.hops[hop], self.places[hop] as usize);
            let port = &mut self.ports[edge as usize];
            port.members.swap_remove(place);
            if let Some(&moved) = port.members.get(place) {
                let other = &self.members[moved as usize];
                let path = other.start as usize..(other.start + other.hops) as usize;
                if let Some(at) = self.hops[path.clone()].iter().position(|&at| at == edge) {
                    self.places[path.start + at] = place as u32;
                }
            }
            let port = &mut self.ports[edge as usize];
            if port.members.is_empty() {
                port.level = f64::INFINITY;
                port.load = Sum::default();
                port.stopped = Sum::default();
            }
        }
        self.live_hops -= member.hops as usize;
        self.here -= 1;
        self.members[flow as usize].here = false;
        self.free.push(flow);
    }

    /// Drops the paths of flows that have left, when they are more than the others.
    fn compact(&mut self) {
        if self.hops.len() < 2 * self.live_hops + 1024 {
            return;
        }
        let (mut hops, mut places) = (
            Vec::with_capacity(self.live_hops),
            Vec::with_capacity(self.live_hops),
        );
        for member in self.members.iter_mut().filter(|member| member.here) {
            let path = member.start as usize..(member.start + member.hops) as usize;
            member.start = hops.len() as u32;
            hops.extend_from_slice(&self.hops[path.clone()]);
            places.extend_from_slice(&self.places[path]);
        }
        self.hops = hops;
        self.places = places;
    }

    /// The least level of the edges of `flow` but `except`, or its demand.
    pub(crate) fn limit_elsewhere(&self, flow: u32, except: Option<u32>) -> (f64, Stop) {
        let mut least = (self.members[flow as usize].demand_level, Stop::Demand);
        for &edge in self.path(flow) {
            let level = self.ports[edge as usize].level;
            if level < least.0 && Some(edge) != except {
                least = (level, Stop::Edge(edge));
            }
        }
        least
    }

    pub(crate) fn set_level(&mut self, flow: u32, level: f64, stop: Stop) {
        let member = &mut self.members[flow as usize];
        let (old, weight) = (member.stop, member.weight);
        member.level = level;
        member.stop = stop;
        if old == stop {
            return;
        }
        if let Stop::Edge(edge) = old {
            self.ports[edge as usize].stopped.add(-weight);
        }
        if let Stop::Edge(edge) = stop {
            self.ports[edge as usize].stopped.add(weight);
        }
    }
}
