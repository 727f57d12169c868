//! Following a change from edge to edge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::store::{DEMAND, Port, State};
use super::{Change, IncrementalMaxMin, Method, Precision};
use crate::incidence::Incidence;
use crate::level::{Share, water_level};

/// Relative error of a level below which an exact update calls it unchanged.
const EXACT: f64 = 1e-12;
/// An approximate update is exact as long as it visits no more hops than this ...
const EXACT_HOPS: usize = 6_000;
/// ... and then follows errors of a level down to the bound divided by this: what several edges leave undone adds up, and
/// more so where an edge stops few of its flows.
const MARGIN: f64 = 8.0;
/// Part of a capacity that rounding may take from the sum of the rates.
const ROUNDING: f64 = 1e-15;

/// In place of an edge: what stops the flow is looked up if it is needed.
const LOOK_UP: u32 = DEMAND - 1;

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
    fn wrong_by(&self) -> (f64, f64) {
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
    error: f64,
    /// The lowest level first.
    pub(super) queue: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Agenda {
    pub(super) fn new() -> Self {
        Self {
            error: EXACT,
            queue: BinaryHeap::new(),
        }
    }

    /// Empties it for the next update.
    pub(super) fn start(&mut self) {
        self.error = EXACT;
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
}

impl IncrementalMaxMin {
    /// Mends the edges that are wrong.
    pub(super) fn settle(&mut self) -> Change {
        let mut work = Work {
            // Beyond this a refill is cheaper than to go on; up to it the attempt costs little beside one.
            most: match self.precision {
                Precision::Exact => self.store.live_hops / 16 + 1_000,
                Precision::Within(_) => self.store.live_hops / 2 + 1_000,
            },
            spent: 0,
            edges: 0,
            lowest: f64::INFINITY,
        };
        let local = self.follow(&mut work);
        if !local {
            // Levels are mended from below: what is under the lowest key has not changed.
            let from = match self.precision {
                Precision::Exact => work.lowest * (1.0 - 1e-9),
                // What is below is only nearly right: this is the chance to mend it.
                Precision::Within(_) => 0.0,
            };
            self.refill(from);
        }
        Change {
            affected: self.changes().count(),
            edges: work.edges,
            method: if local { Method::Local } else { Method::Refill },
        }
    }

    /// Mends the edges in the queue by increasing level until none is wrong. Gives false if that takes too much work.
    fn follow(&mut self, work: &mut Work) -> bool {
        while let Some(Reverse((bits, edge))) = self.agenda.queue.pop() {
            let key = f64::from_bits(bits);
            let port = &mut self.store.ports[edge as usize];
            if key != port.queued {
                continue;
            }
            port.queued = f64::INFINITY;
            if let Precision::Within(bound) = self.precision {
                let hops = work.spent + 4 * port.members as usize;
                if hops > EXACT_HOPS && !port.is_wrong(bound / MARGIN) {
                    continue;
                }
                if work.spent > EXACT_HOPS {
                    self.agenda.error = bound / MARGIN;
                }
            }
            if !port.is_wrong(self.agenda.error) {
                continue;
            }
            let old = port.level;
            if work.spent > work.most {
                work.lowest = work.lowest.min(key);
                return false;
            }
            let level = self.level_of(edge, work);
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
            self.apply(edge, level, work);
        }
        true
    }

    /// Queues `edge` if it is wrong. `reached` is the level below which all is final.
    pub(super) fn look(&mut self, edge: u32, reached: f64) {
        self.agenda
            .look(&mut self.store.ports[edge as usize], edge, reached);
    }

    /// The level of `edge` for what limits its flows elsewhere; leaves the flows that it may concern in `self.moves`.
    ///
    /// A flow has the least of the levels on its path, so the flows that the edge does not stop are no faster than those that
    /// it stops. If its level rises, only the latter change. If it falls, those of the former change that are faster
    /// than what it may fall to.
    fn level_of(&mut self, edge: u32, work: &mut Work) -> f64 {
        let port = self.store.ports[edge as usize];
        let excess = port.load.value() - port.capacity;
        let (moves, shares) = (&mut self.moves, &mut self.shares);
        moves.clear();
        shares.clear();
        work.edges += 1;
        work.spent += port.members as usize / 8 + 1;
        // What the flows of `shares` have together.
        let mut room = port.load;
        room.add(-port.capacity);
        let mut room = room.negated();
        let stopped = port.stopped.value();
        if port.level.is_finite() && excess <= 0.0 {
            // Out of the way of the minimum over the other edges.
            self.store.ports[edge as usize].level = f64::INFINITY;
            for &flow in self.store.members(edge) {
                let state = &self.store.states[flow as usize];
                if state.stop == edge {
                    let cap = self.store.least_level(state);
                    let weight = state.weight;
                    moves.push(Move {
                        flow,
                        stop: LOOK_UP,
                        cap,
                    });
                    shares.push(Share { cap, weight });
                    room.add(weight * state.level);
                }
            }
            self.store.ports[edge as usize].level = port.level;
            work.spent += 4 * moves.len();
            return water_level(shares, room.value());
        }
        let mut low = 0.0;
        if port.level.is_finite() && stopped > 0.0 {
            low = port.level - excess / stopped;
            shares.push(Share {
                cap: f64::INFINITY,
                weight: stopped,
            });
            room.add(stopped * port.level);
        }
        for &flow in self.store.members(edge) {
            let &State {
                level,
                stop,
                weight,
                ..
            } = &self.store.states[flow as usize];
            if stop == edge {
                let cap = f64::INFINITY;
                moves.push(Move { flow, stop, cap });
            } else if level > low {
                moves.push(Move {
                    flow,
                    stop,
                    cap: level,
                });
                shares.push(Share { cap: level, weight });
                room.add(weight * level);
            }
        }
        water_level(shares, room.value())
    }

    /// Gives `edge` its new level, its flows theirs, and queues the edges that this makes wrong.
    ///
    /// Three short loops instead of a long one: each waits for memory that it could have asked for ahead.
    fn apply(&mut self, edge: u32, level: f64, work: &mut Work) {
        let reached = level.min(self.store.ports[edge as usize].level);
        self.store.ports[edge as usize].level = level;
        self.steps.clear();
        for &Move { flow, stop, cap } in &self.moves {
            let (new_level, new_stop) = if cap <= level {
                (cap, stop)
            } else {
                (level, edge)
            };
            let new_stop = match new_stop {
                LOOK_UP => self.store.limit_elsewhere(flow, edge).1,
                known => known,
            };
            let state = &mut self.store.states[flow as usize];
            let old_level = state.level;
            if new_level == old_level && new_stop == state.stop {
                continue;
            }
            if state.touched != self.update {
                state.touched = self.update;
                state.before = old_level;
                self.touched.push(flow);
            }
            let delta = state.weight * new_level - state.weight * old_level;
            if delta != 0.0 {
                self.steps.push((state.span(), delta));
            }
            self.store.set_level(flow, new_level, new_stop);
        }
        self.marked.clear();
        self.applied = self.applied.wrapping_add(1);
        for (span, delta) in &self.steps {
            for &at in self.store.paths.hops(span.clone()) {
                let port = &mut self.store.ports[at as usize];
                port.load.add(*delta);
                if port.marked != self.applied {
                    port.marked = self.applied;
                    self.marked.push(at);
                }
            }
            work.spent += span.len();
        }
        for &at in &self.marked {
            if at != edge {
                self.agenda
                    .look(&mut self.store.ports[at as usize], at, reached);
            }
        }
    }
}

/// What one update has done so far.
pub(super) struct Work {
    /// Hops that it may visit.
    most: usize,
    /// Hops that it visited.
    spent: usize,
    /// Edges of which it computed the level.
    edges: usize,
    /// No level below this has changed.
    lowest: f64,
}
