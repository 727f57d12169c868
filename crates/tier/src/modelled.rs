//! The back end in virtual time: the same policies over a modelled machine.
//!
//! No memory is moved and no clock is read. What a copy takes is the caller's to say: the machine
//! model's cores and data movers. What the rest takes stands in `platforms/migration.toml`.

mod call;
mod machine;
mod parameters;

pub use call::{Copies, CopyTimes, Linear, Pages, System, TimeOfCall};
pub use machine::{Machine, Pattern, Sample};
pub use parameters::{MigrationParameters, Stated};
