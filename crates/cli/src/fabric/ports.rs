//! How ports choose and queue: options that replace what the topology says.

use clap::ValueEnum;
use dray_pcie::QueueOrganisation;
use dray_pcie::sim::{Arbiter, SimulationOptions};

/// An arbiter on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ArbiterName {
    /// The ingress that has been given least, counted in 64 bytes.
    LeastServed,
    /// One TLP from each ingress in turn.
    RoundRobin,
    /// The TLP that has waited longest.
    OldestFirst,
}

/// A queue organisation on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum QueueName {
    /// A queue for each ingress and output.
    PerOutput,
    /// One FIFO for each ingress.
    Fifo,
    /// A queue for each ingress and output; those of an ingress share its buffer.
    SharedBuffer,
}

impl ArbiterName {
    pub(super) fn arbiter(self) -> Arbiter {
        match self {
            Self::LeastServed => Arbiter::LeastServed,
            Self::RoundRobin => Arbiter::RoundRobin,
            Self::OldestFirst => Arbiter::OldestFirst,
        }
    }
}

impl QueueName {
    pub(super) fn organisation(self) -> QueueOrganisation {
        match self {
            Self::PerOutput => QueueOrganisation::PerOutput,
            Self::Fifo => QueueOrganisation::Fifo,
            Self::SharedBuffer => QueueOrganisation::SharedBuffer,
        }
    }
}

/// The options.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(super) struct PortArgs {
    /// Arbiter of all ports, for `ingress` and `des`; left away: as the topology says.
    #[arg(long, value_enum, value_name = "ARBITER")]
    arbiter: Option<ArbiterName>,
    /// Queues of all nodes, for `ingress` and `des`; left away: as the topology says.
    #[arg(long, value_enum, value_name = "QUEUES")]
    queues: Option<QueueName>,
}

impl PortArgs {
    /// Whether any of them is given.
    pub(super) fn are_given(&self) -> bool {
        self.arbiter.is_some() || self.queues.is_some()
    }

    /// What holds for the simulator.
    pub(super) fn options(self) -> SimulationOptions {
        SimulationOptions {
            arbiter: self.arbiter.map(ArbiterName::arbiter),
            queues: self.queues.map(QueueName::organisation),
            ..SimulationOptions::default()
        }
    }
}
