//! Jobs that are alike: a set of them has the rates of one flow with all their weights.

use std::collections::HashMap;

use crate::error::FlowError;
use crate::estimate::Estimator;
use crate::flows::{Flow, Flows};
use crate::network::Network;

use super::job::Job;

/// What max-min shares depend on: path, costs, sides, and the bits of demand and weight.
type Key<'j> = (&'j [crate::EdgeId], Vec<u64>);

/// Which jobs are alike. On a machine jobs are many and pairs of nodes few.
pub(super) struct Classes {
    /// By job.
    of: Vec<u32>,
    /// By class.
    flows: Vec<Flow>,
}

impl Classes {
    pub(super) fn new(jobs: &[Job]) -> Self {
        let mut known: HashMap<Key<'_>, u32> = HashMap::new();
        let (mut of, mut flows) = (Vec::with_capacity(jobs.len()), Vec::new());
        for job in jobs {
            let flow = &job.flow;
            let sides = flow.sides.iter();
            let sides = sides.flat_map(|(edge, cost)| [u64::from(edge.0), cost.to_bits()]);
            let window = [flow.outstanding_bytes, flow.latency];
            let numbers = [flow.demand, flow.weight].into_iter().chain(window);
            let numbers = numbers.chain(flow.costs.iter().copied()).map(f64::to_bits);
            let key = (flow.path.as_slice(), numbers.chain(sides).collect());
            let class = *known.entry(key).or_insert_with(|| {
                flows.push(flow.clone());
                flows.len() as u32 - 1
            });
            of.push(class);
        }
        Self { of, flows }
    }

    /// The class of a job.
    pub(super) fn of(&self, job: usize) -> usize {
        self.of[job] as usize
    }

    /// A flow of each class.
    pub(super) fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The rates of `running` jobs, in their order.
    pub(super) fn rates(
        &self,
        network: &Network,
        jobs: &[Job],
        estimator: &dyn Estimator,
        running: impl Iterator<Item = usize> + Clone,
    ) -> Result<Vec<f64>, FlowError> {
        let mut flows = Flows::new(network);
        if !estimator.merges() {
            for job in running {
                flows.push(&jobs[job].flow)?;
            }
            return Ok(estimator.estimate(&flows)?.rates().to_vec());
        }
        let mut counts = vec![0u32; self.flows.len()];
        for job in running.clone() {
            counts[self.of[job] as usize] += 1;
        }
        let present = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        for (class, &count) in present.clone() {
            flows.append(&self.flows[class], f64::from(count))?;
        }
        let estimate = estimator.estimate(&flows)?;
        let mut each = vec![0.0; counts.len()];
        for ((class, &count), rate) in present.zip(estimate.rates()) {
            each[class] = rate / f64::from(count);
        }
        Ok(running.map(|job| each[self.of[job] as usize]).collect())
    }
}
