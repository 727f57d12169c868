//! Topologies from machines and files.
#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod derived;
mod import;
mod payload;
