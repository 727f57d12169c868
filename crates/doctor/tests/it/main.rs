//! The tests of the crate, in one program.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod crashes;
mod fixtures;
mod hostile;
mod messages;
mod reports;
mod texts;
