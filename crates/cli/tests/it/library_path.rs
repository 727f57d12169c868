//! Nothing is allocated and no lock is taken on the path of an operation on a work queue, inside `dray run`.
//!
//! Allocations are counted by this program's allocator. Locks and system calls are counted by a tracer that
//! executes the path instruction by instruction: an instruction with a LOCK prefix, an XCHG with memory, or a
//! SYSCALL, in this program or in the C library. The code of `dray run` that emulates the device is not counted.

use std::env;
use std::hint::black_box;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use dray::hw::{self, HwMover, HwOptions};
use dray::{Completion, Mover, Operation, Progress};
use dray_spec::Status;

use crate::counting_allocator::counted;
use crate::library::run_inside;

/// Buffers of the operations.
struct Buffers {
    source: Vec<u8>,
    target: Vec<u8>,
}

impl Buffers {
    fn new() -> Buffers {
        Buffers {
            source: vec![7; 4096],
            target: vec![0; 4096],
        }
    }

    fn copy(&self) -> Operation {
        let [from, to] =
            [&self.source, &self.target].map(|bytes| bytes.as_ptr().expose_provenance() as u64);
        Operation::memmove(from, to, 4096)
    }
}

/// Enqueues and submits one operation and a batch of four.
fn submit(mover: &mut HwMover, copy: &Operation) {
    // SAFETY: the callers' buffers outlive the operations, which are waited for.
    unsafe { mover.enqueue(copy) }.expect("a slot");
    // SAFETY: as above; all of them copy the same bytes.
    unsafe { mover.enqueue_batch(&[*copy; 4]) }.expect("slots");
    assert_eq!(mover.submit(), Progress::Done);
}

/// Waits without the mover until what it has in flight has ended.
fn wait_for_the_device(mover: &HwMover) {
    // The batch ends last, but is not the oldest: it has ended some time after the oldest.
    let oldest = mover.oldest_record().expect("something is in flight");
    let status: *const AtomicU8 = std::ptr::with_exposed_provenance(oldest as usize);
    // SAFETY: the mover's record, whose status byte is an atomic.
    while unsafe { (*status).load(Ordering::Acquire) } == 0 {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
}

/// Takes the completions that are there.
fn poll(mover: &mut HwMover) -> usize {
    let mut ended = [Completion::default(); 8];
    let count = mover.poll(&mut ended);
    for completion in &ended[..count] {
        assert_eq!(completion.status(), Status::SUCCESS);
    }
    count
}

fn poll_all(mover: &mut HwMover) {
    let mut left = 5;
    while left > 0 {
        left -= poll(mover);
        std::thread::yield_now();
    }
}

fn allocates_nothing(test: &str, profile: &str) {
    if !run_inside(test, &["--profile", profile]) {
        return;
    }
    let mut mover = hw::open(None, HwOptions::default()).expect("a work queue");
    let buffers = Buffers::new();
    let copy = buffers.copy();
    let count = counted(|| {
        for _ in 0..100 {
            submit(&mut mover, &copy);
            poll_all(&mut mover);
        }
    });
    assert_eq!(count, 0);
    assert!(buffers.source == buffers.target);
    assert_eq!(
        counted(|| drop(black_box(vec![0_u8; 16]))),
        1,
        "the counter counts"
    );
}

#[test]
fn nothing_is_allocated_on_a_dedicated_queue() {
    let test = "library_path::nothing_is_allocated_on_a_dedicated_queue";
    allocates_nothing(test, "1e1w-d");
}

#[test]
fn nothing_is_allocated_on_a_shared_queue() {
    let test = "library_path::nothing_is_allocated_on_a_shared_queue";
    allocates_nothing(test, "1e1w-s");
}

#[test]
fn no_lock_is_taken_on_a_dedicated_queue() {
    let test = "library_path::no_lock_is_taken_on_a_dedicated_queue";
    takes_no_lock(test, "1e1w-d");
}

#[test]
fn no_lock_is_taken_on_a_shared_queue() {
    let test = "library_path::no_lock_is_taken_on_a_shared_queue";
    takes_no_lock(test, "1e1w-s");
}

/// Set in the process that is traced.
const TRACED: &str = "DRAY_TEST_TRACED";
/// Rounds that are traced: each a submission and a poll.
const ROUNDS: usize = 10;

/// Marks begin and end of a counted region. It stops a traced process, and kills another one.
#[inline(never)]
fn mark() {
    // SAFETY: a trap, which the tracer takes.
    unsafe { std::arch::asm!("int3", options(nomem, nostack)) };
}

fn takes_no_lock(test: &str, profile: &str) {
    if env::var_os(TRACED).is_some() {
        return traced();
    }
    if !run_inside(test, &["--profile", profile]) {
        return;
    }
    let mut command = Command::new(env::current_exe().expect("a path"));
    command
        .args(["--exact", test, "--nocapture"])
        .env(TRACED, "1");
    // SAFETY: it makes one system call.
    unsafe { command.pre_exec(be_traced) };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            dray_skip::skip(&format!("this process may not trace another ({error})"));
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let counts = Tracer::new(child.id()).trace();
    // The tracer has already waited for its end.
    let _ = child.wait();
    let (control, rounds) = counts.split_last().expect("regions");
    assert_eq!(rounds.len(), 2 * ROUNDS);
    for (n, count) in rounds.iter().enumerate() {
        assert!(count.instructions > 50, "region {n}: {count:?}");
        assert_eq!((count.locked, count.calls), (0, 0), "region {n}: {count:?}");
    }
    println!(
        "a submission of one and a batch of four: {:?}; a poll: {:?}",
        rounds[0], rounds[1]
    );
    // A lock, a swap and a system call are found where there are some.
    assert!(control.locked >= 2 && control.calls >= 1, "{control:?}");
}

/// Makes the parent trace this process.
fn be_traced() -> std::io::Result<()> {
    // SAFETY: no addresses.
    match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// What is counted: `mark` before and behind each region.
fn traced() {
    let mut mover = hw::open(None, HwOptions::default()).expect("a work queue");
    let buffers = Buffers::new();
    let copy = buffers.copy();
    // The instructions that submit trap once.
    for _ in 0..3 {
        submit(&mut mover, &copy);
        poll_all(&mut mover);
    }
    for _ in 0..ROUNDS {
        mark();
        submit(&mut mover, &copy);
        mark();
        wait_for_the_device(&mover);
        mark();
        let count = poll(&mut mover);
        mark();
        assert_eq!(count, 5);
    }
    let lock = Mutex::new(1_u8);
    let byte = AtomicU8::new(0);
    mark();
    *black_box(&lock).lock().expect("not poisoned") += 1;
    black_box(&byte).swap(2, Ordering::SeqCst);
    // SAFETY: it has no operands.
    black_box(unsafe { libc::getppid() });
    mark();
    assert!(buffers.source == buffers.target);
}

/// Instructions of a region.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    instructions: u64,
    locked: u64,
    calls: u64,
}

/// Executes another process, whose marks are all in one thread.
struct Tracer {
    pid: libc::pid_t,
    /// Code of the program and of the C library.
    code: Vec<Range<u64>>,
}

impl Tracer {
    fn new(pid: u32) -> Tracer {
        Tracer {
            pid: pid as libc::pid_t,
            code: Vec::new(),
        }
    }

    /// Runs the process to its end; returns the counts between each two marks.
    fn trace(&mut self) -> Vec<Count> {
        let mut counts = Vec::new();
        // execve(2) stops it first.
        assert_eq!(stopped(self.pid), (self.pid, Some(libc::SIGTRAP)));
        let options = libc::PTRACE_O_TRACECLONE as usize;
        // SAFETY: it is stopped.
        let set =
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, self.pid, null_mut::<u8>(), options) };
        assert_eq!(set, 0);
        let (mut thread, mut signal) = (self.pid, 0);
        loop {
            resume(thread, libc::PTRACE_CONT, signal);
            loop {
                let ended;
                (thread, ended) = stopped(-1);
                match ended {
                    Some(stopped) => {
                        signal = stopped;
                        break;
                    }
                    None if thread == self.pid => return counts,
                    None => {}
                }
            }
            match signal {
                libc::SIGTRAP if self.is_behind_a_mark(thread) => {
                    self.code = code(self.pid);
                    counts.push(self.region(thread));
                    signal = 0;
                }
                // A thread begins, or has begun one.
                libc::SIGSTOP | CLONED => signal = 0,
                _ => {}
            }
        }
    }

    /// Instruction by instruction to the next mark.
    fn region(&self, thread: libc::pid_t) -> Count {
        let mut count = Count::default();
        let mut signal = 0;
        loop {
            let (at, bytes) = instruction(thread);
            if self.code.iter().any(|code| code.contains(&at)) {
                if bytes[0] == 0xcc {
                    resume(thread, libc::PTRACE_SINGLESTEP, 0);
                    assert_eq!(stopped(thread), (thread, Some(libc::SIGTRAP)));
                    return count;
                }
                count.instructions += 1;
                count.locked += u64::from(is_locked(&bytes));
                count.calls += u64::from(bytes[..2] == [0x0f, 0x05]);
            }
            resume(thread, libc::PTRACE_SINGLESTEP, signal);
            let (_, stopped) = stopped(thread);
            let stopped = stopped.expect("it goes on to the next mark");
            signal = if stopped == libc::SIGTRAP { 0 } else { stopped };
        }
    }

    fn is_behind_a_mark(&self, thread: libc::pid_t) -> bool {
        let (at, _) = instruction(thread);
        bytes(thread, at - 1)[0] == 0xcc && code(self.pid).iter().any(|code| code.contains(&at))
    }
}

/// What `stopped` gives for a thread that has begun another.
const CLONED: i32 = libc::SIGTRAP | libc::PTRACE_EVENT_CLONE << 8;

fn resume(thread: libc::pid_t, how: libc::c_uint, signal: i32) {
    // SAFETY: it is stopped.
    let resumed = unsafe { libc::ptrace(how, thread, null_mut::<u8>(), signal as usize) };
    assert_eq!(resumed, 0, "{}", std::io::Error::last_os_error());
}

/// Waits until a thread stops, -1: any: which, and the signal with its event. `None`: it has ended well.
fn stopped(thread: libc::pid_t) -> (libc::pid_t, Option<i32>) {
    let mut status = 0;
    // SAFETY: threads that this one traces; a place for a number.
    let waited = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
    assert!(waited > 0, "{}", std::io::Error::last_os_error());
    if libc::WIFSTOPPED(status) {
        return (waited, Some(status >> 8));
    }
    let ended_well = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    assert!(ended_well, "{status:#x}");
    (waited, None)
}

/// Address and bytes of a thread's next instruction.
fn instruction(thread: libc::pid_t) -> (u64, [u8; 16]) {
    // SAFETY: a structure of numbers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let place = &raw mut registers;
    // SAFETY: it is stopped; a place for its registers.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, null_mut::<u8>(), place) };
    assert_eq!(got, 0);
    (registers.rip, bytes(thread, registers.rip))
}

fn bytes(thread: libc::pid_t, at: u64) -> [u8; 16] {
    let word = |n: u64| {
        // SAFETY: it is stopped; what cannot be read is -1.
        unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, thread, at + 8 * n, null_mut::<u8>()) }
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&word(0).to_le_bytes());
    bytes[8..].copy_from_slice(&word(1).to_le_bytes());
    bytes
}

/// Where a process has the code of its program and of the C library.
fn code(pid: libc::pid_t) -> Vec<Range<u64>> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).expect("it has a program");
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
    let mut code = Vec::new();
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [range, access, _, _, _, file] = fields[..] else {
            continue;
        };
        let is_ours = file == program.to_string_lossy() || file.contains("/libc.so");
        if is_ours && access.contains('x') {
            let (start, end) = range.split_once('-').expect("a range");
            let address = |text| u64::from_str_radix(text, 16).expect("an address");
            code.push(address(start)..address(end));
        }
    }
    code
}

/// Whether an instruction locks memory: a LOCK prefix, or XCHG with an operand in memory.
fn is_locked(bytes: &[u8; 16]) -> bool {
    const PREFIXES: [u8; 10] = [0x66, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x67];
    let mut rest = bytes
        .iter()
        .copied()
        .skip_while(|byte| PREFIXES.contains(byte));
    let mut next = rest.next().unwrap_or(0);
    if next == 0xf0 {
        return true;
    }
    // REX
    if next & 0xf0 == 0x40 {
        next = rest.next().unwrap_or(0);
    }
    matches!(next, 0x86 | 0x87) && rest.next().is_some_and(|modrm| modrm < 0xc0)
}

#[test]
fn locked_instructions_are_recognised() {
    let known = |bytes: &[u8]| {
        let mut instruction = [0x90; 16];
        instruction[..bytes.len()].copy_from_slice(bytes);
        is_locked(&instruction)
    };
    // lock cmpxchg [rdi], ecx; lock xadd [rax], rdx; xchg [rdi], eax; xchg [r8], rax
    assert!(known(&[0xf0, 0x0f, 0xb1, 0x0f]));
    assert!(known(&[0xf0, 0x48, 0x0f, 0xc1, 0x10]));
    assert!(known(&[0x66, 0xf0, 0x0f, 0xb1, 0x0f]));
    assert!(known(&[0x87, 0x07]));
    assert!(known(&[0x49, 0x87, 0x00]));
    // xchg eax, ebx; mov [rdi], eax; movdir64b
    assert!(!known(&[0x87, 0xc3]));
    assert!(!known(&[0x89, 0x07]));
    assert!(!known(&[0x66, 0x0f, 0x38, 0xf8, 0x02]));
}
