//! What each data mover operation does to bytes.
//!
//! Pure functions on slices, in two versions: those of [`oracle`] read like the specification and
//! go byte by byte; those at the root are the ones to use. They agree on every input. "Spec" is the
//! Intel Data Streaming Accelerator Architecture Specification, order number 341204-006US.

mod compare;
mod copy;
mod crc;
mod fill;
pub mod oracle;

pub use compare::{compare, compare_pattern};
pub use copy::{LengthMismatch, copy, copy_crc, dualcast};
pub use crc::{CrcOptions, crc32c};
pub use fill::{Pattern, fill};
