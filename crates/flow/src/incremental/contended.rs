//! Which flows may come to be stopped by something else.

use super::store::{DEMAND, State, Store};

/// A flow that is in no list stays with what stops it if no level is wrong by more than this of itself.
pub(super) const SURE: f64 = 2e-3;

/// By edge: the flows that it stops and something else may, or that it may come to stop.
///
/// Each edge has a reference: its level when all of its flows were looked at last, and a band, a factor that its level
/// may go away from it. The lists hold every flow of which something that does not stop it may come to have a lower level
/// than what does, while both are in their bands and wrong by [`SURE`]. So as long as levels are in their bands, an edge that
/// gets a new level needs to look at its list alone.
pub(super) struct Contended {
    /// By edge: reference, infinite if it had no level; and band.
    references: Vec<(f64, f64)>,
    /// By edge.
    pub(super) lists: Vec<Vec<u32>>,
    /// Whether the lists are of the present levels.
    is_current: bool,
}

/// The band of an edge of so many flows: each has the less of a part in the level, the more there are, and the more work it is
/// to look at all of them.
fn band(members: u32) -> f64 {
    1.0 + (30.0 / f64::from(members.max(1))).clamp(0.003, 0.03)
}

impl Contended {
    pub(super) fn new(edges: usize) -> Self {
        Self {
            references: vec![(f64::INFINITY, 1.0); edges],
            lists: vec![Vec::new(); edges],
            is_current: false,
        }
    }

    /// Makes the lists void: all levels are new.
    pub(super) fn outdate(&mut self) {
        self.is_current = false;
    }

    /// Whether the list of `edge` is enough to give it the level `level`.
    pub(super) fn covers(&self, edge: u32, level: f64) -> bool {
        let (reference, band) = self.references[edge as usize];
        level == f64::INFINITY || (level <= band * reference && level * band >= reference)
    }

    /// Lists all flows, if the lists are void.
    pub(super) fn make_current(&mut self, store: &mut Store) {
        if std::mem::replace(&mut self.is_current, true) {
            return;
        }
        for (reference, port) in self.references.iter_mut().zip(&store.ports) {
            *reference = (port.level, band(port.members));
        }
        for list in &mut self.lists {
            list.clear();
        }
        store.paths.listed.fill(false);
        for flow in 0..store.states.len() as u32 {
            if store.is_here(flow) {
                self.list(store, flow);
            }
        }
    }

    /// Makes `level` the reference of `edge`, and empties its list. The caller lists its flows when they have their levels.
    pub(super) fn restart(&mut self, store: &mut Store, edge: u32, level: f64) {
        let members = store.ports[edge as usize].members;
        self.references[edge as usize] = (level, band(members));
        for flow in std::mem::take(&mut self.lists[edge as usize]) {
            let span = store.states[flow as usize].span();
            if let Some(at) = store.paths.position(span, edge) {
                store.paths.listed[at] = false;
            }
        }
    }

    /// Lists `flow` again after `edge` of its path got a new reference. Gives how many hops that took.
    pub(super) fn list_again(&mut self, store: &mut Store, flow: u32, edge: u32) -> usize {
        let state = &store.states[flow as usize];
        let hops = state.span().len();
        if state.stop != edge {
            let (reference, band) = self.references[edge as usize];
            if reference > self.most(state) * band {
                return 1;
            }
        }
        self.list(store, flow);
        2 * hops
    }

    /// The level up to which what stops a flow may rise.
    fn most(&self, state: &State) -> f64 {
        let (level, band) = match state.stop {
            DEMAND => (state.demand_level, 1.0),
            edge => self.references[edge as usize],
        };
        level * band * (1.0 + 3.0 * SURE)
    }

    /// Lists `flow` with all edges that may stop it, if there is more than one, or its demand may.
    pub(super) fn list(&mut self, store: &mut Store, flow: u32) {
        let state = &store.states[flow as usize];
        let most = self.most(state);
        let may_stop = |(reference, band): (f64, f64)| reference <= most * band;
        let rivals = store
            .paths
            .of(state)
            .iter()
            .filter(|&&edge| may_stop(self.references[edge as usize]))
            .count()
            + usize::from(state.demand_level <= most);
        if rivals < 2 {
            return;
        }
        for at in state.span() {
            let edge = store.paths.edge(at) as usize;
            if may_stop(self.references[edge])
                && !std::mem::replace(&mut store.paths.listed[at], true)
            {
                self.lists[edge].push(flow);
            }
        }
    }

    /// Takes `flow` off all lists.
    pub(super) fn remove(&mut self, store: &mut Store, flow: u32) {
        for at in store.states[flow as usize].span() {
            if !std::mem::replace(&mut store.paths.listed[at], false) {
                continue;
            }
            let list = &mut self.lists[store.paths.edge(at) as usize];
            if let Some(place) = list.iter().position(|&listed| listed == flow) {
                list.swap_remove(place);
            }
        }
    }
}
