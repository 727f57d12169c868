//! Lanes: movers that one thread has for one call.
//!
//! A thread tries lanes and waits for none, so that a signal handler that interrupts a call, or a
//! thread that never runs again, stops no other: where no lane is free the core executes.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering, compiler_fence};

use dray::hw::{HwMover, HwOptions, OpenQueue, QueueInfo};
use dray::virt::{Options, StartError, VirtualDevice, VirtualMover};
use dray::{Capabilities, Completion, Mover, Operation, Progress};
use dray_device::{DeviceConfig, WorkQueueMode};
use dray_placement::Reason;

use crate::live::{Found, Live};

/// Descriptors of one call in flight at most: those of a call that is larger than a descriptor.
pub(crate) const SLOTS: usize = 4;
/// Lanes in all.
const LANES: usize = 64;
/// Lanes of the virtual device.
const VIRTUAL_LANES: usize = 8;

const FREE: u8 = 0;
const TAKEN: u8 = 1;

/// What a lane has. Nothing of it is dropped: its files may have been closed by the program, and
/// their numbers may be others' then.
#[allow(clippy::large_enum_variant, reason = "there are 64 lanes at most")]
enum Engine {
    Closed,
    /// It cannot be opened.
    Broken,
    Hw(ManuallyDrop<HwMover>),
    Virtual(ManuallyDrop<VirtualMover>),
}

struct Lane {
    state: AtomicU8,
    engine: UnsafeCell<Engine>,
    /// Index of its queue.
    queue: usize,
    /// The thread that submits at this moment, by its thread pointer; 0: none.
    submitter: AtomicUsize,
}

/// A work queue of this machine.
struct WorkQueue {
    info: QueueInfo,
    /// Of a dedicated queue, which the kernel lets one client open: what its lanes share.
    shared: UnsafeCell<Option<ManuallyDrop<OpenQueue>>>,
    state: AtomicU8,
    /// The thread that opens it, by its thread pointer.
    opener: AtomicUsize,
}

/// Times that a thread gives way while another opens the queue.
const YIELDS: u32 = 1000;

/// States of a work queue: nothing was opened, a thread opens it, it is open, it cannot be opened.
const CLOSED: u8 = 0;
const OPENING: u8 = 1;
const OPEN: u8 = 2;
const BROKEN: u8 = 3;

impl WorkQueue {
    fn new(info: QueueInfo) -> WorkQueue {
        WorkQueue {
            info,
            shared: UnsafeCell::new(None),
            state: AtomicU8::new(CLOSED),
            opener: AtomicUsize::new(0),
        }
    }

    /// Opens it for a lane.
    fn open(&self) -> Engine {
        let mover = match self.info.mode {
            WorkQueueMode::Shared => HwMover::open(&self.info, options()).ok(),
            WorkQueueMode::Dedicated => match self.shared() {
                Ok(shared) => shared.and_then(|shared| shared.mover().ok()),
                Err(Opening) => return Engine::Closed,
            },
        };
        mover.map_or(Engine::Broken, |mover| Engine::Hw(ManuallyDrop::new(mover)))
    }

    /// The queue that is open once for all lanes; `None` if it cannot be opened.
    fn shared(&self) -> Result<Option<&OpenQueue>, Opening> {
        let begun =
            self.state
                .compare_exchange(CLOSED, OPENING, Ordering::Acquire, Ordering::Acquire);
        match begun {
            Ok(_) => {
                self.opener.store(thread(), Ordering::Relaxed);
                let opened = OpenQueue::open(&self.info, options()).ok();
                let state = if opened.is_some() { OPEN } else { BROKEN };
                // SAFETY: the thread that has set the state to opening is the only one that accesses it.
                unsafe { *self.shared.get() = opened.map(ManuallyDrop::new) };
                self.state.store(state, Ordering::Release);
            }
            Err(OPENING) => self.wait_for_opener()?,
            Err(_) => {}
        }
        // SAFETY: the state is open or broken, and nothing writes to it any more in this process.
        let shared = unsafe { &*self.shared.get() };
        Ok(shared.as_deref())
    }
}

impl WorkQueue {
    /// Lets the thread that opens the queue come to its end, which is soon: but not if it is this one.
    fn wait_for_opener(&self) -> Result<(), Opening> {
        for _ in 0..YIELDS {
            if self.opener.load(Ordering::Relaxed) == thread() {
                break;
            }
            // SAFETY: a system call without arguments.
            unsafe { libc::sched_yield() };
            if self.state.load(Ordering::Acquire) != OPENING {
                return Ok(());
            }
        }
        Err(Opening)
    }
}

/// Another thread opens the queue at this moment, or the thread that a signal has interrupted.
struct Opening;

/// All lanes.
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    queues: Vec<WorkQueue>,
    /// Queues, or 1.
    count: usize,
    next: AtomicUsize,
    live: Live,
    pid: AtomicI32,
    /// This is a child, and the threads of the virtual device are its parent's.
    threadless: AtomicU8,
}

// SAFETY: the engine of a lane belongs to the thread that has set its state to taken; what lanes share of
// a queue is written by the thread that has set its state to opening, and read when it is open.
unsafe impl Sync for Lanes {}

/// A lane that the caller has. It is free again when this is dropped.
pub(crate) struct Taken<'a> {
    lane: &'a Lane,
    /// Its work queue on this machine.
    queue: Option<&'a WorkQueue>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.lane.state.store(FREE, Ordering::Release);
    }
}

impl Taken<'_> {
    fn engine(&mut self) -> &mut Engine {
        // SAFETY: this value has the lane.
        unsafe { &mut *self.lane.engine.get() }
    }

    fn mover(&mut self) -> Option<&mut dyn Mover> {
        match self.engine() {
            Engine::Hw(mover) => Some(&mut **mover),
            Engine::Virtual(mover) => Some(&mut **mover),
            Engine::Closed | Engine::Broken => None,
        }
    }

    /// What the device does through this lane.
    pub(crate) fn capabilities(&self) -> Capabilities {
        // SAFETY: this value has the lane.
        match unsafe { &*self.lane.engine.get() } {
            Engine::Hw(mover) => mover.capabilities(),
            Engine::Virtual(mover) => mover.capabilities(),
            Engine::Closed | Engine::Broken => Capabilities::software(),
        }
    }

    /// Prepares an operation. Whether there was room.
    ///
    /// # Safety
    /// As [`Mover::enqueue`].
    pub(crate) unsafe fn enqueue(&mut self, operation: &Operation) -> bool {
        // SAFETY: the caller's promise.
        let enqueue = |mover: &mut dyn Mover| unsafe { mover.enqueue(operation) }.is_ok();
        self.mover().is_some_and(enqueue)
    }

    /// An operation that has ended, if there is one.
    pub(crate) fn poll(&mut self) -> Option<Completion> {
        let mut ended = [Completion::default(); 1];
        let count = self.mover().map_or(0, |mover| mover.poll(&mut ended));
        (count == 1).then_some(ended[0])
    }

    /// Where the completion record will be written of what was submitted first.
    pub(crate) fn oldest_record(&mut self) -> Option<u64> {
        self.mover().and_then(|mover| mover.oldest_record())
    }

    /// Hands over what was enqueued. A signal handler that interrupts it finds no lane: where the
    /// portal is emulated (`dray run`), its submission would wait for this one.
    pub(crate) fn submit(&mut self) -> Progress {
        self.lane.submitter.store(thread(), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let progress = self.mover().map_or(Progress::Done, |mover| mover.submit());
        compiler_fence(Ordering::SeqCst);
        self.lane.submitter.store(0, Ordering::Relaxed);
        progress
    }

    /// The device file of its queue, if it has one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.queue.map(|queue| queue.info.path.as_path())
    }

    /// Leaves the lane taken for the rest of the process: the device may still write its records.
    pub(crate) fn retire(self) {
        std::mem::forget(self);
    }

    /// Takes back what was enqueued and not accepted by the device. Nothing else is in flight.
    pub(crate) fn cancel_queued(&mut self) {
        for _ in 0..self.mover().map_or(0, |mover| mover.withdraw()) {
            self.poll();
        }
    }
}

fn options() -> HwOptions {
    HwOptions {
        slots: SLOTS,
        // The core that waits finishes what has faulted, without a call of the kernel.
        page_faults: 0,
        ..HwOptions::default()
    }
}

/// The calling thread, by its thread pointer (the first word that it points to; System V ABI, TLS).
fn thread() -> usize {
    let thread: usize;
    // SAFETY: every thread of a program with glibc has it.
    unsafe {
        core::arch::asm!("mov {}, fs:[0]", out(reg) thread,
                         options(nostack, readonly, preserves_flags));
    }
    thread
}

fn pid() -> i32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::getpid() }
}

impl Lanes {
    /// Lanes on these queues, which are opened when they are first used. `None`: the kernel cannot
    /// mark memory that a child does not inherit (MADV_WIPEONFORK).
    pub(crate) fn on_hardware(queues: Vec<QueueInfo>) -> Option<Lanes> {
        let each = (LANES / queues.len().max(1)).max(1);
        let mut lanes = Vec::new();
        for (index, queue) in queues.iter().enumerate() {
            let count = match queue.mode {
                // More would have no entry.
                WorkQueueMode::Dedicated => each.min(queue.entries.into()).max(1),
                WorkQueueMode::Shared => each,
            };
            lanes.extend((0..count).map(|_| Lane {
                state: AtomicU8::new(FREE),
                engine: UnsafeCell::new(Engine::Closed),
                queue: index,
                submitter: AtomicUsize::new(0),
            }));
        }
        let count = queues.len().max(1);
        let queues = queues.into_iter().map(WorkQueue::new).collect();
        Lanes::new(lanes, queues, count)
    }

    fn new(lanes: Vec<Lane>, queues: Vec<WorkQueue>, count: usize) -> Option<Lanes> {
        Some(Lanes {
            lanes,
            queues,
            count,
            next: AtomicUsize::new(0),
            live: Live::new()?,
            pid: AtomicI32::new(pid()),
            threadless: AtomicU8::new(0),
        })
    }

    /// Lanes on a virtual device, whose thread takes no signals.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn on_virtual() -> Result<Option<Lanes>, StartError> {
        // Calls are cut into as large pieces as a queue of the kernel's defaults takes.
        let config = DeviceConfig::embedded(WorkQueueMode::Shared, 1, 2 << 20);
        let device = without_signals(|| VirtualDevice::start(config, Options::default()))?;
        if let Ok(mut mover) = device.open(0, 1) {
            await_threads(&mut mover);
        }
        let lanes = (0..VIRTUAL_LANES).map(|_| Lane {
            state: AtomicU8::new(FREE),
            engine: UnsafeCell::new(match device.open(0, SLOTS) {
                Ok(mover) => Engine::Virtual(ManuallyDrop::new(mover)),
                Err(_) => Engine::Broken,
            }),
            queue: 0,
            submitter: AtomicUsize::new(0),
        });
        Ok(Lanes::new(lanes.collect(), Vec::new(), 1))
    }

    /// A lane, if possible of a queue on this node.
    pub(crate) fn take(&self, node: Option<u32>) -> Result<Taken<'_>, Reason> {
        match self.live.look() {
            Found::Same => {}
            Found::Changing => return Err(Reason::Busy),
            Found::Child => self.renew(),
        }
        if self.threadless.load(Ordering::Relaxed) != 0 {
            return Err(Reason::Forked);
        }
        let thread = thread();
        let submits = |lane: &Lane| lane.submitter.load(Ordering::Relaxed) == thread;
        if self.lanes.iter().any(submits) {
            return Err(Reason::Busy);
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let mut why = Reason::Busy;
        for near in [true, false] {
            for step in 0..self.count {
                let queue = (turn + step) % self.count;
                let is_near = match (node, self.queues.get(queue)) {
                    (Some(node), Some(queue)) => queue.info.numa_node.is_none_or(|of| of == node),
                    _ => true,
                };
                if is_near != near {
                    continue;
                }
                match self.take_of(queue) {
                    Ok(taken) => return Ok(taken),
                    Err(Reason::Busy) => {}
                    Err(other) => why = other,
                }
            }
        }
        Err(why)
    }

    fn take_of(&self, queue: usize) -> Result<Taken<'_>, Reason> {
        let mut why = Reason::NoDevice;
        for lane in self.lanes.iter().filter(|lane| lane.queue == queue) {
            let taken =
                lane.state
                    .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_err() {
                why = Reason::Busy;
                continue;
            }
            let queue = self.queues.get(queue);
            let mut taken = Taken { lane, queue };
            if matches!(taken.engine(), Engine::Closed) {
                self.open(&mut taken);
            }
            match taken.engine() {
                Engine::Hw(_) | Engine::Virtual(_) => return Ok(taken),
                // It is being opened, or this process must not open it.
                Engine::Closed => return Err(Reason::Busy),
                Engine::Broken => {}
            }
        }
        Err(why)
    }

    fn open(&self, taken: &mut Taken<'_>) {
        // A child of vfork would open the file for itself, and map it for its parent.
        if pid() != self.pid.load(Ordering::Relaxed) {
            return;
        }
        if let Some(queue) = taken.queue {
            *taken.engine() = queue.open();
        }
    }

    /// Ends the threads of the virtual device, for good: from now on the core executes. Whether there were any.
    pub(crate) fn end_threads(&self) -> bool {
        match self.live.look() {
            Found::Same => {}
            Found::Changing => return false,
            Found::Child => self.renew(),
        }
        let are_others = self.threadless.load(Ordering::Relaxed) != 0;
        // A child of vfork uses its parent's memory, and has one thread.
        if are_others || pid() != self.pid.load(Ordering::Relaxed) {
            return false;
        }
        let take = |lane: &&Lane| {
            let state = &lane.state;
            let taken = state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            taken.is_ok()
        };
        let taken = self.lanes.iter().take_while(take).count();
        let mut ended = false;
        for lane in &self.lanes[..taken] {
            // SAFETY: this call has the lane.
            let engine = unsafe { &mut *lane.engine.get() };
            // A call that has a lane goes on with the device.
            if let Engine::Virtual(mover) = engine
                && taken == self.lanes.len()
            {
                // SAFETY: the lane is broken from here on, so that it is not used again. The last one ends the device.
                unsafe { ManuallyDrop::drop(mover) };
                *engine = Engine::Broken;
                ended = true;
            }
            lane.state.store(FREE, Ordering::Release);
        }
        ended
    }

    /// In a child of fork: portals are not mapped there, and neither the threads of the device nor
    /// those that had lanes are there.
    fn renew(&self) {
        for lane in &self.lanes {
            // SAFETY: the caller is the only thread of this process that is not turned away.
            let engine = unsafe { &mut *lane.engine.get() };
            match engine {
                Engine::Virtual(_) => self.threadless.store(1, Ordering::Relaxed),
                // Without the old one being dropped: see `Engine`.
                _ => *engine = Engine::Closed,
            }
            lane.submitter.store(0, Ordering::Relaxed);
            lane.state.store(FREE, Ordering::Release);
        }
        for queue in &self.queues {
            // SAFETY: as above.
            let shared = unsafe { &mut *queue.shared.get() };
            // `ManuallyDrop`: nothing is closed or unmapped.
            *shared = None;
            queue.state.store(CLOSED, Ordering::Release);
        }
        self.pid.store(pid(), Ordering::Relaxed);
        self.live.renewed();
    }
}

/// Waits until the threads of the device run. A thread that begins takes the loader's lock, which the program holds while
/// it loads a library: a call of that library's constructors would wait for the thread, and the thread for the lock.
fn await_threads(mover: &mut VirtualMover) {
    // SAFETY: a NOOP accesses no memory.
    if unsafe { mover.enqueue(&Operation::noop()) }.is_err() {
        return;
    }
    let mut ended = [Completion::default(); 1];
    mover.submit();
    while mover.poll(&mut ended) == 0 {
        // SAFETY: a system call without arguments.
        unsafe { libc::sched_yield() };
        mover.submit();
    }
}

/// Has threads that are started meanwhile take no signals: they are the program's.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it fills the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: both are sets, or places for one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let result = start();
    // SAFETY: it was written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}
