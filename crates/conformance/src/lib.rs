//! What is tried with every implementation.
//!
//! [`rules`]: the rules of the specification, descriptor by descriptor, for whatever has a portal and registers. The suite
//! that every mover of the library passes is behind the feature `movers`.

#[cfg(feature = "movers")]
mod movers;
pub mod rules;

#[cfg(feature = "movers")]
pub use movers::{
    Disrupter, Disruption, Door, Held, PAGE, Part, ProcessDoor, ProcessPages, Report, Script, check,
};
