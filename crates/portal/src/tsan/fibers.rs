//! Fibers that stand for the device: one for each submission in flight, as many as there are.

use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::runtime::{Fiber, NO_ORDER, Runtime};
use crate::syscall::give_way;

/// Submissions in flight that are told apart. More share fibers: who sees one completion then has seen that of another.
const FIBERS: usize = 128;

/// Its submission has completed, as far as a thread has seen.
const IDLE: u32 = 0;
/// A thread uses it, or nobody has created its fiber.
const CLAIMED: u32 = 1;
/// Its submission is in flight.
const BUSY: u32 = 2;

static SLOTS: [Slot; FIBERS] = [const { Slot::new() }; FIBERS];
/// Keys of queues and 1, in the order of their first submissions.
static QUEUES: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// Slots that have had a fiber, from the first on.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Where the search begins when all are busy.
static TURN: AtomicUsize = AtomicUsize::new(0);
/// Numbers of submissions, from 1 on.
static SUBMISSIONS: AtomicU64 = AtomicU64::new(0);
/// The fiber that creates the others: reports say where a fiber was created, which is no place of a submission.
static DEVICE: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(null_mut());
/// A thread is that fiber.
static CREATING: AtomicBool = AtomicBool::new(false);

/// A fiber of the device.
#[derive(Debug)]
pub(super) struct Slot {
    state: AtomicU32,
    fiber: AtomicPtr<std::ffi::c_void>,
    submission: AtomicU64,
    /// What the submission does is released at this address.
    token: AtomicU64,
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            state: AtomicU32::new(CLAIMED),
            fiber: AtomicPtr::new(null_mut()),
            submission: AtomicU64::new(0),
            token: AtomicU64::new(0),
        }
    }

    pub(super) fn token(&self) -> u64 {
        (&raw const self.token).addr() as u64
    }

    pub(super) fn fiber(&self) -> Fiber {
        self.fiber.load(Ordering::Acquire)
    }

    /// The submission is in flight: other threads may have the fiber when it is not.
    pub(super) fn set_busy(&self) {
        self.state.store(BUSY, Ordering::Release);
    }

    fn claim(&self, from: u32) -> bool {
        let order = Ordering::AcqRel;
        self.state.load(Ordering::Relaxed) == from
            && self
                .state
                .compare_exchange(from, CLAIMED, order, Ordering::Relaxed)
                .is_ok()
    }
}

/// Creates the first fiber, by the thread that maps a portal.
pub(super) fn begin(runtime: Runtime) {
    // SAFETY: the runtime is the program's.
    let device = unsafe { (runtime.create_fiber)(0) };
    // SAFETY: the fiber was created just now; the name is copied.
    unsafe { (runtime.set_fiber_name)(device, c"dray: device".as_ptr()) };
    DEVICE.store(device, Ordering::Release);
}

/// A fiber for a submission, which this thread has alone until it is [busy](Slot::set_busy), and the number of the submission.
pub(super) fn claim(runtime: &Runtime, name: &str) -> (&'static Slot, u64) {
    let slot = loop {
        let used = USED.load(Ordering::Acquire).min(FIBERS);
        let mut old = SLOTS[..used].iter();
        if let Some(slot) = old.find(|slot| slot.claim(IDLE)) {
            break slot;
        }
        if let Some(slot) = create(runtime) {
            break slot;
        }
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let slot = &SLOTS[turn % FIBERS];
        if slot.claim(BUSY) {
            break slot;
        }
        give_way();
    };
    let submission = SUBMISSIONS.fetch_add(1, Ordering::Relaxed) + 1;
    slot.submission.store(submission, Ordering::Relaxed);
    let name = CString::new(format!("dray: {name} #{submission}")).unwrap_or_default();
    // SAFETY: the fiber is this thread's; the name is copied.
    unsafe { (runtime.set_fiber_name)(slot.fiber(), name.as_ptr()) };
    (slot, submission)
}

/// One more fiber, created by that of the device; `None` if there are as many as may be.
fn create(runtime: &Runtime) -> Option<&'static Slot> {
    let slot = SLOTS.get(USED.fetch_add(1, Ordering::AcqRel))?;
    let locked = || CREATING.swap(true, Ordering::Acquire);
    while locked() {
        give_way();
    }
    // SAFETY: the runtime is the program's, here and below.
    let thread = unsafe { (runtime.current_fiber)() };
    // SAFETY: no other thread has it while this one creates.
    unsafe { (runtime.switch_to_fiber)(DEVICE.load(Ordering::Acquire), NO_ORDER) };
    // SAFETY: as above.
    let fiber = unsafe { (runtime.create_fiber)(0) };
    // SAFETY: back to this thread.
    unsafe { (runtime.switch_to_fiber)(thread, NO_ORDER) };
    CREATING.store(false, Ordering::Release);
    slot.fiber.store(fiber, Ordering::Release);
    Some(slot)
}

/// In a child: a thread that created a fiber, or used one, is not there.
pub(super) fn forked() {
    CREATING.store(false, Ordering::Release);
    for slot in SLOTS.iter().filter(|slot| !slot.fiber().is_null()) {
        let order = Ordering::AcqRel;
        let _ = slot
            .state
            .compare_exchange(CLAIMED, IDLE, order, Ordering::Relaxed);
    }
}

/// The submission has completed: its fiber may stand for another.
pub(super) fn complete(submission: u64) {
    let used = USED.load(Ordering::Acquire).min(FIBERS);
    let mut slots = SLOTS[..used].iter();
    if let Some(slot) = slots.find(|slot| slot.submission.load(Ordering::Relaxed) == submission) {
        let order = Ordering::AcqRel;
        let _ = slot
            .state
            .compare_exchange(BUSY, IDLE, order, Ordering::Relaxed);
    }
}

/// Address at which each submission to a queue is released when it ends: a drain comes after all that were submitted before,
/// also after those whose fiber stands for another by now. Beyond [`QUEUES`] queues share the last one.
pub(super) fn token_of(queue: u64) -> u64 {
    let used = |token: &&AtomicU64| {
        let (wanted, order) = (queue + 1, Ordering::Relaxed);
        let known = token.compare_exchange(0, wanted, order, order);
        known.is_ok() || known == Err(wanted)
    };
    let token = QUEUES
        .iter()
        .find(used)
        .unwrap_or(&QUEUES[QUEUES.len() - 1]);
    std::ptr::from_ref(token).addr() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_no_thread_that_creates_a_fiber_or_uses_one() {
        let (used, busy, none) = (&SLOTS[FIBERS - 1], &SLOTS[FIBERS - 2], &SLOTS[FIBERS - 3]);
        for slot in [used, busy] {
            slot.fiber
                .store(std::ptr::dangling_mut(), Ordering::Relaxed);
        }
        busy.set_busy();
        CREATING.store(true, Ordering::Relaxed);
        forked();
        assert!(!CREATING.load(Ordering::Relaxed));
        assert!(used.claim(IDLE));
        assert!(busy.claim(BUSY));
        assert!(none.claim(CLAIMED));
    }

    #[test]
    fn each_queue_has_a_token_and_the_last_ones_share() {
        let tokens: Vec<_> = (0..).map(token_of).take(QUEUES.len() + 1).collect();
        let mut apart = tokens[..8].to_vec();
        apart.dedup();
        assert_eq!(apart.len(), 8);
        assert!(
            tokens
                .iter()
                .enumerate()
                .all(|(queue, token)| token_of(queue as u64) == *token)
        );
        assert_eq!(tokens[QUEUES.len()], tokens[QUEUES.len() - 1]);
    }
}
