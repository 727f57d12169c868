//! The simulator: TLPs, credits, arbitration, DMA engines and cores in virtual time.
//!
//! Time is whole picoseconds and nothing is random but what a seed gives, so the same input gives
//! the same trace on every machine. The parameters are those of the topology: latencies, capacities,
//! tags, credits. Bandwidths of paths with reads follow from latency and tags.

mod device;
mod edge;
mod engine;
mod host;
mod mmio;
mod network;
mod profile;
mod random;
mod scheduler;
mod session;
mod simulation;
mod source;
mod stream;
mod stream_state;
mod tlp;
mod trace;

pub use profile::{Phase, Profile, Summary};
pub use scheduler::{Scheduling, SubmissionScheduler};
pub use session::{Completion, Device, DeviceMemory, Handle, Session};
pub use simulation::{EdgeUse, Simulation, SourceResult, StreamResult};
pub use stream::{Arrival, Memory, Operation, Source, Stream};
pub use trace::{Hop, TransferSpan};

pub use dray_topology::Arbiter;
use dray_topology::QueueOrganisation;

/// What holds for a whole simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationOptions {
    /// Arbiter of every node instead of what the topology says.
    pub arbiter: Option<Arbiter>,
    /// Queue organisation of every node instead of what the topology says.
    pub queues: Option<QueueOrganisation>,
    /// Seed of random arrivals.
    pub seed: u64,
    /// Time before which nothing is counted, ns.
    pub warmup_ns: u64,
    /// Length of an interval of bandwidth over time, ns; 0 for none.
    pub interval_ns: u64,
    /// Whether to record TLPs and transfers.
    pub trace: bool,
    /// TLP hops that are recorded at most.
    pub trace_limit: usize,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self {
            arbiter: None,
            queues: None,
            seed: 1,
            warmup_ns: 0,
            interval_ns: 0,
            trace: false,
            trace_limit: 200_000,
        }
    }
}
