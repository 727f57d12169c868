//! Devices of this machine, through the work queues that their driver offers to programs.
//!
//! ```no_run
//! use dray::hw::{self, HwOptions};
//!
//! for queue in hw::discover()? {
//!     println!("{} on node {:?}", queue.name(), queue.numa_node);
//! }
//! let mover = hw::open(None, HwOptions::default())?;
//! println!("{} by {}", mover.info().name(), mover.submit_path());
//! # Ok::<(), hw::HwError>(())
//! ```

mod attributes;
mod credits;
mod discovery;
mod error;
mod hw_mover;
mod instructions;
mod numa;
mod open;
mod open_queue;
mod port;
mod portal;
mod raw_portal;
mod state;
mod submit_path;

pub use discovery::{Paths, QueueInfo, discover, is_virtual};
pub use error::{HwError, QueueResult, RefusedQueue};
pub use hw_mover::{HwMover, HwOptions};
pub use open::{open, open_all, open_each};
pub use open_queue::OpenQueue;
pub use portal::Portal;
pub use raw_portal::RawPortal;
pub use submit_path::{SubmitPath, Submitting};
