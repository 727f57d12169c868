//! Tasks of this library: they run on the program's memory and are no threads of the C library.
//!
//! The C library sends set*id(2) calls to its threads and aborts where one of them fails; it counts them to end with the last
//! one; a filter for all threads of a process (`SECCOMP_FILTER_FLAG_TSYNC`) would be these tasks' filter. So the
//! agent is a process of its own (`CLONE_VM` without `CLONE_THREAD`), and what it starts are threads of that process.
//! Each has a stack and thread-local storage of this library's memory, and is in none of the C library's lists.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use dray_tier::sys::{PAGE, memory};

use crate::own::{OWN, PINNED};

/// Bytes of a task's memory: the tasks call little.
pub const BLOCK: u64 = 512 << 10;
/// Bytes of it for the C library's `struct pthread`.
const CONTROL: u64 = 8 << 10;
/// Bytes of it that thread-local storage may take.
const LARGEST_STORAGE: u64 = 128 << 10;
const MOST: usize = 128;

std::arch::global_asm!(
    // clone(2) of a task that calls a function on another stack and ends with it: flags, stack, where its number
    // is kept until it ends, its thread pointer, function, argument.
    ".globl dray_tier_clone",
    ".hidden dray_tier_clone",
    "dray_tier_clone:",
    "and rsi, -16",
    "sub rsi, 16",
    "mov [rsi], r9",
    "mov [rsi + 8], r8",
    "mov r10, rdx",
    "mov r8, rcx",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jnz 2f",
    "xor ebp, ebp",
    "pop rdi",
    "pop rax",
    "call rax",
    "mov edi, eax",
    "mov eax, 60",
    "syscall",
    "hlt",
    "2:",
    "ret",
);

/// What a task executes.
pub type Entry = extern "C" fn(*mut c_void) -> *mut c_void;

unsafe extern "C" {
    safe fn dray_tier_clone(
        flags: usize,
        stack: u64,
        number: u64,
        thread_pointer: u64,
        entry: Entry,
        argument: *mut c_void,
    ) -> isize;
}

/// What must be known of the C library.
#[derive(Debug, Clone, Copy)]
struct Library {
    allocate_tls: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    init_ctype: Option<unsafe extern "C" fn()>,
    storage: u64,
    align: u64,
    /// Where `struct pthread` has the thread's number.
    number: u64,
}

/// The address of a function or datum, if there is one of that name.
fn symbol(name: &CStr) -> Option<usize> {
    // SAFETY: the name is a string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then(|| found.expose_provenance())
}

/// Where `struct pthread` has the number of a thread, which the kernel clears at its end. The C library tells it
/// to debuggers: bits, count, offset.
pub fn number_offset() -> Option<u64> {
    let place = symbol(c"_thread_db_pthread_tid")?;
    let words = std::ptr::with_exposed_provenance::<[u32; 3]>(place);
    // SAFETY: the datum of that name.
    let [bits, _, offset] = unsafe { words.read() };
    (bits == 32).then_some(offset.into())
}

impl Library {
    /// Looked up once.
    fn find() -> Option<Library> {
        static FOUND: OnceLock<Option<Library>> = OnceLock::new();
        *FOUND.get_or_init(Library::look)
    }

    fn look() -> Option<Library> {
        type Allocate = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
        type Info = unsafe extern "C" fn(*mut usize, *mut usize);
        let allocate = symbol(c"_dl_allocate_tls")?;
        let info = symbol(c"_dl_get_tls_static_info")?;
        let control = symbol(c"_thread_db_sizeof_pthread")?;
        // SAFETY: the datum of that name.
        let control = unsafe { std::ptr::with_exposed_provenance::<u32>(control).read() };
        let init_ctype = symbol(c"__ctype_init").map(|address| {
            let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
            // SAFETY: the function of that name.
            unsafe { std::mem::transmute::<*const c_void, unsafe extern "C" fn()>(pointer) }
        });
        let allocate = std::ptr::with_exposed_provenance::<c_void>(allocate);
        // SAFETY: the function of that name.
        let allocate_tls = unsafe { std::mem::transmute::<*const c_void, Allocate>(allocate) };
        let info = std::ptr::with_exposed_provenance::<c_void>(info);
        // SAFETY: the function of that name.
        let info = unsafe { std::mem::transmute::<*const c_void, Info>(info) };
        let (mut storage, mut align) = (0, 0);
        // SAFETY: it writes two words.
        unsafe { info(&raw mut storage, &raw mut align) };
        let (storage, align) = (storage as u64, (align as u64).max(64));
        let fits = u64::from(control) <= CONTROL && storage + align <= LARGEST_STORAGE;
        fits.then_some(Library {
            allocate_tls,
            init_ctype,
            storage,
            align,
            number: number_offset()?,
        })
    }
}

/// Memory of a task.
struct Place {
    start: AtomicU64,
    /// Nobody waits for the task's end: its memory is another's then.
    free_at_end: AtomicBool,
}

static PLACES: [Place; MOST] = [const {
    Place {
        start: AtomicU64::new(0),
        free_at_end: AtomicBool::new(false),
    }
}; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Memory of tasks that were made in advance: where the C library allocates for a task, it gives the allocating
/// thread a heap of its own.
static SPARE: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// A task that has not begun.
#[derive(Debug)]
pub struct Task {
    start: u64,
    /// Its `struct pthread`, and thread pointer.
    control: u64,
    stack: u64,
    number: u64,
}

fn word(address: u64) -> &'static AtomicU64 {
    let word = std::ptr::with_exposed_provenance::<AtomicU64>(address as usize);
    // SAFETY: callers name words of task memory, or of the calling thread's control block.
    unsafe { &*word }
}

fn number_word(address: u64) -> &'static std::sync::atomic::AtomicU32 {
    let word = std::ptr::with_exposed_provenance::<std::sync::atomic::AtomicU32>(address as usize);
    // SAFETY: as above.
    unsafe { &*word }
}

/// The calling thread's `struct pthread`.
pub fn own_control() -> u64 {
    let control: u64;
    // SAFETY: the third word of the control block is its address (tcbhead_t).
    unsafe {
        std::arch::asm!("mov {}, fs:[16]", out(reg) control, options(nostack, readonly, preserves_flags));
    }
    control
}

/// Memory for a task: that of one that has ended, or new.
fn take_place() -> Option<u64> {
    let library = Library::find()?;
    let count = COUNT.load(Ordering::Acquire).min(MOST);
    for place in &PLACES[..count] {
        let start = place.start.load(Ordering::Acquire);
        let ended = start != 0
            && number_word(control_of(start, &library) + library.number).load(Ordering::Acquire)
                == 0;
        if ended && place.free_at_end.swap(false, Ordering::AcqRel) {
            return Some(start);
        }
    }
    let start = memory::reserve(BLOCK, PAGE).ok()?;
    // SAFETY: the lowest page of what was just mapped.
    unsafe { libc::syscall(libc::SYS_mprotect, start, PAGE, libc::PROT_NONE) };
    let place = PLACES.get(COUNT.fetch_add(1, Ordering::AcqRel))?;
    place.start.store(start, Ordering::Release);
    OWN.add(start, start + BLOCK).then_some(start)
}

fn control_of(start: u64, library: &Library) -> u64 {
    (start + BLOCK - CONTROL) / library.align * library.align
}

impl Task {
    /// Makes one. The C library allocates a vector on the program's heap for it, whose pages are pinned.
    pub fn new() -> Option<Task> {
        let library = Library::find()?;
        let task = Task::at(take_place()?, &library);
        let (start, control) = (task.start, task.control);
        // SAFETY: memory that no task has any more.
        unsafe { memory::empty(start + PAGE, BLOCK - PAGE) }.ok()?;
        let pointer = std::ptr::with_exposed_provenance_mut::<c_void>(control as usize);
        // SAFETY: it fills the storage below and the vector's place in the control block.
        if unsafe { (library.allocate_tls)(pointer) }.is_null() {
            return None;
        }
        let own = own_control();
        word(control).store(control, Ordering::Relaxed);
        word(control + 16).store(control, Ordering::Relaxed);
        // What guards stacks and pointers is the same for all.
        for offset in [40, 48] {
            let value = word(own + offset).load(Ordering::Relaxed);
            word(control + offset).store(value, Ordering::Relaxed);
        }
        let (first, last) = vector_pages(control);
        PINNED.add(first, last);
        Some(task)
    }

    fn at(start: u64, library: &Library) -> Task {
        let control = control_of(start, library);
        Task {
            start,
            control,
            stack: (control - library.storage) / library.align * library.align,
            number: control + library.number,
        }
    }

    /// Begins it as a process of its own, without parent or child in the program; whether it could.
    pub fn begin_process(&self, entry: Entry, argument: *mut c_void) -> bool {
        let process = Process {
            stack: self.stack,
            control: self.control,
            number: self.number,
            entry,
            argument,
        };
        // Its parent ends at once, so that it is nobody's child here; it runs in the middle of the task's stack, and this thread
        // waits for its end.
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_UNTRACED;
        let middle = self.start + BLOCK / 4;
        let argument = (&raw const process).cast_mut().cast();
        let parent = dray_tier_clone(flags as usize, middle, 0, 0, begin_process, argument);
        if parent <= 0 {
            return false;
        }
        // SAFETY: this thread's child, which ends without a signal.
        unsafe { libc::syscall(libc::SYS_wait4, parent, 0, libc::__WCLONE, 0) };
        // If it has ended already, what it was to do tells.
        true
    }

    /// Begins it as a thread of the calling task's process; whether it could.
    fn begin_thread(&self, entry: Entry, argument: *mut c_void) -> bool {
        let flags = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM
            | KEPT;
        let (stack, number) = (self.stack, self.number);
        dray_tier_clone(flags as usize, stack, number, self.control, entry, argument) > 0
    }

    /// Whether the task has ended, or never begun.
    pub fn has_ended(&self) -> bool {
        number_word(self.number).load(Ordering::Acquire) == 0
    }
}

/// Its thread pointer, and where its number is as long as it lives.
const KEPT: c_int = libc::CLONE_SETTLS | libc::CLONE_PARENT_SETTID | libc::CLONE_CHILD_CLEARTID;

/// What the process begins with.
struct Process {
    stack: u64,
    control: u64,
    number: u64,
    entry: Entry,
    argument: *mut c_void,
}

/// Between the program and the agent: it has the program's thread pointer, and makes no call but one.
extern "C" fn begin_process(process: *mut c_void) -> *mut c_void {
    // SAFETY: `Task::begin_process` keeps it until this ends.
    let process = unsafe { &*process.cast::<Process>() };
    let flags = libc::CLONE_VM | libc::CLONE_UNTRACED | KEPT | libc::SIGCHLD;
    dray_tier_clone(
        flags as usize,
        process.stack,
        process.number,
        process.control,
        process.entry,
        process.argument,
    );
    std::ptr::null_mut()
}

/// What the C library does first on each of its threads.
pub fn begins() {
    if let Some(init) = Library::find().and_then(|library| library.init_ctype) {
        // SAFETY: it sets thread-local variables.
        unsafe { init() };
    }
}

/// Makes memory for tasks in advance.
pub fn make_spare() {
    for spare in &SPARE {
        let task = Task::new();
        spare.store(task.map_or(0, |task| task.start), Ordering::Release);
    }
}

/// Starts a thread of the calling task's process: its `pthread_t`.
pub fn spawn(entry: Entry, argument: *mut c_void) -> Option<libc::pthread_t> {
    let mut spare = SPARE.iter().map(|spare| spare.swap(0, Ordering::AcqRel));
    let task = match spare.find(|start| *start != 0) {
        Some(start) => Task::at(start, &Library::find()?),
        None => Task::new()?,
    };
    task.begin_thread(entry, argument).then_some(task.control)
}

/// Whether a thread is one that [`spawn`] has started.
fn place_of(thread: libc::pthread_t) -> Option<&'static Place> {
    let count = COUNT.load(Ordering::Acquire).min(MOST);
    PLACES[..count].iter().find(|place| {
        let start = place.start.load(Ordering::Acquire);
        start != 0 && (start..start + BLOCK).contains(&thread)
    })
}

/// Waits for the end of a thread that [`spawn`] has started; `false` if it is another.
pub fn join(thread: libc::pthread_t) -> bool {
    let (Some(place), Some(offset)) = (place_of(thread), number_offset()) else {
        return false;
    };
    let number = number_word(thread + offset);
    loop {
        let value = number.load(Ordering::Acquire);
        if value == 0 {
            break;
        }
        let no_limit = std::ptr::null::<libc::timespec>();
        let word = std::ptr::from_ref(number);
        // The kernel wakes as for any process.
        // SAFETY: an aligned word of the task's memory.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, no_limit) };
    }
    place.free_at_end.store(true, Ordering::Release);
    true
}

/// Nobody will wait for the end of a thread that [`spawn`] has started; `false` if it is another.
pub fn detach(thread: libc::pthread_t) -> bool {
    let Some(place) = place_of(thread) else {
        return false;
    };
    place.free_at_end.store(true, Ordering::Release);
    true
}

/// Forgets all of them: in a child, which has none of them and none of their memory.
pub fn forget() {
    for place in &PLACES {
        place.start.store(0, Ordering::Relaxed);
        place.free_at_end.store(false, Ordering::Relaxed);
    }
    for spare in &SPARE {
        spare.store(0, Ordering::Relaxed);
    }
    COUNT.store(0, Ordering::Relaxed);
}

/// Whether the calling thread is such a task.
pub fn on_one() -> bool {
    let here = 0u8;
    place_of((&raw const here).addr() as u64).is_some()
}

/// The pages of a thread's dynamic thread vector. The C library allocates it on the program's heap, and each access to a
/// thread-local variable of a shared object reads it.
fn vector_pages(control: u64) -> (u64, u64) {
    let vector = word(control + 8).load(Ordering::Relaxed);
    // Its first entry, one before, holds the number of entries of 16 bytes.
    let entries = word(vector - 16).load(Ordering::Relaxed).min(4096);
    let end = vector + (entries + 1) * 16;
    ((vector - 16) / PAGE * PAGE, end.next_multiple_of(PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    static SEEN: AtomicU64 = AtomicU64::new(0);

    extern "C" fn notes(argument: *mut c_void) -> *mut c_void {
        thread_local!(static OWN_COPY: std::cell::Cell<usize> = const { std::cell::Cell::new(7) });
        begins();
        let before = OWN_COPY.replace(argument.addr());
        if on_one() && before == 7 && OWN_COPY.get() == argument.addr() {
            SEEN.fetch_add(argument.addr() as u64, Ordering::SeqCst);
        }
        std::ptr::null_mut()
    }

    /// It is a thread with storage of its own, which is reused once it has ended.
    #[test]
    fn tasks_have_thread_local_variables_and_can_be_joined() {
        assert!(!on_one());
        let mut controls = std::collections::BTreeSet::new();
        for turn in 1..=20 {
            let argument = std::ptr::without_provenance_mut(turn);
            let thread = spawn(notes, argument).expect("glibc");
            assert!(join(thread));
            controls.insert(thread);
        }
        assert_eq!(SEEN.load(Ordering::SeqCst), 210);
        assert_eq!(controls.len(), 1);
        assert!(!join(own_control()) && !detach(own_control()));
        let (start, end) = vector_pages(own_control());
        assert!(start < end && end - start <= 18 * PAGE);
    }
}
