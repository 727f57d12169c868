//! Who copies, in how many pieces, and why.
//!
//! One place for the queues, channels and page lists of the library, for `dray offload`, `dray vhost` and `dray tier`:
//! [`Cut`] and [`Rest`] divide a request into pieces, [`Threshold`] says whether a device is to have one, and
//! [`Reason`] why the CPU did. Nothing here allocates or calls the system, so that it can be used within a `memcpy`
//! that a signal handler or an allocator has called.

#![no_std]

mod knobs;
mod reason;
mod split;
mod threshold;

pub use knobs::{dto, kernel};
pub use reason::Reason;
pub use split::{Cut, PAGE, Piece, Pieces, Rest};
pub use threshold::Threshold;
