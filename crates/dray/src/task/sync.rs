//! What the list of waiting futures stands on, so that a model can replace it (`tests/loom.rs`).

pub(super) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};

pub(super) use atomic_waker::AtomicWaker;
pub(super) use crossbeam_queue::ArrayQueue;
