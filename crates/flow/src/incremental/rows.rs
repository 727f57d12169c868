//! Where the flows that an edge stops go.

use super::store::{DEMAND, Store};

/// Flows that one edge stops, on one edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) edge: u32,
    /// How many.
    count: u32,
    /// Sum of their weights.
    pub(super) weight: f64,
}

/// By edge that stops flows: on which edges they are, by increasing edge. If its level rises by one, the load of each of these
/// rises by the weight. A row is made when it is asked for.
pub(super) struct Rows {
    rows: Vec<Option<Vec<Entry>>>,
    /// By edge: its entry while a row is made.
    sums: Vec<Entry>,
}

impl Rows {
    pub(super) fn new(edges: usize) -> Self {
        let entry = |edge| Entry {
            edge,
            count: 0,
            weight: 0.0,
        };
        Self {
            rows: vec![None; edges],
            sums: (0..edges as u32).map(entry).collect(),
        }
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.rows.fill(None);
    }

    /// The row of `edge`, and how many hops it took to make it.
    pub(super) fn row(&mut self, store: &Store, edge: u32) -> (&[Entry], usize) {
        let Self { rows, sums } = self;
        let row = &mut rows[edge as usize];
        let mut hops = 0;
        let row = row.get_or_insert_with(|| {
            let mut edges = Vec::new();
            for &flow in &store.paths.members[edge as usize] {
                let state = &store.states[flow as usize];
                if state.stop != edge {
                    continue;
                }
                for &at in store.paths.of(state) {
                    let sum = &mut sums[at as usize];
                    if sum.count == 0 {
                        edges.push(at);
                    }
                    sum.count += 1;
                    sum.weight += state.weight;
                    hops += 1;
                }
            }
            edges.sort_unstable();
            let entry = |edge: u32| {
                let sum = &mut sums[edge as usize];
                let entry = *sum;
                (sum.count, sum.weight) = (0, 0.0);
                entry
            };
            edges.into_iter().map(entry).collect()
        });
        (row, hops)
    }

    /// Takes `flow`, which `stop` stops, into its row.
    pub(super) fn add(&mut self, store: &Store, flow: u32, stop: u32) {
        let Some(row) = self.made(stop) else { return };
        let state = &store.states[flow as usize];
        for &edge in store.paths.of(state) {
            match row.binary_search_by_key(&edge, |entry| entry.edge) {
                Ok(at) => {
                    row[at].count += 1;
                    row[at].weight += state.weight;
                }
                Err(at) => row.insert(
                    at,
                    Entry {
                        edge,
                        count: 1,
                        weight: state.weight,
                    },
                ),
            }
        }
    }

    /// Takes `flow`, which `stop` stopped, out of its row.
    pub(super) fn remove(&mut self, store: &Store, flow: u32, stop: u32) {
        let Some(row) = self.made(stop) else { return };
        let state = &store.states[flow as usize];
        for &edge in store.paths.of(state) {
            if let Ok(at) = row.binary_search_by_key(&edge, |entry| entry.edge) {
                row[at].count -= 1;
                row[at].weight -= state.weight;
                if row[at].count == 0 {
                    row.remove(at);
                }
            }
        }
    }

    fn made(&mut self, stop: u32) -> Option<&mut Vec<Entry>> {
        if stop == DEMAND {
            return None;
        }
        self.rows[stop as usize].as_mut()
    }
}
