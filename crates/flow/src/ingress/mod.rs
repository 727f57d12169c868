//! What flows get from the queues of the fabric and the rules by which its ports choose.

use crate::error::FlowError;
use crate::estimate::{Estimate, Estimator, Limit};
use crate::flows::Flows;
use crate::network::EdgeId;

mod delay;
mod queues;
mod settle;
mod share;

use settle::Solver;

/// The rates at which closed-loop flows, FIFO queues, credits and arbiters hold each other.
///
/// A flow that keeps `W` bytes in flight has the rate `W / (T + Q)`, at most its demand: `T` is its latency, `Q` is what its
/// bytes wait in the queues of its path (Little's law). All bytes of one queue wait equally long, so inside one ingress
/// flows share by what they keep in flight (rPCIeBench, NSDI'24, section 4.5). Nothing waits in front of an edge that is not full.
/// A full edge shares its capacity as its [`Arbiter`](crate::Arbiter) says: max-min among the ingresses (section 5.1), or
/// with one waiting time for all of them, if it serves the oldest first. The ingress of a flow at an edge is
/// the edge before it on its path; at its first edge, its source.
///
/// What waits takes room in a buffer ([`Network::set_buffer`](crate::Network::set_buffer)). If the buffer is full, no more waits in
/// it than it holds; the rest waits in front of the edge before, which shares what credits come back among its own ingresses, by
/// its own arbiter. There it holds up what is behind it in the same queue, wherever that goes; with [`Queues::Fifo`](crate::Queues)
/// one queue has all of an ingress.
///
/// Where a flow takes more of an edge than its rate, what is computed is that, the same for all edges of its path: the
/// most that it takes of one.
///
/// The waiting times depend on each other; they are computed in turn until none changes. Where two limits of one queue are
/// nearly equal, such as an edge and the full buffer behind it, what holds up the queue changes with the waiting that it causes, and no
/// waiting time stays as it is: each limit in turn is the one that counts. There waiting times move by ever smaller steps,
/// the turns become as short, and the rates come to the mean in which each limit has its part. They count as settled when no rate
/// moves by more than 0.1 % in 100 rounds. If that does not come in 6000 rounds (9 of 6000 random instances of the paper's layout), rates are means over
/// the last 100, and the estimate says that it is not settled. A round takes time in proportion to the hops of the flows whose
/// waiting still changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ingress;

impl Estimator for Ingress {
    fn name(&self) -> &'static str {
        "ingress"
    }

    fn solve(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        let mut solver = Solver::new(flows);
        let settled = solver.settle();
        let limits = (0..flows.len()).map(|flow| {
            let bottleneck = solver.bottleneck(flow);
            bottleneck.map_or(flows.alone(flow).1, |edge| Limit::Edge(EdgeId(edge)))
        });
        let limits: Vec<Limit> = limits.collect();
        // It has computed what passes the edges; the rates are those of payload.
        let rates = solver.rates.iter().enumerate();
        let rates = rates.map(|(flow, rate)| rate / flows.greatest_cost(flow));
        let estimate = Estimate::new(rates.collect(), limits);
        Ok(if settled {
            estimate
        } else {
            estimate.unsettled()
        })
    }
}
