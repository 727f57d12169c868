//! Who copies, in how many pieces, and why.
//!
//! One place for the queues, channels and page lists of the library, for `dray offload` and for `dray tier`:
//! [`Cut`] and [`Rest`] divide a request into pieces, and [`Reason`] says why the CPU executes one. Nothing here allocates or calls the system, so that it can be
//! used within a `memcpy` that a signal handler or an allocator has called.

#![no_std]

mod reason;
mod split;

pub use reason::Reason;
pub use split::{Cut, PAGE, Piece, Pieces, Rest};
