//! Memory that the program serves by a userfaultfd of its own: it is given back, and never managed again.
//!
//! A mapping has one userfaultfd. The program's thread cannot unregister the engine's, because its table of
//! files does not have it; so it sends a request to the agent and waits.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dray_tier::mechanism::Engine;

use crate::hook::real;
use crate::own::Ranges;
use crate::{agent, guards, tasks};

/// `UFFDIO_REGISTER`, whose argument begins with the range: first byte, length.
const REGISTER: c_ulong = 0xc020_aa00;
/// `VFIO_IOMMU_MAP_DMA`: the kernel pins memory, and does not wait for a page.
const MAP_DMA: c_ulong = 0x3b71;
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

/// # Safety
/// As ioctl(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    type Ioctl = unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int;
    let Some(real) = real!(c"ioctl", Ioctl) else {
        return -1;
    };
    let quiet = if request == MAP_DMA {
        guards::quiet()
    } else {
        None
    };
    if quiet.is_some() {
        // SAFETY: `struct vfio_iommu_type1_dma_map`: sizes and flags, address, address for the device, length.
        let [_, start, _, len] = unsafe { argument.cast::<[u64; 4]>().read_unaligned() };
        guards::populate(start, len);
    }
    // SAFETY: the caller's promise.
    let answer = unsafe { real(fd, request, argument) };
    drop(quiet);
    let refused = answer == -1 && request == REGISTER;
    if !refused || tasks::on_one() || agent::engine().is_none() {
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
