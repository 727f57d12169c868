//! The back end in virtual time: the same policies over a modelled program.
//!
//! No memory is moved and no clock is read. What a copy takes is the caller's to say: the machine
//! model's cores and data movers. What the rest takes stands in `platforms/migration.toml`.

mod accesses;
mod call;
mod parameters;
mod program;

pub use accesses::Accesses;
pub use call::{Copies, CopyTimes, Linear, Pages, System, TimeOfCall};
pub use parameters::{MigrationParameters, Stated};
pub use program::{Pattern, Sample, TieredProgram};
