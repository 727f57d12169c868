//! Exact max-min rates.

use crate::error::FlowError;
use crate::estimate::{Estimate, Estimator, Limit};
use crate::filling::{Filling, Stop};
use crate::flows::Flows;
use crate::incidence::EdgeIndex;
use crate::network::EdgeId;

/// Weighted max-min rates with demands, exact up to rounding: no flow can get more without one
/// that has no more per weight getting less. Progressive filling (Bertsekas and Gallager) in
/// O(hops * log edges).
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxMin;

impl Estimator for MaxMin {
    fn name(&self) -> &'static str {
        "maxmin"
    }

    fn merges(&self) -> bool {
        true
    }

    fn solve(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        let index = EdgeIndex::new(flows);
        let edges = 0..flows.network().edges().len();
        let capacities = edges.map(|edge| flows.capacity(edge));
        let mut filling = Filling::new(capacities, flows.len());
        let mut by_demand: Vec<(f64, u32)> = Vec::with_capacity(flows.len());
        for flow in 0..flows.len() {
            filling.activate(&index, flow as u32);
            by_demand.push((flows.demand(flow) / flows.weight(flow), flow as u32));
        }
        by_demand.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut rates = vec![0.0; flows.len()];
        let mut limits = vec![Limit::Demand; flows.len()];
        filling.run(&index, by_demand.into_iter(), |flow, level, stop| {
            let flow = flow as usize;
            match stop {
                Stop::Demand => rates[flow] = flows.demand(flow),
                Stop::Edge(edge) => {
                    rates[flow] = flows.weight(flow) * level;
                    limits[flow] = Limit::Edge(EdgeId(edge));
                }
            }
        });
        Ok(Estimate::new(rates, limits))
    }
}
