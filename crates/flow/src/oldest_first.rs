//! Max-min by outstanding bytes, for ports that serve the oldest first.

use crate::error::FlowError;
use crate::estimate::{Estimate, Estimator};
use crate::flows::Flows;
use crate::maxmin::MaxMin;

/// What [`Ingress`](crate::Ingress) is where a port does not serve its ingresses in turn but whatever has waited longest.
///
/// All that waits for an edge is then one queue, and a flow has the share of its outstanding bytes in it, whichever way it
/// came: weighted max-min.
#[derive(Clone, Copy, Debug, Default)]
pub struct OldestFirst;

impl Estimator for OldestFirst {
    fn name(&self) -> &'static str {
        "ingress"
    }

    fn estimate(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
        MaxMin.estimate(&flows.weighted_by_outstanding())
    }
}
