//! The back end in virtual time: the same policies over a modelled program.
//!
//! No memory is moved and no clock is read. What a copy takes is the caller's to say: the machine
//! model's cores and data movers. What the rest takes stands in `platforms/migration.toml`.

mod accesses;
mod call;
mod memory;
mod parameters;
mod program;

pub use accesses::Accesses;
#[cfg(test)]
pub(crate) use call::tests::TIMES;
pub use call::{Copies, CopyTimes, Linear, Pages, System, TimeOfCall};
pub use memory::ModelledMemory;
pub use parameters::{MigrationParameters, Stated};
pub use program::{Pattern, Sample, TieredProgram};
