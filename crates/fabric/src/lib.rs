//! Flows and jobs over a PCIe topology: their files, and the topology as the network of capacities that estimators take.
//!
//! Rates are in GiB/s (2^30 bytes), sizes in bytes, times in files in microseconds.

mod carriage;
mod caveats;
mod collective;
mod des;
mod entries;
mod error;
mod flows;
mod interval;
mod jobs;
mod network;
mod replay;

pub use carriage::{Operation, Values};
pub use caveats::caveats;
pub use collective::{Pattern, Size, by_steps, collective};
pub use des::{Des, pace, window};
pub use error::FabricError;
pub use flows::{FlowEntry, NamedFlow, parse_flows, read_flows, resolve_flows};
pub use interval::{Interval, intervals, makespan};
pub use jobs::{Bytes, GIB, JobEntry, NamedJob, jobs_to_toml, parse_jobs, read_jobs, resolve_jobs};
pub use network::{PACKET, TIME_OF_NS, latency, network, network_with, route, topology_edges};
pub use replay::{Ends, Replays, Send};
