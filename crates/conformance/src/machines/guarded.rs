//! Memory of this process for a virtual device: a page that faults, and one that holds the device.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray::virt::Translation;
use dray_device::Access;

use crate::movers::{Held, PAGE, ProcessPages};

/// Everything can be accessed but for one page; what accesses another page waits as long as that is held.
#[derive(Debug, Clone, Default)]
pub(super) struct Guarded(Arc<Pages>);

#[derive(Debug, Default)]
struct Pages {
    forbidden: [AtomicU64; 2],
    held: AtomicU64,
}

impl Guarded {
    /// These addresses fault from now on, and no others.
    pub(super) fn set(&self, page: &Range<u64>) {
        self.0.forbidden[0].store(page.start, Ordering::SeqCst);
        self.0.forbidden[1].store(page.end, Ordering::SeqCst);
    }

    /// Holds a page of its own. It stays mapped: the device may write to it whatever a test does.
    pub(super) fn hold(&self) -> Held {
        let page = ManuallyDrop::new(ProcessPages::new(PAGE as usize)).base();
        self.0.held.store(page, Ordering::SeqCst);
        let guarded = self.clone();
        Held {
            page,
            release: Box::new(move || guarded.0.held.store(0, Ordering::SeqCst)),
        }
    }
}

impl Translation for Guarded {
    fn accessible(&self, addr: u64, len: u64, _: Access) -> u64 {
        let page = addr & !(PAGE - 1);
        while self.0.held.load(Ordering::SeqCst) == page && page != 0 {
            std::thread::yield_now();
        }
        let [start, end] = [0, 1].map(|n: usize| self.0.forbidden[n].load(Ordering::SeqCst));
        match addr < end && addr + len > start {
            true => start.saturating_sub(addr),
            false => len,
        }
    }
}
