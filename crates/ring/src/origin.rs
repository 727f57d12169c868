//! Where in a program a descriptor was submitted, beside its entry, for tools that watch programs.

use crate::sync::{AtomicU64, Ordering};
use crate::tag::COUNT;

/// The thread and the instruction that submitted a descriptor, and the registers that its callers are found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// Number of the thread; 0 if it is not known.
    pub thread: u32,
    /// Address of the instruction.
    pub site: u64,
    /// Its stack pointer; 0 if it is not known.
    pub stack: u64,
    /// Its frame pointer, or another value in that register.
    pub frame: u64,
    /// The status byte of its record then; `None` if it is not known.
    pub record: Option<u8>,
    /// When that was.
    pub at: Moment,
}

/// When a thread submitted a descriptor. 0: not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// By the time stamp counter.
    pub cycles: u64,
    /// When its last submission had returned, by the same.
    pub returned: u64,
    /// CPU time of the thread, in nanoseconds.
    pub cpu_ns: u64,
}

/// Room for one beside each entry. All zero: there is none.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct OriginSlot {
    /// Its position, above, and its thread.
    key: AtomicU64,
    site: AtomicU64,
    stack: AtomicU64,
    frame: AtomicU64,
    /// [`READ`] and the status.
    record: AtomicU64,
    cycles: AtomicU64,
    returned: AtomicU64,
    cpu_ns: AtomicU64,
}

const THREAD_BITS: u32 = 32;
/// Beside a status: there is one.
const READ: u64 = 1 << 8;

/// Bits of a position that tell it from those of the same slot in other rounds.
fn key(position: u64, thread: u32) -> u64 {
    (position & COUNT) << THREAD_BITS | u64::from(thread)
}

impl OriginSlot {
    /// Of the descriptor at `position`, before that is published.
    pub(crate) fn store(&self, position: u64, origin: &Origin) {
        self.site.store(origin.site, Ordering::Relaxed);
        self.stack.store(origin.stack, Ordering::Relaxed);
        self.frame.store(origin.frame, Ordering::Relaxed);
        let record = origin.record.map_or(0, |status| READ | u64::from(status));
        self.record.store(record, Ordering::Relaxed);
        self.cycles.store(origin.at.cycles, Ordering::Relaxed);
        self.returned.store(origin.at.returned, Ordering::Relaxed);
        self.cpu_ns.store(origin.at.cpu_ns, Ordering::Relaxed);
        self.key
            .store(key(position, origin.thread), Ordering::Relaxed);
    }

    /// That of the descriptor at `position`, which was read; `None` if its writer has not said it.
    pub(crate) fn load(&self, position: u64) -> Option<Origin> {
        let found = self.key.load(Ordering::Relaxed);
        let thread = found as u32;
        let record = self.record.load(Ordering::Relaxed);
        (thread != 0 && found == key(position, thread)).then(|| Origin {
            thread,
            site: self.site.load(Ordering::Relaxed),
            stack: self.stack.load(Ordering::Relaxed),
            frame: self.frame.load(Ordering::Relaxed),
            record: (record & READ != 0).then_some(record as u8),
            at: Moment {
                cycles: self.cycles.load(Ordering::Relaxed),
                returned: self.returned.load(Ordering::Relaxed),
                cpu_ns: self.cpu_ns.load(Ordering::Relaxed),
            },
        })
    }
}
