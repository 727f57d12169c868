//! The tests of the operations, in one program.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod agreement;
mod delta;
mod dif;
mod guards;
mod narrow;
