//! The estimators by name.

use clap::ValueEnum;
use dray_fabric::Des;
use dray_flow::{DivideByN, Ecr, Estimator, Ingress, MaxMin};
use dray_pcie::Topology;
use dray_pcie::sim::SimulationOptions;

/// An estimator on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Which {
    /// Edge constraints relaxing, the algorithm of the rPCIeBench paper: never above max-min.
    Ecr,
    /// Exact max-min rates of flows.
    Maxmin,
    /// By windows, FIFO queues, credits and the ports' arbiters: what waits where.
    Ingress,
    /// The simulator of TLPs: the flows run, and what arrives is measured.
    Des,
    /// An edge divided by the number of its flows: what simulators without a fabric do.
    DivideByN,
}

/// Virtual time that `des` measures, ns.
const MEASURED_NS: u64 = 200_000;

impl Which {
    pub(super) fn build(self, topology: &Topology) -> Box<dyn Estimator + '_> {
        self.build_with(topology, SimulationOptions::default())
    }

    /// The same; `des` simulates with `options`.
    pub(super) fn build_with(
        self,
        topology: &Topology,
        options: SimulationOptions,
    ) -> Box<dyn Estimator + '_> {
        match self {
            Self::Ecr => Box::new(Ecr),
            Self::Maxmin => Box::new(MaxMin),
            Self::Ingress => Box::new(Ingress),
            Self::Des => Box::new(Des::new(topology, options, MEASURED_NS)),
            Self::DivideByN => Box::new(DivideByN),
        }
    }
}
