//! What every mover promises, written once: each operation gives the right bytes and the right
//! record, under the right executor's name, exactly once; batches and fences keep their order; what
//! cannot be done is refused with the status of the specification.
//!
//! A [`Door`] is where operations go in: a mover with memory that the suite can look at.
//! [`check`] puts the whole suite to it.

mod batches;
mod case;
mod door;
mod integrity;
mod refused;
mod script;
mod suite;

pub use door::{Door, PAGE, ProcessDoor, ProcessPages};
pub use script::Script;
pub use suite::{Report, check};
