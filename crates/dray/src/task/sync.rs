//! What the stack of handles stands on, so that a model can replace it (`tests/loom.rs`).

pub(super) use std::sync::atomic::{AtomicPtr, Ordering};
