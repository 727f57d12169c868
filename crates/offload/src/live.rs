//! Whether this process is the one that the library was set up in.
//!
//! The kernel wipes a page in every child that has memory of its own, however it was made (fork,
//! `_Fork`, clone(2)), and not in a child of vfork, which uses its parent's.

use std::sync::atomic::{AtomicU32, Ordering};

const WIPED: u32 = 0;
const CHANGING: u32 = 1;
const READY: u32 = 2;

/// What is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is.
    Same,
    /// It is a child, and the caller is the one thread that sets things up again: it calls
    /// [`Live::renewed`] then.
    Child,
    /// Another thread does that at this moment.
    Changing,
}

/// The page.
#[derive(Debug)]
pub(crate) struct Live {
    word: &'static AtomicU32,
}

impl Live {
    /// `None` where the kernel has no such pages (before 4.14).
    pub(crate) fn new() -> Option<Live> {
        let word = dray::wiped_on_fork()?;
        word.store(READY, Ordering::Release);
        Some(Live { word })
    }

    pub(crate) fn look(&self) -> Found {
        match self.word.load(Ordering::Acquire) {
            READY => Found::Same,
            CHANGING => Found::Changing,
            _ => match self.word.compare_exchange(
                WIPED,
                CHANGING,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => Found::Child,
                Err(_) => Found::Changing,
            },
        }
    }

    pub(crate) fn renewed(&self) {
        self.word.store(READY, Ordering::Release);
    }
}
