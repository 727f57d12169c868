//! libdray: the library for C and C++.
//!
//! Every function catches panics and gives an error code instead, and says why with
//! [`dray_last_error`]. A mover belongs to one thread at a time: a call while another thread is in
//! one gives `-EBUSY`.

mod error;
mod mover;
mod operations;
mod types;

pub use error::{dray_last_error, dray_strerror};
pub use mover::{
    Mover, dray_close, dray_open, dray_poll, dray_slots, dray_submit, dray_supports, dray_wait,
};
pub use operations::{
    dray_compare, dray_compare_pattern, dray_copy, dray_copy_crc32c, dray_crc32c, dray_dualcast,
    dray_fill, dray_noop,
};
pub use types::{Backend, Completion, Executor, Options, Wait};
