//! What each data mover operation does to bytes.
//!
//! Pure functions on slices, in two versions: those of [`oracle`] read like the specification and
//! go byte by byte; those at the root are the ones to use. They agree on every input. "Spec" is the
//! Intel Data Streaming Accelerator Architecture Specification, order number 341204-006US.

mod compare;
mod copy;
mod crc;
mod delta;
mod dif;
mod fill;
mod level;
pub mod oracle;
mod prefetch;

pub use compare::{compare, compare_pattern};
pub use copy::{
    DUALCAST_BLOCK, LengthMismatch, copy, copy_crc, copy_crc64, copy_non_temporal, dualcast,
};
pub use crc::{CrcOptions, crc32c, crc32c_combine, crc64};
pub use delta::{
    DELTA_ENTRY_BYTES, DELTA_MAX_BYTES, DeltaCreated, DeltaCursor, DeltaEntry, DeltaError,
    DeltaSizeError, apply_delta, create_delta, create_delta_at,
};
pub use dif::{
    BadBlock, BlockSize, DIF_BYTES, DestinationDifFlags, DifError, DifFlags, DifSizeError,
    DifStatus, SourceDifFlags, Tags, UpdateTags, dif_check, dif_insert, dif_strip, dif_update,
    dix_generate,
};
pub use fill::{Pattern, fill};
#[doc(hidden)]
pub use level::{Multiplication, multiply_at_most, vectors_at_most};
