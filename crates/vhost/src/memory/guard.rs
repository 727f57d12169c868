//! The handler of SIGBUS: what a front end's truncated memory file would kill the process with.
//!
//! An access beyond the end of a mapped file raises SIGBUS. The handler looks the address up in a
//! table of the mapped regions, maps zeroed private pages from there to the region's end, marks the
//! region as broken, and the access is repeated. A signal that is not about a region goes to the
//! handler that was there before.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::VhostError;

/// Regions that can be guarded at once in one process.
const SLOTS: usize = 4096;

struct Entry {
    start: AtomicUsize,
    end: AtomicUsize,
    page: AtomicUsize,
    hit: AtomicBool,
}

static TABLE: [Entry; SLOTS] = [const {
    Entry {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        page: AtomicUsize::new(0),
        hit: AtomicBool::new(false),
    }
}; SLOTS];
/// Slots below this index have been used.
static HIGH: AtomicUsize = AtomicUsize::new(0);
static TAKEN: Mutex<Vec<bool>> = Mutex::new(Vec::new());
static FAULTS: AtomicU64 = AtomicU64::new(0);
static INSTALLED: OnceLock<Result<Previous, i32>> = OnceLock::new();

struct Previous(libc::sigaction);

/// Faults that the handler has caught in this process.
pub(super) fn fault_count() -> u64 {
    FAULTS.load(Ordering::Relaxed)
}

/// Guards one mapped range of addresses until it is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    slot: usize,
}

impl Guard {
    /// Guards `[start, end)`, mapped in pages of `page` bytes.
    pub(super) fn new(start: usize, end: usize, page: usize) -> Result<Guard, VhostError> {
        install()?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match taken.iter().position(|used| !used) {
            Some(slot) => slot,
            None if taken.len() < SLOTS => {
                taken.push(false);
                taken.len() - 1
            }
            None => {
                let text = format!("{SLOTS} regions are guarded already");
                return Err(VhostError::Guard(io::Error::other(text)));
            }
        };
        taken[slot] = true;
        HIGH.fetch_max(slot + 1, Ordering::SeqCst);
        let entry = &TABLE[slot];
        entry.hit.store(false, Ordering::SeqCst);
        entry.page.store(page, Ordering::SeqCst);
        entry.start.store(start, Ordering::SeqCst);
        entry.end.store(end, Ordering::SeqCst);
        Ok(Guard { slot })
    }

    /// Whether an access to the range has faulted.
    pub(super) fn is_hit(&self) -> bool {
        TABLE[self.slot].hit.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let entry = &TABLE[self.slot];
        entry.end.store(0, Ordering::SeqCst);
        entry.start.store(0, Ordering::SeqCst);
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        taken[self.slot] = false;
    }
}

fn install() -> Result<(), VhostError> {
    let installed = INSTALLED.get_or_init(|| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a zeroed sigaction is valid: no flags, the default handler, an empty mask.
        let action = unsafe { action.assume_init_mut() };
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
        let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: both point to whole structures, and the handler does only what is allowed in one.
        let result = unsafe { libc::sigaction(libc::SIGBUS, action, previous.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        // SAFETY: zeroed is valid, and the kernel has filled it.
        Ok(Previous(unsafe { previous.assume_init() }))
    });
    match installed {
        Ok(_) => Ok(()),
        Err(code) => Err(VhostError::Guard(io::Error::from_raw_os_error(*code))),
    }
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let info_ref = unsafe { &*info };
    // SAFETY: SIGBUS carries an address.
    let address = unsafe { info_ref.si_addr() } as usize;
    for entry in &TABLE[..HIGH.load(Ordering::SeqCst)] {
        let start = entry.start.load(Ordering::SeqCst);
        let end = entry.end.load(Ordering::SeqCst);
        if address < start || address >= end {
            continue;
        }
        // Another thread may have given the slot to another range between these two loads.
        if entry.start.load(Ordering::SeqCst) != start {
            continue;
        }
        let page = entry.page.load(Ordering::SeqCst);
        let from = address & !(page - 1);
        // SAFETY: the range lies in a mapping of ours, whose file has no page there any more.
        let mapped = unsafe {
            libc::mmap(
                from as *mut libc::c_void,
                end - from,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped != libc::MAP_FAILED {
            entry.hit.store(true, Ordering::SeqCst);
            FAULTS.fetch_add(1, Ordering::SeqCst);
            return;
        }
        break;
    }
    pass_on(signal, info, context);
}

/// Calls the handler that was there before, or restores it: the access faults again, and that handler runs.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(Ok(Previous(previous))) = INSTALLED.get() else {
        // SAFETY: restoring the default action is allowed in a handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    };
    let handler = previous.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: `previous` is a whole structure that the kernel gave.
        unsafe { libc::sigaction(signal, previous, ptr::null_mut()) };
    } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
        type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
        // SAFETY: a handler installed with SA_SIGINFO has this type.
        let call: Handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
        call(signal, info, context);
    } else {
        // SAFETY: a handler installed without SA_SIGINFO takes the signal alone.
        let call = unsafe { std::mem::transmute::<usize, extern "C" fn(i32)>(handler) };
        call(signal);
    }
}
