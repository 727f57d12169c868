//! The agent: a thread of the program that runs the manager.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use dray_tier::mechanism::Engine;
use dray_tier::session::{Session, VARIABLE};
use dray_tier::{Manager, Memory};

use crate::own::{OWN, PINNED, of_portals};
use crate::{fork, give_back, hook, stacks};

/// The session of this process and its children.
static SESSION: OnceLock<Session> = OnceLock::new();
/// The engine, for threads that fork. It is never freed.
static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());
static RUNS: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Runs before the program does.
extern "C" fn begin() {
    let Some(path) = std::env::var_os(VARIABLE) else {
        return;
    };
    match Session::open(Path::new(&path)) {
        Ok(session) => {
            let _ = SESSION.set(session);
            fork::listen();
            start();
        }
        Err(error) => {
            let path = String::from_utf8_lossy(path.as_bytes());
            let pid = std::process::id();
            let text = format!("dray tier: process {pid} is not tiered: {path}: {error}\n");
            complain(&text);
        }
    }
}

fn complain(text: &str) {
    // SAFETY: the text has so many bytes.
    let _ = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

/// The engine of this process.
pub(crate) fn engine() -> Option<&'static Engine> {
    // SAFETY: null, or an engine that is never freed.
    unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
}

/// Forgets the engine: in a child, which has none of its threads. What belonged to it is left as it
/// is, locks that its threads held included.
pub(crate) fn forget() {
    ENGINE.store(std::ptr::null_mut(), Ordering::Release);
    stacks::forget();
    give_back::forget();
    // The first is the heap's, which the child has.
    OWN.keep(1);
    PINNED.keep(0);
    RUNS.store(false, Ordering::Relaxed);
}

/// Starts the agent's thread, with all signals blocked.
pub(crate) fn start() {
    if RUNS.swap(true, Ordering::AcqRel) {
        return;
    }
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it fills the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: one set to read and one to write.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let started = hook::create_own(run, std::ptr::null_mut());
    // SAFETY: it was written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    if !started {
        complain("dray tier: no thread can be started, nothing is tiered\n");
    }
}

extern "C" fn run(_: *mut libc::c_void) -> *mut libc::c_void {
    name(c"dray-tier");
    if let Some(session) = SESSION.get() {
        if own_files() {
            work(*session);
        } else {
            complain("dray tier: unshare(CLONE_FILES) is not allowed, nothing is tiered\n");
        }
    }
    std::ptr::null_mut()
}

fn name(name: &CStr) {
    // SAFETY: the name is a string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// A table of files of this thread and those it starts: the program can neither see nor close them,
/// and none of the program's is held open here.
fn own_files() -> bool {
    // SAFETY: it changes this thread alone.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return false;
    }
    // SAFETY: files of this thread's own table.
    unsafe { libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32) };
    // 0, 1 and 2, so that nothing else gets these numbers.
    for _ in 0..3 {
        // SAFETY: the path is a string.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    }
    true
}

fn work(session: Session) {
    let memory = Memory::Process {
        own: || {
            let all = OWN.all().into_iter().chain(give_back::ranges());
            all.chain(of_portals()).collect()
        },
        pinned: || PINNED.all(),
    };
    let mut manager = Manager::new(session, memory);
    loop {
        let pause = manager.step();
        if let Some(engine) = manager.engine() {
            give_back::step(engine);
        }
        if let Some(started) = manager.engine()
            && engine().is_none()
        {
            let kept = Arc::into_raw(started.clone()).cast_mut();
            ENGINE.store(kept, Ordering::Release);
        }
        std::thread::sleep(pause);
    }
}
