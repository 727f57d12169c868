//! The device and the core beside it, in modelled time.
//!
//! A [`World`] holds the machine: cores, devices, memory, and the event queue that moves time. Each
//! [`Channel`] is a core with a work queue (or with software) behind the [`Mover`](crate::Mover)
//! interface. The same calls give the same times on every machine, to the last bit.

mod channel;
mod completion;
mod cost;
mod device;
mod dispatch;
mod engine;
mod guest;
mod memory;
mod model_mover;
mod software;
mod submission;
mod world;

pub use channel::{Channel, ChannelId, ChannelOptions, Counters};
pub use memory::Memory;
pub use model_mover::ModelMover;
pub use world::{Stalled, World, WorldOptions};
