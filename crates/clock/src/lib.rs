//! Virtual time in integer picoseconds, and an event queue with a stable order.
//!
//! Nothing here reads a clock: time only moves when an event is popped. Picoseconds in 64
//! bits last for 213 days, and no rounding differs from machine to machine.

mod queue;
mod time;

pub use queue::{EventQueue, EventStream};
pub use time::{Duration, Time};
