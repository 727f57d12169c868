//! Lanes: movers that one thread has for one call.
//!
//! A thread tries lanes and waits for none, so that a signal handler that interrupts a call, or a
//! thread that never runs again, stops nobody: where no lane is free the core executes.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering, compiler_fence};

use dray::hw::{HwMover, HwOptions, QueueInfo};
use dray::virt::{Engines, Idle, Options, StartError, VirtualDevice, VirtualMover};
use dray::{Capabilities, Completion, Mover, Operation, Progress};
use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

use crate::live::{Found, Live};
use crate::stats::Reason;

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

/// All lanes.
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    queues: Vec<QueueInfo>,
    /// Queues, or 1.
    count: usize,
    next: AtomicUsize,
    live: Live,
    pid: AtomicI32,
    /// This is a child, and the threads of the virtual device are its parent's.
    threadless: AtomicU8,
}

// SAFETY: the engine of a lane belongs to whoever has set its state to taken.
unsafe impl Sync for Lanes {}

/// A lane that the caller has. It is free again when this is dropped.
pub(crate) struct Taken<'a> {
    lane: &'a Lane,
    /// Its work queue on this machine.
    pub(crate) queue: Option<&'a QueueInfo>,
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
    /// tell children.
    pub(crate) fn on_hardware(queues: Vec<QueueInfo>) -> Option<Lanes> {
        let each = (LANES / queues.len().max(1)).max(1);
        let mut lanes = Vec::new();
        for (index, queue) in queues.iter().enumerate() {
            let count = match queue.mode {
                // One client at a time.
                WorkQueueMode::Dedicated => 1,
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
        Lanes::new(lanes, queues, count)
    }

    fn new(lanes: Vec<Lane>, queues: Vec<QueueInfo>, count: usize) -> Option<Lanes> {
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
        let options = Options {
            engines: Engines::Dispatcher,
            idle: Idle::Park {
                after: std::time::Duration::from_micros(50),
            },
            ..Options::default()
        };
        let device = without_signals(|| VirtualDevice::start(virtual_config(), options))?;
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
                    (Some(node), Some(info)) => info.numa_node.is_none_or(|of| of == node),
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
        let mut why = Reason::NoQueue;
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
            if taken.mover().is_some() {
                return Ok(taken);
            }
        }
        Err(why)
    }

    fn open(&self, taken: &mut Taken<'_>) {
        // A child of vfork would open the file for itself, and map it for its parent.
        if pid() != self.pid.load(Ordering::Relaxed) {
            return;
        }
        let Some(info) = taken.queue else {
            return;
        };
        let opened = HwMover::open(info, options());
        *taken.engine() = match opened {
            Ok(mover) => Engine::Hw(ManuallyDrop::new(mover)),
            Err(_) => Engine::Broken,
        };
    }

    /// In a child of fork: portals are not mapped there, threads are not there, and whoever had a
    /// lane neither.
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
        self.pid.store(pid(), Ordering::Relaxed);
        self.live.renewed();
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

/// A device as Sapphire Rapids has it, with one engine and one shared work queue.
fn virtual_config() -> DeviceConfig {
    let queue = WorkQueueConfig {
        mode: WorkQueueMode::Shared,
        size: 64,
        threshold: 64,
        priority: 10,
        block_on_fault: true,
        max_batch_size: 1024,
        max_transfer_size: 2 << 20,
        pasid: Some(0),
        ..WorkQueueConfig::default()
    };
    DeviceConfig::sapphire_rapids(1, vec![queue])
}
