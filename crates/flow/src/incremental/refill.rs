//! All flows from a level on, filled again.

use super::IncrementalMaxMin;
use super::store::{DEMAND, Port};
use crate::compensated::Sum;
use crate::filling::Stop;

impl IncrementalMaxMin {
    /// Fills all flows at or above the level `from` again. What is below is taken to be right.
    pub(super) fn refill(&mut self, from: f64) {
        for port in &mut self.store.ports {
            port.queued = f64::INFINITY;
        }
        self.agenda.start();
        self.sort_order();
        let store = &mut self.store;
        let filling = &mut self.filling;
        let rest = |port: &Port| {
            let mut rest = port.load;
            rest.add(-port.capacity);
            rest.negated()
        };
        filling.restart(store.ports.iter().map(rest), store.states.len());
        for (flow, state) in store.states.iter().enumerate() {
            if state.is_here() && state.level >= from {
                filling.release(store, flow as u32, state.weight * state.level);
            }
        }
        for port in &mut store.ports {
            if port.level >= from {
                port.level = f64::INFINITY;
                port.stopped = Sum::default();
            }
        }
        let stops = &mut self.stops;
        stops.clear();
        filling.run(store, self.order.iter().copied(), |flow, level, stop| {
            stops.push((flow, level, stop));
        });
        for &(flow, level, stop) in &*stops {
            let state = &mut store.states[flow as usize];
            if state.touched != self.update {
                state.touched = self.update;
                state.before = state.level;
                self.touched.push(flow);
            }
            state.level = level;
            state.stop = DEMAND;
            if let Stop::Edge(edge) = stop {
                let port = &mut store.ports[edge as usize];
                port.level = level;
                port.stopped.add(state.weight);
                state.stop = edge;
            }
        }
        for (port, remaining) in store.ports.iter_mut().zip(&filling.remaining) {
            let mut load = remaining.negated();
            load.add(port.capacity);
            port.load = load;
        }
    }

    /// Takes the later flows into the order, and leaves out those that are no longer what it says.
    fn sort_order(&mut self) {
        self.later.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let store = &self.store;
        let valid = |&(level, flow): &(f64, u32)| {
            let state = &store.states[flow as usize];
            state.is_here() && state.demand_level == level
        };
        let mut merged = std::mem::take(&mut self.spare_order);
        merged.clear();
        let mut later = self.later.drain(..).filter(valid).peekable();
        for entry in self.order.iter().copied().filter(valid) {
            while let Some(new) = later.next_if(|new| new.0 < entry.0) {
                merged.push(new);
            }
            merged.push(entry);
        }
        merged.extend(later);
        self.spare_order = std::mem::replace(&mut self.order, merged);
    }
}
