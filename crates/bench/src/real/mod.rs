//! Measurement on the processor of this machine.

mod arena;
mod cache;
mod host;
mod micros;
mod micros_thread;
mod percentiles;
mod placement;
mod run;
mod thread;
mod work;

pub use arena::Pages;
pub use host::{available, context};
pub use micros::{Software, run as run_micros};
pub use run::{Measured, Real};
