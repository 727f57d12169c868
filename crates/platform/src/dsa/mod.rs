//! The timing of a DSA engine.
//!
//! An engine requests the data of one descriptor at a time, but many wait for their last lines to
//! come and go. So a descriptor costs the engine the time of its lines at the shared ports, and
//! takes longer than that by the latency of its slowest read and its slowest write: a closed form,
//! once its data has moved.

mod pipe;
mod service;
mod spread;
mod transfer;

pub use pipe::{EnginePipe, Issue};
pub(crate) use service::{EngineTiming, resource_count};
pub use service::{Outstanding, Requester, Service};
pub use transfer::{Stream, Transfer};
