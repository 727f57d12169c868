//! Cores, memory and links in modelled time.
//!
//! Every number comes from a platform file ([`PlatformFile`]): named, with unit, range and source.
//! Curves come out of the mechanisms here; nothing is fitted per curve. All times are integers, so
//! that a result is the same to the last bit on every machine.

mod core;
mod engine;
mod error;
mod fabric;
mod file;
mod memory;
mod parameter;
mod software;
mod spread;
mod topology;

pub use crate::core::{Core, PostedWrite, WaitMode};
pub use engine::{EnginePipe, Issue, Requester, Service, Stream, Transfer};
pub use error::PlatformError;
pub use fabric::{Demand, Fabric, FlowId, Resource};
pub use file::{PlatformFile, builtin, builtin_names};
pub use memory::{Cache, MemoryMap, Place, Region, RegionId};
pub use parameter::{Parameter, Parameters, Unit};
pub use software::SoftwareOp;
pub use topology::{Distance, NodeId, Topology};

/// Bytes of a cache line, the unit in which data moves.
pub const LINE_BYTES: u64 = 64;

/// Bytes of the pages that the address map and the translation cache know.
pub const PAGE_BYTES: u64 = 4096;
