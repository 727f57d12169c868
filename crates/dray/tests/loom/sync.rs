//! What `src/task/sync.rs` has, of loom.

pub(crate) use loom::sync::atomic::{AtomicPtr, Ordering};
