//! The estimators by name.

use clap::ValueEnum;
use dray_flow::{DivideByN, Ecr, Estimator, Ingress, MaxMin};

/// An estimator on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Which {
    /// Edge constraints relaxing, the algorithm of the rPCIeBench paper: never above max-min.
    Ecr,
    /// Exact max-min rates of flows.
    Maxmin,
    /// Max-min between the ingresses of each port, by outstanding bytes inside one.
    Ingress,
    /// An edge divided by the number of its flows: what simulators without a fabric do.
    DivideByN,
}

impl Which {
    pub(super) fn build(self) -> Box<dyn Estimator> {
        match self {
            Self::Ecr => Box::new(Ecr),
            Self::Maxmin => Box::new(MaxMin),
            Self::Ingress => Box::new(Ingress),
            Self::DivideByN => Box::new(DivideByN),
        }
    }
}
