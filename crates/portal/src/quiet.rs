//! Programs that filter their system calls (seccomp(2)).
//!
//! On hardware a submission makes no system call, so a filter need not allow any. Before the program installs one,
//! the devices of its portals are told to look for descriptors by themselves; nothing here calls the kernel from
//! then on. Children inherit the filter and, in their memory, what is known of it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::remote;

static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether system calls may end the program.
#[inline]
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// The program is about to filter its system calls.
pub(crate) fn begin() {
    QUIET.store(true, Ordering::SeqCst);
    remote::begin_polling();
}
