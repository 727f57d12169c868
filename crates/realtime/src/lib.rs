//! The virtual DSA in real time.
//!
//! [`RealtimeDevice`] runs the one state machine of `dray_device` on threads. Clients write
//! descriptors to [`MappedPortal`]s: each work queue is a lock-free ring that answers as hardware
//! does (accepted, retry, lost), from what it holds alone. A dispatcher owns the state machine and
//! moves what the rings hold into it; engines carry descriptors out, on threads of their own or, if
//! there is one only, on the dispatcher's. Registers and commands work while all of that goes on
//! ([`RealtimeDevice::control`], [`RealtimeDevice::command`]). Completion records appear in [`SharedMemory`], the status
//! byte last.

mod chaos;
mod clients;
mod deviation;
mod device;
mod dispatcher;
mod effect_sink;
mod engine;
mod event;
mod failure;
mod idle_policy;
mod memory;
mod options;
mod polling_time;
mod portal;
mod regions;
mod request;
mod run_delay;
mod scheduler;
mod shared;
mod watch;
mod worker;

pub use chaos::{Chaos, ChaosError, Kind, Kinds};
pub use clients::Client;
pub use deviation::{Deviation, DeviationError};
pub use device::RealtimeDevice;
pub use dray_device::{AllAccessible, ProcessMemory, Translation, View};
pub use dray_ring::{
    AttachError, Attachment, MemoryCall, Moment, NotedCall, Origin, RegionLayout, RemotePortal,
    SharedRegionFile, WrongKind,
};
pub use event::Event;
pub use failure::{Failure, StartError, Stopped};
pub use memory::SharedMemory;
pub use options::{Engines, Idle, Options, Stop};
pub use portal::MappedPortal;
pub use regions::Regions;
pub use watch::Watch;
