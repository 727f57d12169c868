//! The device and the core beside it, in modelled time.
//!
//! A [`World`] holds the machine: cores, devices, memory, and the event queue that moves time. Each
//! [`Channel`] is a core with a work queue (or with software) behind the [`Mover`]
//! interface. The same calls give the same times on every machine, to the last bit.

mod batch_run;
mod channel;
mod completion;
mod cost;
mod device;
mod dispatch;
mod engine;
mod memory;
mod model_mover;
mod reads;
mod shared_cores;
mod software;
mod submission;
mod world;

use dray::Mover;
use dray_clock::Time;

pub use channel::{Channel, ChannelId, ChannelOptions, Counters};
pub use memory::Memory;
pub use model_mover::ModelMover;
pub use reads::Reads;
pub use world::{Stalled, World, WorldOptions};

/// The clock of a mover as modelled time, for applications that compare it with a [`World`]'s.
pub trait CoreTime: Mover {
    /// The calling core's time.
    #[inline]
    fn core_time(&self) -> Time {
        Time(self.now().picoseconds())
    }
}

impl<M: Mover + ?Sized> CoreTime for M {}
