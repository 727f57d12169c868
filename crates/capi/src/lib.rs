//! libdray: the library for C and C++.
//!
//! Every function catches panics and gives an error code instead, and says why with
//! [`dray_last_error`]. A mover belongs to one thread at a time, a call while another thread is in
//! one gives `-EBUSY`, until [`dray_share`]. A handle that was closed gives `-EBADF`.

mod backend;
mod channel_types;
mod channels;
mod completion;
mod enqueue;
mod error;
mod handle;
mod integrity;
mod mover;
mod open;
mod operations;
mod outcome;
mod page_results;
mod page_types;
mod pages;
mod queues;
mod request;
mod shared;
mod structure;
mod types;

pub use channel_types::{
    ChannelsOptions, Choice, CostModel, ExcludedQueue, FullQueue, LostQueue, Outcome, PageFault,
    QueueLostReason, Require,
};
pub use channels::dray_open_channels;
pub use enqueue::{
    dray_batch_begin, dray_batch_cancel, dray_batch_end, dray_batch_fence, dray_enqueue_descriptor,
    dray_next_flags,
};
pub use error::{
    dray_core_reason_name, dray_last_error, dray_queue_lost_name, dray_status_name, dray_strerror,
};
pub use handle::Mover;
pub use integrity::{
    dray_dif_check, dray_dif_insert, dray_dif_strip, dray_dif_update, dray_dix_generate,
};
pub use mover::{dray_poll, dray_slots, dray_submit, dray_supports, dray_wait, dray_withdraw};
pub use open::{dray_close, dray_note, dray_open};
pub use operations::{
    dray_apply_delta, dray_cache_flush, dray_compare, dray_compare_pattern, dray_copy,
    dray_copy_crc32c, dray_copy_crc64, dray_crc32c, dray_crc64, dray_create_delta, dray_dualcast,
    dray_fill, dray_noop,
};
pub use outcome::{dray_excluded_queues, dray_poll_outcomes, dray_wait_outcomes};
pub use page_types::{
    Page, PageOptions, PageReason, PageReport, PageRow, PageSize, PageState, PageStatistics,
};
pub use pages::{dray_copy_page_list, dray_copy_page_list_with_report};
pub use queues::{Queue, dray_queues};
pub use request::{OperationCode, Request, Vector, dray_crc32c_register};
pub use shared::{
    Op, dray_ended, dray_event_fd, dray_op_cancel, dray_op_poll, dray_op_release, dray_op_wait,
    dray_share, dray_start,
};
pub use types::{Backend, Completion, CoreReason, Dif, Executor, Flag, Numa, Options, Tags, Wait};

/// The page's example in Rust, which `cargo test --doc` compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/commands/library.md")]
mod readme {}
