//! The rules of the specification that a descriptor can break or keep, as a table that every door
//! of the device can be tried with.
//!
//! A [`Case`] says which device it wants ([`Case::device`]), what is in memory
//! ([`Case::memory`]), and which 64 bytes are written to the portal of work queue 0
//! ([`Case::submission`]). A [`RuleDoor`] reports what became visible ([`Observed`]), and
//! [`Case::judge`] compares; [`check`] puts the whole table to a door. Each [`Rule`] has descriptors that break it and their nearest neighbours
//! that do not. [`coverage`] says which rules of the specification the table has, and why it does
//! not have the others.

mod batches;
mod case;
mod clause;
mod contexts;
mod deltas;
mod domains;
mod door;
mod faults;
mod fields;
mod flags;
mod image;
mod integrity;
mod layout;
mod operands;
mod profile;
mod results;
mod rule;

pub use case::{Case, Container, Mismatch, Observed, Reported};
pub use clause::{Clause, Coverage, Scope, clauses, coverage};
pub use door::{Failure, Report, RuleDoor, RuleReport, check, check_rule};
pub use image::{PAGE, Page, Pages};
pub use layout::RECORD;
pub use rule::Rule;

/// The whole table.
pub fn rules() -> Vec<Rule> {
    [
        contexts::rules(),
        flags::rules(),
        fields::rules(),
        operands::rules(),
        faults::rules(),
        results::rules(),
        batches::rules(),
        deltas::rules(),
        integrity::rules(),
        domains::rules(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
