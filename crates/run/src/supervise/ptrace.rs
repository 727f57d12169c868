//! ptrace(2), as far as it is needed here. Every call is for the thread that has seized the tracee.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// A thread, as this process numbers it.
pub(super) type Tid = libc::pid_t;

/// What a tracee has stopped for, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// It is no more.
    Ended,
    /// A system call stops before it is done.
    SystemCall,
    /// A system call is done that was to stop afterwards.
    SystemCallDone,
    /// It has started another, of this number.
    Started(Tid),
    /// It executes another program; this was its number before.
    Executed(Tid),
    /// The process is stopped until it is continued.
    Stopped,
    /// Nothing: a new one begins, or one goes on after a stop.
    Goes,
    /// A signal is to be delivered.
    Signal(i32),
}

const OPTIONS: i32 = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC;

/// With `PTRACE_O_TRACESYSGOOD`, the signal of stops for system calls.
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;

/// # Safety
/// As ptrace(2) says of the request; `data` is where it may write.
unsafe fn request(what: libc::c_uint, tid: Tid, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: as the caller vouches.
    match unsafe { libc::ptrace(what, tid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// # Safety
/// The request writes one `T`, in which every bit pattern is valid.
unsafe fn get<T>(what: libc::c_uint, tid: Tid) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: there is room for what it writes.
    unsafe { request(what, tid, 0, value.as_mut_ptr().addr()) }?;
    // SAFETY: every bit pattern is valid, zeros among them.
    Ok(unsafe { value.assume_init() })
}

/// Begins to trace a process, and all that it starts. They end with this thread.
///
/// # Errors
/// It is traced already, or that is not allowed.
pub(super) fn seize(tid: Tid) -> io::Result<()> {
    // SAFETY: the request touches no memory.
    unsafe { request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize) }
}

/// Has a tracee go on, with this signal if it is not 0.
pub(super) fn go_on(tid: Tid, signal: i32) -> io::Result<()> {
    // SAFETY: the request touches no memory.
    unsafe { request(libc::PTRACE_CONT, tid, 0, signal as usize) }
}

/// Traces a tracee no more, and has it go on.
pub(super) fn detach(tid: Tid) -> io::Result<()> {
    // SAFETY: the request touches no memory.
    unsafe { request(libc::PTRACE_DETACH, tid, 0, 0) }
}

/// Has a tracee go on until a system call begins or, if one has begun, is done; with this signal if it
/// is not 0.
pub(super) fn go_on_until_call(tid: Tid, signal: i32) -> io::Result<()> {
    // SAFETY: the request touches no memory.
    unsafe { request(libc::PTRACE_SYSCALL, tid, 0, signal as usize) }
}

/// Has a tracee stop as soon as it runs its own code.
pub(super) fn interrupt(tid: Tid) -> io::Result<()> {
    // SAFETY: the request touches no memory.
    unsafe { request(libc::PTRACE_INTERRUPT, tid, 0, 0) }
}

/// Whether a tracee that has stopped for a system call has not done it yet.
fn begins_call(tid: Tid) -> bool {
    /// `PTRACE_GET_SYSCALL_INFO` and `PTRACE_SYSCALL_INFO_ENTRY` of `linux/ptrace.h`.
    const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
    const ENTRY: u8 = 1;
    // The first byte of `struct ptrace_syscall_info` says which stop it is.
    let mut info = [0u8; 8];
    // SAFETY: the request writes as many bytes as there are.
    let got = unsafe { request(GET_SYSCALL_INFO, tid, info.len(), info.as_mut_ptr().addr()) };
    got.is_ok() && info[0] == ENTRY
}

/// Leaves a tracee stopped with its process.
pub(super) fn stay_stopped(tid: Tid) -> io::Result<()> {
    // SAFETY: the request touches no memory.
    unsafe { request(libc::PTRACE_LISTEN, tid, 0, 0) }
}

pub(super) fn registers(tid: Tid) -> io::Result<libc::user_regs_struct> {
    // SAFETY: the request writes these registers, which are numbers.
    unsafe { get(libc::PTRACE_GETREGS, tid) }
}

pub(super) fn set_registers(tid: Tid, registers: &libc::user_regs_struct) -> io::Result<()> {
    let data = std::ptr::from_ref(registers).addr();
    // SAFETY: the request reads them.
    unsafe { request(libc::PTRACE_SETREGS, tid, 0, data) }
}

/// Reads the state of x87 and SSE into the place of 512 bytes where a signal frame has it.
pub(super) fn vectors(tid: Tid, state: &mut libc::_libc_fpstate) -> io::Result<()> {
    const _: () = assert!(size_of::<libc::_libc_fpstate>() == 512);
    let data = std::ptr::from_mut(state).addr();
    // SAFETY: the request writes FXSAVE's 512 bytes, which is what the place is for.
    unsafe { request(libc::PTRACE_GETFPREGS, tid, 0, data) }
}

pub(super) fn set_vectors(tid: Tid, state: &libc::_libc_fpstate) -> io::Result<()> {
    let data = std::ptr::from_ref(state).addr();
    // SAFETY: the request reads FXSAVE's 512 bytes.
    unsafe { request(libc::PTRACE_SETFPREGS, tid, 0, data) }
}

/// A word of a tracee's memory, whether or not it may read it.
pub(super) fn word(tid: Tid, address: u64) -> io::Result<u64> {
    let mut word = 0u64;
    // SAFETY: the system call, unlike the C library's function, writes the word to the place that `data` names.
    let read = unsafe {
        let data = &raw mut word;
        libc::syscall(libc::SYS_ptrace, libc::PTRACE_PEEKTEXT, tid, address, data)
    };
    match read {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(word),
    }
}

/// Changes a word of a tracee's memory, also of its code, in its own copy of the page.
pub(super) fn set_word(tid: Tid, address: u64, word: u64) -> io::Result<()> {
    // SAFETY: the request writes to the tracee's memory alone.
    unsafe { request(libc::PTRACE_POKETEXT, tid, address as usize, word as usize) }
}

/// `siginfo_t` of a fault.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct SignalInfo {
    pub(super) signal: i32,
    errno: i32,
    /// Above 0: from the kernel.
    pub(super) code: i32,
    pad: i32,
    pub(super) address: u64,
    rest: [u64; 13],
}

const _: () = assert!(size_of::<SignalInfo>() == size_of::<libc::siginfo_t>());

impl SignalInfo {
    pub(super) const fn fault(code: i32, address: u64) -> SignalInfo {
        SignalInfo {
            signal: libc::SIGSEGV,
            errno: 0,
            code,
            pad: 0,
            address,
            rest: [0; 13],
        }
    }
}

pub(super) fn signal_info(tid: Tid) -> io::Result<SignalInfo> {
    // SAFETY: the request writes a siginfo_t, and every field is a number.
    unsafe { get(libc::PTRACE_GETSIGINFO, tid) }
}

pub(super) fn set_signal_info(tid: Tid, info: &SignalInfo) -> io::Result<()> {
    let data = std::ptr::from_ref(info).addr();
    // SAFETY: the request reads a siginfo_t.
    unsafe { request(libc::PTRACE_SETSIGINFO, tid, 0, data) }
}

/// Waits for the next event; `None` if there are no tracees any more.
pub(super) fn wait() -> Option<(Tid, Event)> {
    loop {
        let mut status = 0;
        // Other children of this process are another thread's to wait for.
        let flags = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: the status is ours.
        let tid = unsafe { libc::waitpid(-1, &raw mut status, flags) };
        if tid > 0 {
            return Some((tid, event(tid, status)));
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

pub(super) fn event(tid: Tid, status: i32) -> Event {
    if !libc::WIFSTOPPED(status) {
        return Event::Ended;
    }
    // Of a tracee that has been killed meanwhile there is none.
    // SAFETY: the request writes a word.
    let message = || unsafe { get::<libc::c_ulong>(libc::PTRACE_GETEVENTMSG, tid) }.unwrap_or(0);
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 if signal == SYSTEM_CALL => match begins_call(tid) {
            true => Event::SystemCall,
            false => Event::SystemCallDone,
        },
        0 => Event::Signal(signal),
        libc::PTRACE_EVENT_SECCOMP => Event::SystemCall,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            Event::Started(message() as Tid)
        }
        libc::PTRACE_EVENT_EXEC => Event::Executed(message() as Tid),
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => Event::Stopped,
        _ => Event::Goes,
    }
}

/// Reads memory of a tracee, up to the first page that cannot be read; how many bytes.
pub(super) fn read_memory(tid: Tid, address: u64, bytes: &mut [u8]) -> usize {
    let parts = parts(address, bytes.len());
    let mut local = [IoSliceMut::new(bytes)];
    // SAFETY: it writes to `local`, as IoSliceMut is an iovec, and reads the other process.
    let got = unsafe {
        let (to, from) = (local.as_mut_ptr().cast(), parts.as_ptr());
        libc::process_vm_readv(tid, to, 1, from, parts.len() as u64, 0)
    };
    usize::try_from(got).unwrap_or(0)
}

/// Writes memory of a tracee; how many bytes.
pub(super) fn write_memory(tid: Tid, address: u64, bytes: &[u8]) -> usize {
    let parts = parts(address, bytes.len());
    let local = [IoSlice::new(bytes)];
    // SAFETY: it reads `local`, as IoSlice is an iovec, and writes to the other process alone.
    let got = unsafe {
        let (from, to) = (local.as_ptr().cast(), parts.as_ptr());
        libc::process_vm_writev(tid, from, 1, to, parts.len() as u64, 0)
    };
    usize::try_from(got).unwrap_or(0)
}

/// A range of less than a page as its parts on either side of a page's end: the kernel transfers
/// parts completely or not at all.
fn parts(address: u64, bytes: usize) -> [libc::iovec; 2] {
    let before = bytes.min((4096 - address % 4096) as usize);
    let part = |address: u64, bytes| libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address as usize),
        iov_len: bytes,
    };
    let behind = address.wrapping_add(before as u64);
    [part(address, before), part(behind, bytes - before)]
}
