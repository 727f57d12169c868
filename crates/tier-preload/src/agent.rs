//! The agent: a process on the program's memory that runs the manager.
//!
//! It is no thread of the program and no child of it, has its own table of files, and has given up all rights when the
//! program begins. It ends with the program, and when the program executes another one.

use std::ffi::{CStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dray_tier::mechanism::Engine;
use dray_tier::session::{Note, Session, VARIABLE};
use dray_tier::sys::memory;
use dray_tier::sys::processes::filters;
use dray_tier::tracking::Choice;
use dray_tier::{Manager, Memory};

use crate::own::{OWN, PINNED, of_portals};
use crate::tasks::{self, Task};
use crate::{HEAP, fork, give_back, hook, limits, own_process, rights, stopped, threads};

/// How often it is looked whether the program executes another one, or has come under a filter.
const LOOK: Duration = Duration::from_millis(50);

/// The session of this process and its children.
static SESSION: OnceLock<Session> = OnceLock::new();
/// Whether the agent has begun: 0 not yet, 1 it has. A futex.
static READY: AtomicU32 = AtomicU32::new(0);
/// The program's process.
static PROGRAM: AtomicU32 = AtomicU32::new(0);
/// The agent ends, and the program waits for that.
static LEAVES: AtomicBool = AtomicBool::new(false);
/// Children have no agents: the program has put itself under a filter that may forbid their system calls, or it has locked
/// all memory.
pub(crate) static LAST: AtomicBool = AtomicBool::new(false);
/// The process of the program, as a file that can be read once it has ended.
static ALIVE: AtomicI32 = AtomicI32::new(-1);
/// Ranges that the engine leaves when it ends: first byte, behind the last.
static LEFT: [[AtomicU64; 2]; 16] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; 16];
static TASK: std::sync::Mutex<Option<Task>> = std::sync::Mutex::new(None);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Runs before the program does.
extern "C" fn begin() {
    let Some(path) = std::env::var_os(VARIABLE) else {
        return;
    };
    let opened = Session::open(Path::new(&path));
    let session = match opened {
        Ok(session) => session,
        // Another user's program: it runs as without dray, and the command names it.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return,
        Err(error) => {
            let path = String::from_utf8_lossy(path.as_bytes());
            let pid = std::process::id();
            let text = format!("dray tier: process {pid} is not tiered: {path}: {error}\n");
            // SAFETY: the text has so many bytes.
            let _ = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
            return;
        }
    };
    if filters("self") > session.setup().filters {
        session.add_untiered(&format!(
            "{} is under a seccomp filter: it is not tiered",
            name()
        ));
        return;
    }
    if limits::in_force() {
        session.add_untiered(&format!(
            "{} has a limit of its address space or data: it is not tiered",
            name()
        ));
        HEAP.trim();
        return;
    }
    if !threads::find() || !own_process::make() {
        let text = format!(
            "{} has a C library that dray does not know: it is not tiered",
            name()
        );
        session.add_untiered(&text);
        return;
    }
    let _ = SESSION.set(session);
    fork::listen();
    start();
}

/// The program's name, for messages.
fn name() -> String {
    let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    format!("{} ({})", name.trim_end(), std::process::id())
}

/// The engine of this process.
pub(crate) fn engine() -> Option<&'static Engine> {
    own_process::engine()
}

/// Forgets the agent: in a child, which has none. What belonged to it is left as it is, locks that its threads held
/// included.
pub(crate) fn forget() {
    // SAFETY: the child has one thread.
    unsafe { HEAP.begin_anew() };
    tasks::forget();
    threads::forget();
    give_back::forget();
    // The heap's and the page of this process, which the child has.
    OWN.keep(2);
    PINNED.keep(0);
}

extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    std::ptr::null_mut()
}

/// Starts the agent, for the calling thread's process.
pub(crate) fn start() {
    if LAST.load(Ordering::Relaxed) {
        return;
    }
    own_process::begin();
    threads::enter();
    // The kernel's set: the C library leaves signals of its own out.
    let (all, mut before) = (u64::MAX, 0u64);
    let set = libc::SIG_SETMASK;
    // SAFETY: one set to read and one to write.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            set,
            &raw const all,
            &raw mut before,
            8,
        )
    };
    let begun = begin_agent();
    // SAFETY: it was written above.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, set, &raw const before, 0, 8) };
    if !begun && let Some(session) = SESSION.get() {
        session.add_untiered(&format!("{} can have no agent: it is not tiered", name()));
    }
}

fn begin_agent() -> bool {
    // From its first thread on the C library locks what it shares: the agent uses it too.
    if !hook::run_a_thread(nothing) {
        return false;
    }
    // What the C library allocates for the agent it allocates here.
    tasks::make_spare();
    of_portals();
    READY.store(0, Ordering::Relaxed);
    LEAVES.store(false, Ordering::Relaxed);
    PROGRAM.store(std::process::id(), Ordering::Relaxed);
    let Some(task) = Task::new() else {
        return false;
    };
    if !task.begin_process(run, std::ptr::null_mut()) {
        return false;
    }
    while READY.load(Ordering::Acquire) == 0 && !task.has_ended() {
        hook::futex_wait(&READY, 0, Duration::from_millis(20));
    }
    let ready = READY.load(Ordering::Acquire) == 1;
    if let Ok(mut known) = TASK.try_lock() {
        *known = Some(task);
    }
    ready
}

/// As [`leave`], and says why, if there is an agent.
pub(crate) fn leave_because(reason: &str) {
    let agent = own_process::is_this() && !LAST.load(Ordering::Relaxed);
    if agent && let Some(session) = SESSION.get() {
        session.add_untiered(&format!("{} {reason}", name()));
    }
    leave();
}

/// Ends the agent for good: nothing is out, registered or locked afterwards that was dray's.
pub(crate) fn leave() {
    if !own_process::is_this() {
        return;
    }
    let Ok(mut known) = TASK.lock() else { return };
    let Some(task) = known.take() else { return };
    LAST.store(true, Ordering::Relaxed);
    LEAVES.store(true, Ordering::Release);
    while !task.has_ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for range in &LEFT {
        let [start, end] = range.each_ref().map(|word| word.swap(0, Ordering::Acquire));
        if end > start {
            // SAFETY: the engine's, which has ended, and of which nobody knows any more.
            unsafe { memory::unmap(start, end - start) };
        }
    }
    HEAP.trim();
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    tasks::begins();
    name_task(c"dray-tier");
    // Signals for the program's group are not for the agent, and it keeps no directory in use.
    // SAFETY: it changes this process alone.
    unsafe { libc::syscall(libc::SYS_setpgid, 0, 0) };
    // SAFETY: the path is a string.
    unsafe { libc::chdir(c"/".as_ptr()) };
    own_files();
    let program = PROGRAM.load(Ordering::Relaxed);
    // SAFETY: it takes a number and flags.
    let alive = unsafe { libc::syscall(libc::SYS_pidfd_open, program, 0) } as i32;
    if let Some(session) = SESSION.get()
        && alive >= 0
    {
        ALIVE.store(alive, Ordering::Relaxed);
        // What ends the agent waits for no lock: a thread of the program may have ended with one.
        if tasks::spawn(watch, std::ptr::null_mut()).is_some() {
            work(*session, program, alive);
        }
    }
    end()
}

extern "C" fn watch(_: *mut c_void) -> *mut c_void {
    name_task(c"dray-tier-watch");
    let program = PROGRAM.load(Ordering::Relaxed).to_string();
    let before = filters(&program);
    while !ends_within(ALIVE.load(Ordering::Relaxed), LOOK) && threads::any_lives() {
        LAST.fetch_or(filters(&program) > before, Ordering::Relaxed);
    }
    end()
}

/// How long a device has for what it copies.
const DEVICES: Duration = Duration::from_millis(100);

fn end() -> ! {
    dray_tier::copier::wait_for_devices(DEVICES);
    // SAFETY: it ends this process.
    unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    unreachable!("exit_group returns to nobody")
}

fn name_task(name: &CStr) {
    // SAFETY: the name is a string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// None of the program's files is held open here.
fn own_files() {
    // SAFETY: files of this process's own table.
    unsafe { libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32) };
    // 0, 1 and 2, so that nothing else gets these numbers.
    for _ in 0..3 {
        // SAFETY: the path is a string.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    }
}

/// Whether the program ends within a time, or has ended.
fn ends_within(alive: i32, time: Duration) -> bool {
    let mut polled = libc::pollfd {
        fd: alive,
        events: libc::POLLIN,
        revents: 0,
    };
    let millis = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: there is one.
    unsafe { libc::poll(&raw mut polled, 1, millis) == 1 }
}

fn work(session: Session, program: u32, alive: i32) {
    let memory = Memory::Process {
        own: || {
            let all = OWN.all().into_iter().chain(give_back::ranges());
            all.chain(of_portals()).collect()
        },
        pinned: || match stopped::is() {
            true => vec![(0, u64::MAX)],
            false => PINNED.all().into_iter().chain(threads::pinned()).collect(),
        },
        starts: |engine| {
            own_process::set_engine(Arc::into_raw(engine.clone()).cast_mut());
        },
    };
    stopped::open(program);
    let mut manager = Manager::with_rights(session, memory, program);
    // DAMON's files are root's, and opened again and again.
    let keeps = session.setup().tracking == Choice::Damon;
    if !keeps && !rights::give_up() {
        if let Some(process) = session.claim(program.into()) {
            process.note(
                Note::Failure,
                "the agent's rights cannot be given up: not tiered",
            );
        }
        return;
    }
    READY.store(1, Ordering::Release);
    hook::futex_wake(&READY);
    loop {
        if LEAVES.load(Ordering::Acquire) {
            return stop(&manager);
        }
        let pause = manager.step();
        if let Some(engine) = manager.engine() {
            give_back::step(engine);
        }
        if ends_within(alive, pause) {
            return;
        }
    }
}

/// Puts all pages back, and leaves nothing that the program could lock.
fn stop(manager: &Manager) {
    let Some(engine) = manager.engine() else {
        return;
    };
    own_process::set_engine(std::ptr::null_mut());
    engine.stop();
    for (place, (start, end)) in LEFT.iter().zip(engine.own_ranges()) {
        place[0].store(start, Ordering::Relaxed);
        place[1].store(end, Ordering::Release);
    }
    // The windows are registered as long as the userfaultfd is open.
    own_files();
}
