//! What every mover promises, written once: each operation gives the right bytes and the right
//! record, under the right executor's name, exactly once; batches and fences keep their order; what
//! cannot be done is refused with the status of the specification; page faults are reported; when a queue is
//! disabled or reset everything ends once, and nothing is written outside the destinations; a wait for a
//! completion that does not come ends at its deadline.
//!
//! A [`Door`] is where operations go in: a mover with memory that the suite can look at.
//! [`check`] puts the whole suite to it; [`tabulate`] does so row by row, for a [`Table`] of several movers.

mod batches;
mod case;
mod disruptions;
mod door;
mod faults;
mod forms;
mod held;
mod integrity;
mod pages;
mod queue_rows;
mod refused;
mod rest;
mod script;
mod suite;
mod table;
mod trial;
mod trials;

pub use disruptions::{Disrupter, Disruption};
pub use door::{Door, PAGE, Part, ProcessDoor};
pub use held::Held;
pub use pages::ProcessPages;
pub use script::Script;
#[cfg(feature = "machines")]
pub(crate) use suite::LARGEST_BATCH;
pub use suite::{Report, check, disruption_row, held_row, tabulate};
pub use table::{Column, NotAColumn, Row, Table, Verdict};
