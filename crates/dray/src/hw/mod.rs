//! Devices of this machine, through the work queues that their driver offers to programs.
//!
//! ```no_run
//! use dray::hw::{self, HwOptions};
//!
//! for queue in hw::discover()? {
//!     println!("{} on node {:?}", queue.name(), queue.numa_node);
//! }
//! let mover = hw::open(None, HwOptions::default())?;
//! # Ok::<(), hw::HwError>(())
//! ```

mod attributes;
mod credits;
mod discovery;
mod error;
mod hw_mover;
mod instructions;
mod open_queue;
mod port;
mod portal;
mod state;

pub use discovery::{Paths, QueueInfo, discover, is_virtual};
pub use error::HwError;
pub use hw_mover::{HwMover, HwOptions, open, open_all};
pub use open_queue::OpenQueue;
pub use port::Submitting;
pub use portal::Portal;
