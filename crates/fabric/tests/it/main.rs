//! Flows over machines, beside what has been measured.
#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod measured;
