//! The process that has the agent: a child by a bare system call has all of its memory and no agent, and must not
//! wait for one.
//!
//! So what tells is on a page that the kernel empties in every child that has a copy of it (`MADV_WIPEONFORK`).

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use dray_tier::mechanism::Engine;
use dray_tier::sys::{PAGE, memory};

use crate::own::OWN;

/// What is on the page.
#[repr(C)]
struct Marks {
    /// 1 in the process that has the agent.
    here: AtomicU64,
    /// Its engine, for threads of the program. It is never freed.
    engine: AtomicPtr<Engine>,
}

static MARKS: AtomicPtr<Marks> = AtomicPtr::new(std::ptr::null_mut());

/// Makes the page; whether it could.
pub(crate) fn make() -> bool {
    let Ok(page) = memory::reserve(PAGE, PAGE) else {
        return false;
    };
    let kept = memory::advise(page, PAGE, libc::MADV_DOFORK).is_ok()
        // SAFETY: a page of this function's own.
        && unsafe { libc::syscall(libc::SYS_madvise, page, PAGE, libc::MADV_WIPEONFORK) } == 0;
    if kept && OWN.add(page, page + PAGE) {
        let marks = std::ptr::with_exposed_provenance_mut(page as usize);
        MARKS.store(marks, Ordering::Release);
        return true;
    }
    false
}

fn marks() -> Option<&'static Marks> {
    // SAFETY: null, or a page of zeros or what was written here, which is never unmapped.
    unsafe { MARKS.load(Ordering::Acquire).as_ref() }
}

/// This process has the agent from now on.
pub(crate) fn begin() {
    if let Some(marks) = marks() {
        marks.here.store(1, Ordering::Release);
    }
}

/// Whether this is the process that has the agent.
pub(crate) fn is_this() -> bool {
    marks().is_some_and(|marks| marks.here.load(Ordering::Acquire) == 1)
}

pub(crate) fn set_engine(engine: *mut Engine) {
    if let Some(marks) = marks() {
        marks.engine.store(engine, Ordering::Release);
    }
}

pub(crate) fn engine() -> Option<&'static Engine> {
    // SAFETY: null, or an engine that is never freed.
    marks().and_then(|marks| unsafe { marks.engine.load(Ordering::Acquire).as_ref() })
}
