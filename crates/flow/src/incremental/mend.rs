//! Following a change from edge to edge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::store::Port;
use super::{IncrementalMaxMin, Precision};
use crate::level::{Share, water_level};

/// An approximate update is exact as long as it visits no more than this part of all hops ...
const EXACT_PART: usize = 24;
/// ... and then follows errors of a level down to the bound divided by this.
const MARGIN: f64 = 64.0;
/// Part of a capacity that rounding may take from the sum of the rates.
const ROUNDING: f64 = 1e-15;

/// A flow that may change when an edge gets a new level.
#[derive(Clone, Copy)]
pub(super) struct Move {
    flow: u32,
    /// What stops it if the edge does not, and at which level.
    stop: u32,
    cap: f64,
}

impl Port {
    /// What is too much on the edge, and for which excess its level would be wrong by all of itself.
    pub(super) fn wrong_by(&self) -> (f64, f64) {
        let excess = self.load.value() - self.capacity;
        if self.level == f64::INFINITY {
            // The fastest flow has at least the mean rate, and would have to give the excess.
            let mean = self.capacity / f64::from(self.members.max(1));
            return (excess.max(0.0), mean);
        }
        // So much would the level move, if only the flows that the edge stops moved.
        let stopped = (self.stopped.value() * self.level).max(0.0);
        (excess, stopped.min(self.capacity))
    }

    /// Whether the level is wrong by more than `error` of itself.
    fn is_wrong(&self, error: f64) -> bool {
        let (excess, whole) = self.wrong_by();
        excess.abs() > error * whole + ROUNDING * self.capacity
    }
}

/// The edges to mend.
pub(super) struct Agenda {
    /// Relative error of a level that is left as it is.
    pub(super) error: f64,
    /// The lowest level first.
    pub(super) queue: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Agenda {
    pub(super) fn new() -> Self {
        Self {
            error: 0.0,
            queue: BinaryHeap::new(),
        }
    }

    /// Empties it for the next update.
    pub(super) fn start(&mut self, error: f64) {
        self.error = error;
        self.queue.clear();
    }

    /// Queues the edge `edge` if it is wrong. `reached` is the level below which all is final.
    #[inline]
    fn look(&mut self, port: &mut Port, edge: u32, reached: f64) {
        if !port.is_wrong(self.error) {
            return;
        }
        let excess = port.load.value() - port.capacity;
        // An edge that is not full rises from its level; a full one falls at most to this.
        let key = if excess <= 0.0 {
            port.level
        } else if port.level.is_finite() && port.count > 0 {
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
}

impl IncrementalMaxMin {
    /// Mends the edges in the queue by increasing level until none is wrong. If that takes too much work, it gives the level
    /// below which nothing has changed.
    pub(super) fn follow(&mut self, work: &mut Work) -> Result<(), f64> {
        while let Some(Reverse((bits, edge))) = self.agenda.queue.pop() {
            let key = f64::from_bits(bits);
            let port = &mut self.store.ports[edge as usize];
            if key != port.queued {
                continue;
            }
            port.queued = f64::INFINITY;
            if let Precision::Within(bound) = self.precision
                && work.spent > self.store.live_hops / EXACT_PART
            {
                self.agenda.error = bound / MARGIN;
                self.is_inexact = true;
            }
            let port = &self.store.ports[edge as usize];
            if !port.is_wrong(self.agenda.error) {
                continue;
            }
            let old = port.level;
            if work.spent > work.most {
                work.lowest = work.lowest.min(key);
                return Err(work.lowest);
            }
            let (level, all) = self.level_of(edge, work);
            let next = self
                .agenda
                .queue
                .peek()
                .map_or(f64::INFINITY, |top| f64::from_bits(top.0.0));
            if level < old && level > key && next < level {
                // The key was a lower bound; another edge comes first.
                self.store.ports[edge as usize].queued = level;
                self.agenda.queue.push(Reverse((level.to_bits(), edge)));
                continue;
            }
            work.lowest = work.lowest.min(key).min(level);
            if all {
                self.contended.restart(&mut self.store, edge, level);
            }
            self.apply(edge, level, work);
            if all {
                self.list_members(edge, work);
            }
        }
        Ok(())
    }

    /// Queues `edge` if it is wrong. `reached` is the level below which all is final.
    pub(super) fn look(&mut self, edge: u32, reached: f64) {
        self.agenda
            .look(&mut self.store.ports[edge as usize], edge, reached);
    }

    /// The level of `edge` for what limits its flows elsewhere, and whether it had to look at all of them. Leaves the flows that
    /// it may concern in `self.moves`.
    fn level_of(&mut self, edge: u32, work: &mut Work) -> (f64, bool) {
        work.edges += 1;
        // Every edge counts, so that edges that make each other wrong end in a refill.
        work.spent += 1;
        let list = std::mem::take(&mut self.contended.lists[edge as usize]);
        let (level, room) = self.level_among(edge, &list, work);
        self.contended.lists[edge as usize] = list;
        let is_known = level < f64::INFINITY || !self.shares.is_empty() || room >= 0.0;
        if is_known && self.contended.covers(edge, level) {
            return (level, false);
        }
        let members = std::mem::take(&mut self.store.paths.members[edge as usize]);
        let (level, _) = self.level_among(edge, &members, work);
        self.store.paths.members[edge as usize] = members;
        (level, true)
    }

    /// The level of `edge` if of its flows only `flows` come to be stopped by something else; and what they have together.
    fn level_among(&mut self, edge: u32, flows: &[u32], work: &mut Work) -> (f64, f64) {
        let Self {
            store,
            moves,
            shares,
            ..
        } = self;
        let port = store.ports[edge as usize];
        moves.clear();
        shares.clear();
        let mut room = port.load;
        room.add(-port.capacity);
        let mut room = room.negated();
        let (mut stay, mut weight_that_stays) = (port.count, port.stopped);
        for &flow in flows {
            let state = &store.states[flow as usize];
            let (weight, is_stopped) = (state.weight, state.stop == edge);
            let (mut cap, mut stop) = (store.level(state), state.stop);
            room.add(weight * cap);
            if is_stopped {
                stay -= 1;
                weight_that_stays.add(-weight);
                (cap, stop) = store.limit_elsewhere(flow, edge);
                work.spent += state.span().len();
            }
            moves.push(Move { flow, stop, cap });
            shares.push(Share { cap, weight });
            work.spent += 1;
        }
        if stay > 0 {
            let weight = weight_that_stays.value();
            room.add(weight * port.level);
            shares.push(Share {
                cap: f64::INFINITY,
                weight,
            });
        }
        let fits = shares.is_empty();
        let level = water_level(shares, room.value());
        if level == f64::INFINITY && !fits {
            // All of them fit: `water_level` has emptied the shares.
            return (level, 0.0);
        }
        (level, room.value())
    }

    /// Gives `edge` its new level, the flows of `self.moves` what stops them, and queues the edges that this makes wrong.
    fn apply(&mut self, edge: u32, level: f64, work: &mut Work) {
        let old = self.store.ports[edge as usize].level;
        let reached = level.min(old);
        self.touch_edge(edge);
        let moves = std::mem::take(&mut self.moves);
        for &Move { flow, stop, cap } in &moves {
            if self.store.states[flow as usize].stop == edge && cap < level {
                self.change_stop(flow, stop, cap, reached);
            }
        }
        let port = &mut self.store.ports[edge as usize];
        port.level = level;
        if port.count > 0 {
            let by = level - old;
            let (row, hops) = self.rows.row(&self.store, edge);
            for entry in row {
                let port = &mut self.store.ports[entry.edge as usize];
                port.load.add(by * entry.weight);
                if entry.edge != edge {
                    self.agenda.look(port, entry.edge, reached);
                }
            }
            work.spent += row.len() / 4 + hops / 16;
        }
        for &Move { flow, cap, .. } in &moves {
            if cap > level && self.store.states[flow as usize].stop != edge {
                self.change_stop(flow, edge, level, reached);
            }
        }
        self.moves = moves;
    }

    /// Lets `stop`, which has the level `level` or will have it, stop `flow`.
    fn change_stop(&mut self, flow: u32, stop: u32, level: f64, reached: f64) {
        self.touch(flow);
        let state = self.store.states[flow as usize];
        let by = state.weight * level - state.weight * self.store.level(&state);
        self.rows.remove(&self.store, flow, state.stop);
        self.store.set_stop(flow, stop);
        self.rows.add(&self.store, flow, stop);
        self.contended.list(&mut self.store, flow);
        for at in state.span() {
            let edge = self.store.paths.edge(at);
            let port = &mut self.store.ports[edge as usize];
            port.load.add(by);
            self.agenda.look(port, edge, reached);
        }
    }

    /// Lists the flows of `edge` again.
    fn list_members(&mut self, edge: u32, work: &mut Work) {
        let members = std::mem::take(&mut self.store.paths.members[edge as usize]);
        for &flow in &members {
            work.spent += self.contended.list_again(&mut self.store, flow, edge);
        }
        self.store.paths.members[edge as usize] = members;
    }
}

/// What one update has done so far.
pub(super) struct Work {
    /// Hops that it may visit.
    pub(super) most: usize,
    /// Hops that it visited.
    pub(super) spent: usize,
    /// Edges of which it computed the level.
    pub(super) edges: usize,
    /// No level below this has changed.
    pub(super) lowest: f64,
}

impl Work {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            spent: 0,
            edges: 0,
            lowest: f64::INFINITY,
        }
    }
}
