//! Memory that the program serves by a userfaultfd of its own: it is given back, and never managed again.
//!
//! A mapping has one userfaultfd. The program's thread cannot unregister the engine's, because its table of
//! files does not have it; so it sends a request to the agent and waits.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dray_tier::mechanism::Engine;

use crate::own::Ranges;
use crate::{agent, hook, stacks};

/// `UFFDIO_REGISTER`, whose argument begins with the range: first byte, length.
const REGISTER: c_ulong = 0xc020_aa00;
/// How often the agent is waited for, a millisecond each.
const TRIES: u32 = 10_000;

/// Ranges that the program serves itself.
static GIVEN: Ranges = Ranges::new();
/// Ranges that the agent has given back.
static DONE: AtomicUsize = AtomicUsize::new(0);

/// Those ranges.
pub(crate) fn ranges() -> Vec<(u64, u64)> {
    GIVEN.all()
}

/// In a child: the ranges stay the program's, and no engine manages them.
pub(crate) fn forget() {
    DONE.store(GIVEN.all().len(), Ordering::Release);
}

/// Gives back what was asked for since the last time; the agent calls it.
pub(crate) fn step(engine: &Engine) {
    let given = GIVEN.all();
    for (start, end) in given.iter().skip(DONE.load(Ordering::Relaxed)) {
        for (first, last) in engine.regions() {
            let (first, last) = (first.max(*start), last.min(*end));
            if first < last {
                engine.unregister(first, last);
            }
        }
    }
    DONE.store(given.len(), Ordering::Release);
}

static IOCTL: AtomicUsize = AtomicUsize::new(0);

/// # Safety
/// As ioctl(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    type Ioctl = unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int;
    let address = hook::next(&IOCTL, c"ioctl");
    let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: null, or the function of that name.
    let real = unsafe { std::mem::transmute::<*const c_void, Option<Ioctl>>(pointer) };
    let Some(real) = real else {
        return -1;
    };
    // SAFETY: the caller's promise.
    let answer = unsafe { real(fd, request, argument) };
    let refused = answer == -1 && request == REGISTER;
    if !refused || stacks::on_one() || agent::engine().is_none() {
        return answer;
    }
    let busy = std::io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY);
    // SAFETY: the kernel has just read the range there.
    let [start, len] = unsafe { argument.cast::<[u64; 2]>().read_unaligned() };
    let before = GIVEN.all().len();
    if !busy || !GIVEN.add(start, start.saturating_add(len)) {
        return answer;
    }
    for _ in 0..TRIES {
        if DONE.load(Ordering::Acquire) > before {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: as above.
    unsafe { real(fd, request, argument) }
}
