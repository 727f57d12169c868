//! What an estimator is, and what it gives.

use crate::error::FlowError;
use crate::flows::{FlowId, Flows};
use crate::network::EdgeId;

/// What keeps a flow from being faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Nothing on the fabric: it gets its demand.
    Demand,
    /// What it keeps in flight: it gets that once in the time of its path, which is less than its demand.
    Window,
    /// This edge: its bottleneck.
    Edge(EdgeId),
}

/// The rate of every flow when all run at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    rates: Vec<f64>,
    limits: Vec<Limit>,
    settled: bool,
}

impl Estimate {
    /// An estimate from the rate and the limit of each flow, in order of the flows.
    ///
    /// # Panics
    /// If a rate is not above 0: every flow gets something.
    pub fn new(rates: Vec<f64>, limits: Vec<Limit>) -> Self {
        assert_eq!(
            rates.len(),
            limits.len(),
            "a rate and a limit for each flow"
        );
        if let Some(flow) = rates.iter().position(|rate| rate.is_nan() || *rate <= 0.0) {
            panic!("flow {flow} has a rate of {}", rates[flow]);
        }
        Self {
            rates,
            limits,
            settled: true,
        }
    }

    /// The same estimate, of an estimator that ended before its rates were those that it looked for.
    pub fn unsettled(self) -> Self {
        Self {
            settled: false,
            ..self
        }
    }

    /// Whether the rates are those that the estimator looked for. If not, they are as near as it came.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Rates in the unit of the capacities, in order of the flows.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// What limits each flow, in order of the flows.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Rate of one flow.
    pub fn rate(&self, flow: FlowId) -> f64 {
        self.rates[flow.index()]
    }

    /// Load of every edge: the sum of what the flows take of it, in order of the edges.
    pub fn loads(&self, flows: &Flows<'_>) -> Vec<f64> {
        let mut loads = flows.beside(&self.rates);
        for (flow, &rate) in self.rates.iter().enumerate() {
            for (edge, cost) in flows.uses(flow) {
                loads[edge] += rate * cost;
            }
        }
        loads
    }

    /// An estimate from rates alone: a flow below what it reaches alone by more than `tolerance` of it is limited by
    /// an edge of its path. Of those that are full but for `tolerance` of the fullest, it is the one on which the flow comes
    /// nearest to the greatest rate: elsewhere others get more, so that it is held back before or behind it.
    pub fn from_rates(rates: Vec<f64>, flows: &Flows<'_>, tolerance: f64) -> Self {
        let alone: Vec<(f64, Limit)> = (0..flows.len()).map(|flow| flows.alone(flow)).collect();
        let limits = alone.iter().map(|&(_, limit)| limit).collect();
        let mut estimate = Self::new(rates.clone(), limits);
        let loads = estimate.loads(flows);
        let mut greatest = vec![0.0f64; loads.len()];
        for (flow, &rate) in rates.iter().enumerate() {
            for &edge in flows.path(flow) {
                let most = &mut greatest[edge as usize];
                *most = most.max(rate);
            }
        }
        for (flow, &(reached, _)) in alone.iter().enumerate() {
            if rates[flow] >= reached * (1.0 - tolerance) {
                continue;
            }
            let full = |edge: u32| loads[edge as usize] / flows.capacity(edge as usize);
            let path = flows.path(flow).iter().copied();
            let fullest = path.clone().map(full).fold(0.0, f64::max);
            let filled = path.filter(|&edge| full(edge) >= fullest * (1.0 - tolerance));
            // What a fuller edge says beyond the greatest share is noise of the rates.
            let share = |edge: u32| (rates[flow] / greatest[edge as usize], full(edge));
            let limit = filled.max_by(|&a, &b| {
                let (a, b) = (share(a), share(b));
                let alike = (a.0 - b.0).abs() <= tolerance;
                if alike {
                    a.1.total_cmp(&b.1)
                } else {
                    a.0.total_cmp(&b.0)
                }
            });
            if let Some(edge) = limit {
                estimate.limits[flow] = Limit::Edge(EdgeId(edge));
            }
        }
        estimate
    }
}

/// Says what each flow gets.
pub trait Estimator {
    /// The word for it on the command line and in tables.
    fn name(&self) -> &'static str;

    /// Whether flows that are alike can be one, with all their demands and weights: each of them has its part of its rate.
    fn merges(&self) -> bool {
        false
    }

    /// The rates of `flows` when all of them run, of whose edges those take nothing that are beside their paths.
    fn solve(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError>;

    /// The rates of `flows` when all of them run. What they take beside their paths is a small part of an edge and follows from
    /// the rates: it is taken off the capacities, and the rates are found again, until that no longer changes.
    fn estimate(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        let mut estimate = self.solve(flows)?;
        if !flows.has_sides() {
            return Ok(estimate);
        }
        let mut taken = flows.beside(estimate.rates());
        for _ in 0..ROUNDS {
            estimate = self.solve(&flows.with_taken(taken.clone()))?;
            let next = flows.beside(estimate.rates());
            let pairs = next.iter().zip(&taken);
            let settled = pairs.clone().all(|(a, b)| (a - b).abs() <= SETTLED * a);
            taken = next;
            if settled {
                break;
            }
        }
        Ok(estimate)
    }
}

/// Rounds of [`Estimator::estimate`] at most. What a flow takes beside its path is a twentieth of its rate, so that each round is
/// nearer by as much.
const ROUNDS: usize = 12;
/// Part of it by which what is taken beside paths may still change.
const SETTLED: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::Flow;
    use crate::network::Network;

    /// A disk fills its own link, and shares the link that a faster one fills: a rate has noise.
    #[test]
    fn a_flow_that_fills_its_own_link_is_limited_there() {
        let mut network = Network::new();
        let own = network.add_edge("d>s", "d", "s", 13.0).unwrap();
        let other = network.add_edge("e>s", "e", "s", 50.0).unwrap();
        let shared = network.add_edge("s>g", "s", "g", 50.0).unwrap();
        let mut flows = Flows::new(&network);
        flows
            .push(&Flow::new(vec![own, shared], f64::INFINITY))
            .unwrap();
        flows
            .push(&Flow::new(vec![other, shared], f64::INFINITY))
            .unwrap();
        for noise in [-0.004, 0.004] {
            let rates = vec![13.0 * (1.0 + noise), 37.0];
            let estimate = Estimate::from_rates(rates, &flows, 0.01);
            assert_eq!(estimate.limits(), [Limit::Edge(own), Limit::Edge(shared)]);
        }
    }
}
