//! All flows from a level on, filled again.

use super::store::{DEMAND, Port, State, Store};
use super::{EXACT, IncrementalMaxMin};
use crate::compensated::Sum;
use crate::filling::{EdgeState, Stop};

impl IncrementalMaxMin {
    /// Fills all flows at or above the level `from` again. What is below is taken to be right.
    pub(super) fn refill(&mut self, from: f64) {
        for port in &mut self.store.ports {
            port.queued = f64::INFINITY;
        }
        self.agenda.start(EXACT);
        self.rows.clear();
        self.contended.outdate();
        self.sort_order();
        self.start_filling(from);
        for flow in 0..self.store.states.len() {
            if rises(&self.store, &self.store.states[flow], from) {
                self.touch(flow as u32);
            }
        }
        let (store, results) = (&mut self.store, &mut self.results);
        for port in &mut store.ports {
            if port.level >= from {
                port.level = f64::INFINITY;
                port.stopped = Sum::default();
                port.count = 0;
            }
        }
        results.clear();
        results.resize(store.states.len(), None);
        self.filling
            .run(store, self.order.iter().copied(), |flow, level, stop| {
                results[flow as usize] = Some((level, stop));
            });
        // In the order of the flows, as they lie in memory: they stopped in another one.
        for (state, result) in store.states.iter_mut().zip(&*results) {
            match *result {
                None => {}
                Some((_, Stop::Demand)) => state.stop = DEMAND,
                Some((level, Stop::Edge(edge))) => {
                    let port = &mut store.ports[edge as usize];
                    port.level = level;
                    port.stopped.add(state.weight);
                    port.count += 1;
                    state.stop = edge;
                }
            }
        }
        for (port, edge) in store.ports.iter_mut().zip(&self.filling.edges) {
            let mut load = edge.remaining.negated();
            load.add(port.capacity);
            port.load = load;
        }
    }

    /// Makes the flows at or above the level `from` rise and freezes the others, by going over whichever are fewer.
    fn start_filling(&mut self, from: f64) {
        let (store, filling) = (&self.store, &mut self.filling);
        let flows = store.states.len();
        let rising = store
            .states
            .iter()
            .filter(|state| rises(store, state, from));
        if 2 * rising.count() < store.here {
            let left = |port: &Port| {
                let mut left = port.load;
                left.add(-port.capacity);
                EdgeState {
                    remaining: left.negated(),
                    ..EdgeState::default()
                }
            };
            filling.restart(store.ports.iter().map(left), flows, false);
            for (flow, state) in store.states.iter().enumerate() {
                if rises(store, state, from) {
                    filling.release(store, flow as u32, state.weight * store.level(state));
                }
            }
        } else {
            let whole = |(port, &weight): (&Port, &Sum)| EdgeState {
                remaining: Sum::new(port.capacity),
                weight,
                count: port.members,
            };
            filling.restart(
                store.ports.iter().zip(&store.weights).map(whole),
                flows,
                true,
            );
            for (flow, state) in store.states.iter().enumerate() {
                if state.is_here() && !rises(store, state, from) {
                    filling.freeze(store, flow as u32, state.weight, store.level(state));
                }
            }
        }
    }

    /// Takes the later flows into the order, and leaves out those that are no longer what it says.
    fn sort_order(&mut self) {
        self.later.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let levels = &self.demand_levels;
        let valid = |&(level, flow): &(f64, u32)| levels[flow as usize] == level;
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

/// Whether a refill from the level `from` lets the flow rise again.
fn rises(store: &Store, state: &State, from: f64) -> bool {
    state.is_here() && store.level(state) >= from
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};

    use crate::{Flow, FlowId, Flows, IncrementalMaxMin, Network, Precision};

    /// 60 flows with weights and demands over paths of 1 to 4 of 12 edges; every seventh has left again.
    fn solver(seed: u64) -> IncrementalMaxMin {
        let mut draw = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |limit: u64| draw.next_u64() % limit;
        let mut network = Network::new();
        let edges: Vec<_> = (0..12)
            .map(|n| {
                let (from, to) = (n.to_string(), (n + 1).to_string());
                let capacity = 5.0 + below(40) as f64;
                network.add_edge(&from, &from, &to, capacity).unwrap()
            })
            .collect();
        let mut flows = Flows::new(&network);
        for _ in 0..60 {
            let (first, hops) = (below(9) as usize, 1 + below(4) as usize);
            let demand = 0.1 + below(100) as f64 / 10.0;
            let weight = 0.5 + below(5) as f64;
            let path = edges[first..(first + hops).min(12)].to_vec();
            let flow = Flow {
                weight,
                ..Flow::new(path, demand)
            };
            flows.push(&flow).unwrap();
        }
        let mut solver = IncrementalMaxMin::new(&flows, Precision::Exact).unwrap();
        for flow in (0..60).step_by(7) {
            solver.depart(FlowId(flow)).unwrap();
        }
        solver
    }

    /// Rates that are right stay as they are, and so does what is known of the edges, from whichever level the flows are
    /// filled again: few of them, most of them, or all.
    #[test]
    fn a_refill_from_any_level_keeps_correct_rates() {
        for seed in 0..20 {
            let mut solver = solver(seed);
            let before: Vec<_> = solver.rates().collect();
            let mut levels: Vec<f64> = before
                .iter()
                .map(|(flow, _)| solver.store.level(&solver.store.states[flow.index()]))
                .collect();
            levels.sort_by(f64::total_cmp);
            let port = |solver: &IncrementalMaxMin| -> Vec<[f64; 3]> {
                let of = |port: &super::Port| [port.load.value(), port.stopped.value(), port.level];
                solver.store.ports.iter().map(of).collect()
            };
            let ports = port(&solver);
            let from = [
                0.0, levels[5], levels[25], levels[26], levels[40], levels[49],
            ];
            for from in from.into_iter().chain([f64::MAX]) {
                solver.begin();
                solver.refill(from);
                for ((flow, old), (_, new)) in before.iter().zip(solver.rates()) {
                    assert!(
                        (new / old - 1.0).abs() < 1e-12,
                        "{seed} {flow:?} {old} {new}"
                    );
                }
                for (old, new) in ports.iter().zip(port(&solver)) {
                    for (old, new) in old.iter().zip(new) {
                        let near = (old - new).abs() <= 1e-12 * old.abs().max(1.0);
                        assert!(near || *old == new, "{seed} from {from}: {old} {new}");
                    }
                }
                assert!(solver.changes().next().is_none(), "{seed} from {from}");
            }
        }
    }
}
