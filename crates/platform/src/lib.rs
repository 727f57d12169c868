//! The machine in modelled time: cores, memory and links with the bandwidth that all of them share;
//! and, in a folder of its own (`dsa`), what a descriptor costs an engine of a data mover.
//!
//! Every number comes from a platform file ([`PlatformFile`]): named, with unit, range and source.
//! Curves come out of the mechanisms here; nothing is fitted per curve. All times are integers, so
//! that a result is the same to the last bit on every machine.

mod bandwidth;
mod core;
mod dsa;
mod error;
mod file;
mod memory;
mod parameter;
mod software;
mod topology;

pub use crate::core::{Core, PostedWrite, WaitMode};
pub use bandwidth::{Demand, FlowId, Resource, SharedBandwidth};
pub use dsa::{EnginePipe, Issue, Outstanding, Requester, Service, Stream, Transfer};
pub use error::PlatformError;
pub use file::{PlatformFile, builtin, builtin_names};
pub use memory::{Cache, MemoryLocation, MemoryMap, Region, RegionId};
pub use parameter::{Parameter, ParameterReads, Parameters, RecordedParameters, Unit};
pub use software::{SoftwareAccess, SoftwareOp};
pub use topology::{Distance, NodeId, Topology};

/// Bytes of a cache line, the unit in which data moves.
pub const LINE_BYTES: u64 = 64;

/// Bytes of the pages that the address map and the translation cache know.
pub const PAGE_BYTES: u64 = 4096;
