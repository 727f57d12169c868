//! The virtual device in real time: threads of this process are its engines.
//!
//! What a program has where there is no hardware: the same queues, the same answers, the same records.

mod checked;
mod device;
mod memories;
mod virtual_mover;

pub use checked::Checked;
pub use device::{OpenError, VirtualDevice};
pub use virtual_mover::VirtualMover;

pub use dray_realtime::{
    AllAccessible, Engines, Event, Failure, Idle, Options, Regions, StartError, Stop, Translation,
};
