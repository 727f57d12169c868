//! Tests of the crate through its public interface.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod bench;
mod import;
mod simulation;
mod topology;
