//! The estimators against the paper, against each other, and against oracles that share no code with them.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod costs;
mod fixture;
mod ingress;
mod oracle;
mod paper;
mod properties;
mod schedule;
