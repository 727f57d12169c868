//! The naive estimate.

use crate::error::FlowError;
use crate::estimate::{Estimate, Estimator, Limit};
use crate::flows::Flows;
use crate::network::EdgeId;

/// "Divide by N": an edge gives each of its N flows one Nth of its capacity, whatever the others use. What simulators of
/// clusters do that have no model of the fabric. For comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct DivideByN;

impl Estimator for DivideByN {
    fn name(&self) -> &'static str {
        "divide-by-n"
    }

    fn solve(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        let mut counts = vec![0.0; flows.network().edges().len()];
        for &edge in flows.hops() {
            counts[edge as usize] += 1.0;
        }
        let (mut rates, mut limits) = (Vec::new(), Vec::new());
        for flow in 0..flows.len() {
            let mut least = (flows.demand(flow), Limit::Demand);
            for (edge, cost) in flows.uses(flow) {
                let part = flows.capacity(edge) / (counts[edge] * cost);
                if part < least.0 {
                    least = (part, Limit::Edge(EdgeId(edge as u32)));
                }
            }
            rates.push(least.0);
            limits.push(least.1);
        }
        Ok(Estimate::new(rates, limits))
    }
}
