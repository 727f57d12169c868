//! Edge constraints relaxing, in one pass.

use crate::error::FlowError;
use crate::estimate::{Estimate, Estimator, Limit};
use crate::flows::Flows;
use crate::incidence::EdgeIndex;
use crate::level::{Share, water_level};
use crate::network::EdgeId;

/// Edge constraints relaxing (rPCIeBench, NSDI'24, section 6, Algorithms 1 and 2).
///
/// The paper's rounds end where each flow has the least of the levels of its edges, each taken from the demands alone.
/// So one pass over the edges gives the same rates. A rate is never above the max-min rate: capacity that a
/// flow leaves because another edge limits it goes to no other flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecr;

impl Estimator for Ecr {
    fn name(&self) -> &'static str {
        "ecr"
    }

    fn merges(&self) -> bool {
        true
    }

    fn solve(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        let index = EdgeIndex::new(flows);
        let mut rates: Vec<f64> = (0..flows.len()).map(|flow| flows.demand(flow)).collect();
        let mut limits = vec![Limit::Demand; flows.len()];
        let mut shares = Vec::new();
        for edge in 0..flows.network().edges().len() as u32 {
            let members = index.members(edge);
            shares.clear();
            shares.extend(members.iter().map(|&flow| {
                let flow = flow as usize;
                let weight = flows.weight(flow);
                let mut uses = flows.uses(flow);
                let cost = uses.find(|&(at, _)| at == edge as usize);
                Share {
                    cap: flows.demand(flow) / weight,
                    weight: weight * cost.map_or(1.0, |(_, cost)| cost),
                }
            }));
            let level = water_level(&mut shares, flows.capacity(edge as usize));
            if level == f64::INFINITY {
                continue;
            }
            for &flow in members {
                let flow = flow as usize;
                let share = flows.weight(flow) * level;
                if share < rates[flow] {
                    rates[flow] = share;
                    limits[flow] = Limit::Edge(EdgeId(edge));
                }
            }
        }
        Ok(Estimate::new(rates, limits))
    }
}
