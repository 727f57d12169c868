//! The tests of the device in real time, in one program; those that fork are apart.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod chaos;
mod commands;
mod common;
mod conformance;
mod ending;
mod outages;
mod pages;
mod steps;
mod submission;
