//! The kernel driver's rules, as a process that writes to sysfs sees them.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod attributes;
mod clients;
mod common;
mod life;
mod random;
