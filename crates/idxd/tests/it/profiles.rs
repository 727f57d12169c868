//! Profiles as a user meets them: files, names, findings, changes.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod change;
mod common;
mod device;
mod hostile;
mod names;
mod parse;
mod seed;
mod work_queue;
