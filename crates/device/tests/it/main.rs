//! The tests of the device, in one program; the one that counts allocations is apart.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod batches;
mod blocks;
mod common;
mod conformance;
mod domains;
mod execution;
mod hostile;
mod queues;
mod registers;
mod resume;
mod sequences;
mod untranslated;
