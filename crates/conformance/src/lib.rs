//! What is tried with every implementation.
//!
//! [`rules`]: the rules of the specification, descriptor by descriptor, for whatever has a portal and registers. The suite
//! that every mover of the library passes is behind the feature `movers`; the movers themselves, opened by their names,
//! behind `machines`.

#[cfg(feature = "machines")]
pub mod machines;
#[cfg(feature = "movers")]
mod movers;
pub mod rules;
mod runner;

pub use runner::Runner;

#[cfg(feature = "movers")]
pub use movers::{
    Column, Disrupter, Disruption, Door, Held, NotAColumn, PAGE, Part, ProcessDoor, ProcessPages,
    Report, Row, Script, Table, Verdict, check, disruption_row, held_row, tabulate,
};
