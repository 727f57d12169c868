//! What is set up once and used by every call.

use std::sync::atomic::{AtomicPtr, Ordering};

use dray_placement::Reason;
use dray_spec::GenCap;

use crate::adapt::Adaptation;
use crate::lanes::Lanes;
use crate::record::Record;
use crate::recorder::Recorder;
use crate::settings::{Faults, Mover, Numa, Settings};
use crate::stats::Stats;
use crate::waiting::Waiting;

/// What is set up once.
pub(crate) struct Runtime {
    /// Or why there are none.
    pub(crate) lanes: Result<Lanes, Reason>,
    pub(crate) stats: Stats,
    pub(crate) adaptation: Adaptation,
    pub(crate) waiting: Waiting,
    /// How long a call waits for a completion; 0: for ever.
    pub(crate) deadline_ns: u64,
    pub(crate) faults: Faults,
    /// Pages are made present before the device gets them: it is a thread of this process.
    pub(crate) populate_first: bool,
    pub(crate) numa: Numa,
    pub(crate) cache_control: bool,
    pub(crate) overlap_on_device: bool,
    /// Calls come here that are below the threshold, to be counted.
    pub(crate) count_small: bool,
    /// Records every call, and none is offloaded.
    pub(crate) recorder: Option<Recorder>,
    /// Records every call for a replay, and none is offloaded.
    pub(crate) record: Option<Record>,
    /// Gives [`crate::entry`] a new threshold.
    pub(crate) set_threshold: fn(&Runtime, usize),
    /// Which calls are taken.
    pub(crate) calls: [bool; 4],
}

impl Runtime {
    pub(crate) fn new(
        settings: &Settings,
        lanes: Result<Lanes, Reason>,
        stats: Stats,
        set_threshold: fn(&Runtime, usize),
    ) -> Runtime {
        Runtime {
            lanes,
            stats,
            adaptation: Adaptation::new(settings),
            waiting: Waiting::new(settings).0,
            deadline_ns: u64::try_from(settings.deadline.as_nanos()).unwrap_or(u64::MAX),
            faults: settings.faults,
            populate_first: settings.mover == Mover::Virtual,
            numa: settings.numa,
            cache_control: settings.cache_control,
            overlap_on_device: settings.overlap_on_device,
            count_small: settings.count_small,
            recorder: None,
            record: None,
            set_threshold,
            calls: settings.calls,
        }
    }

    /// The node that a call should be executed on.
    pub(crate) fn node(&self, operand: *const u8) -> Option<u32> {
        match self.numa {
            Numa::Any => None,
            Numa::Core => {
                let (mut core, mut node) = (0_u32, 0_u32);
                // SAFETY: both are places for a number.
                let answer = unsafe {
                    libc::syscall(libc::SYS_getcpu, &raw mut core, &raw mut node, 0_usize)
                };
                (answer == 0).then_some(node)
            }
            Numa::Buffer => {
                let mut status = -1_i32;
                // SAFETY: one address to ask for, and a place for one answer.
                let answer = unsafe {
                    libc::syscall(
                        libc::SYS_move_pages,
                        0_usize,
                        1_usize,
                        &raw const operand,
                        0_usize,
                        &raw mut status,
                        0_usize,
                    )
                };
                u32::try_from(status).ok().filter(|_| answer == 0)
            }
        }
    }

    /// Whether destinations can be written to the cache.
    pub(crate) fn to_cache(&self, general: GenCap) -> bool {
        self.cache_control && general.cache_control_memory()
    }
}

static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(std::ptr::null_mut());

/// `None` before it is set up.
pub(crate) fn get() -> Option<&'static Runtime> {
    let runtime = RUNTIME.load(Ordering::Acquire);
    // SAFETY: null, or what `set` has leaked.
    unsafe { runtime.as_ref() }
}

/// Sets it up for the rest of the process.
pub(crate) fn set(runtime: Runtime) -> &'static Runtime {
    let leaked = Box::leak(Box::new(runtime));
    RUNTIME.store(leaked, Ordering::Release);
    leaked
}
