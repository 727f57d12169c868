//! libdray: the library for C and C++.
//!
//! Every function catches panics and gives an error code instead, and says why with
//! [`dray_last_error`]. A mover belongs to one thread at a time: a call while another thread is in
//! one gives `-EBUSY`. A handle that was closed gives `-EBADF`.

mod backend;
mod channels;
mod completion;
mod error;
mod handle;
mod mover;
mod operations;
mod types;

pub use channels::{dray_open_channels, dray_poll_outcomes};
pub use error::{dray_last_error, dray_strerror};
pub use handle::Mover;
pub use mover::{
    dray_batch_begin, dray_batch_cancel, dray_batch_end, dray_batch_fence, dray_close, dray_open,
    dray_poll, dray_slots, dray_submit, dray_supports, dray_wait, dray_withdraw,
};
pub use operations::{
    dray_apply_delta, dray_cache_flush, dray_compare, dray_compare_pattern, dray_copy,
    dray_copy_crc32c, dray_copy_crc64, dray_crc32c, dray_crc64, dray_create_delta, dray_dif_check,
    dray_dif_insert, dray_dif_strip, dray_dif_update, dray_dualcast, dray_fill, dray_noop,
};
pub use types::{
    Backend, ChannelsOptions, Completion, CoreReason, Dif, Executor, FullQueue, Options, Outcome,
    PageFault, Require, Tags, Wait,
};

/// README's example in Rust, which `cargo test --doc` compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
