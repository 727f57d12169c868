//! The virtual device in real time: threads of this process are its engines.
//!
//! What a program has where there is no hardware: the same queues, the same answers, the same records.
//!
//! A device that looks at addresses with [`Checked`](crate::Checked):
//!
//! ```
//! use dray::virt::{Options, VirtualDevice};
//! use dray::{Checked, Completion, Failure, Mover, Operation, WaitPolicy, wait};
//! use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};
//!
//! let queue = WorkQueueConfig::new(0, WorkQueueMode::Shared, 16);
//! let config = DeviceConfig::sapphire_rapids(1, vec![queue]);
//! let device = VirtualDevice::start_in(config, Options::default(), Checked, |_| {})?;
//! let mut mover = device.open(0, 1)?;
//! let fill = Operation::fill(0, 8, 64);
//! // SAFETY: the device looks at the address.
//! unsafe { mover.enqueue(&fill) }?;
//! let mut ended = [Completion::default()];
//! wait(&mut mover, &mut ended, WaitPolicy::Yield, None)?;
//! assert!(matches!(ended[0].output(&fill), Err(Failure::PageFault { write: true, .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod device;
mod memories;
mod virtual_mover;

pub use device::{OpenError, VirtualDevice};
pub use virtual_mover::VirtualMover;

pub use dray_realtime::{
    AllAccessible, Chaos, Engines, Event, Failure, Idle, Kind, Kinds, Options, Regions, StartError,
    Stop, Translation,
};
