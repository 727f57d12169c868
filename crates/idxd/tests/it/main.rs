//! The driver and its profiles, through what others use of the crate.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "helpers of tests, too, fail by panic"
)]

mod driver;
mod profiles;
