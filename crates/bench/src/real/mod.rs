//! Measurement on the processor of this machine.

mod arena;
mod cache;
mod host;
mod micros;
mod run;
mod work;

pub use host::{available, context};
pub use micros::{Software, run as run_micros};
pub use run::{Measured, Real};
