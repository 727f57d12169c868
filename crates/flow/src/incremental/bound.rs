//! How far from the exact rates the present ones can be.

use super::IncrementalMaxMin;
use super::contended::SURE;
use super::store::DEMAND;

/// Attempts to find a box: each allows the errors of the one before twice over.
const ATTEMPTS: usize = 4;
/// Relative error that is within the rounding of what is summed here.
const ROUNDING: f64 = 1e-12;

impl IncrementalMaxMin {
    /// A bound of the relative error of every rate, if one can be shown.
    ///
    /// The exact levels are a fixed point: each level is that at which its edge is full if the other levels limit its flows. An
    /// edge gets the more, the less the others give to its flows. So if each edge, with the other levels anywhere between
    /// `level * (1 - error)` and `level * (1 + error)`, has its own level within these bounds too, then the exact levels, of
    /// which the rates are unique, lie there (Brouwer's fixed-point theorem).
    ///
    /// The error of an edge is what is missing on it, and the errors of the flows that lower levels stop, over what it
    /// gives to the flows that it stops itself: a sweep by increasing level finds all. Flows that are not in a list of
    /// `contended` stay with their edge throughout the box; for those that are, the least of the box counts.
    pub(super) fn error_bound(&mut self) -> Option<f64> {
        let mut stopping: Vec<u32> = (0..self.store.ports.len() as u32)
            .filter(|&edge| self.store.ports[edge as usize].count > 0)
            .collect();
        let level = |edge: &u32| self.store.ports[*edge as usize].level;
        stopping.sort_unstable_by(|a, b| level(a).total_cmp(&level(b)));
        let edges = self.store.ports.len();
        let (mut lost, mut allowed) = (vec![0.0; edges], vec![0.0; edges]);
        for _ in 0..ATTEMPTS {
            let errors = self.errors(&stopping, &lost)?;
            if errors
                .iter()
                .zip(&allowed)
                .all(|(error, most)| error <= most)
            {
                let error = errors.iter().copied().fold(0.0, f64::max);
                // Of the exact rate, which may be as much below the present one.
                return Some(error / (1.0 - error));
            }
            for (most, error) in allowed.iter_mut().zip(&errors) {
                *most = most.max(2.0 * error);
                if *most > SURE {
                    return None;
                }
            }
            for &edge in &stopping {
                lost[edge as usize] = self.lost(edge, &allowed);
            }
        }
        None
    }

    /// The errors of all levels, by edge, if the edges lose `lost` of the rates of contended flows. None if an edge that
    /// stops no flows may have to.
    fn errors(&mut self, stopping: &[u32], lost: &[f64]) -> Option<Vec<f64>> {
        let mut errors = vec![0.0; lost.len()];
        // By edge: the errors of what lower levels stop.
        let mut below = vec![0.0; lost.len()];
        for &edge in stopping {
            let port = &self.store.ports[edge as usize];
            let missing = (port.load.value() - port.capacity).abs();
            let stopped = port.stopped.value() * port.level;
            let error = (missing + lost[edge as usize] + below[edge as usize]) / stopped + ROUNDING;
            errors[edge as usize] = error;
            let by = error * port.level;
            for entry in self.rows.row(&self.store, edge).0 {
                below[entry.edge as usize] += by * entry.weight;
            }
            below[edge as usize] -= error * stopped;
        }
        let room = |(port, below): (&super::store::Port, &f64)| match port.count {
            0 => port.load.value() + below <= port.capacity * (1.0 + ROUNDING),
            // An edge of the same level came later, if this fails.
            _ => true,
        };
        self.store
            .ports
            .iter()
            .zip(&below)
            .all(room)
            .then_some(errors)
    }

    /// By how much the contended flows of `edge` may be slower than what stops them lets them, if the levels have `errors`.
    fn lost(&self, edge: u32, errors: &[f64]) -> f64 {
        let store = &self.store;
        let list = &self.contended.lists[edge as usize];
        let lost = |&flow: &u32| {
            let state = &store.states[flow as usize];
            let others = store.paths.of(state).iter().filter(|&&other| other != edge);
            let least = others
                .map(|&other| store.ports[other as usize].level * (1.0 - errors[other as usize]))
                .fold(state.demand_level, f64::min);
            let expected = match state.stop {
                DEMAND => state.demand_level,
                stop if stop == edge => {
                    store.ports[edge as usize].level * (1.0 + errors[edge as usize])
                }
                stop => store.ports[stop as usize].level * (1.0 - errors[stop as usize]),
            };
            state.weight * (expected - least).max(0.0)
        };
        list.iter().map(lost).sum()
    }
}
