//! Shared by the tests: a portal that records descriptors, memory for code, a way to run it.

#![allow(dead_code, reason = "each test uses its part")]

use std::arch::naked_asm;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dray_portal::{Caller, Portal, Registers, Submit, Words};

/// Remembers the last descriptors, and counts.
pub(crate) struct Log {
    words: [[AtomicU64; 8]; 64],
    posted: AtomicUsize,
    enqueued: AtomicUsize,
    pub(crate) full: AtomicBool,
    pub(crate) unmapped: AtomicUsize,
}

impl Log {
    pub(crate) const fn new() -> Log {
        Log {
            words: [const { [const { AtomicU64::new(0) }; 8] }; 64],
            posted: AtomicUsize::new(0),
            enqueued: AtomicUsize::new(0),
            full: AtomicBool::new(false),
            unmapped: AtomicUsize::new(0),
        }
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        let get = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (get(&self.posted), get(&self.enqueued))
    }

    /// The last one.
    pub(crate) fn last(&self) -> Words {
        let (posted, enqueued) = self.counts();
        let entry = &self.words[(posted + enqueued - 1) % 64];
        std::array::from_fn(|i| entry[i].load(Ordering::SeqCst))
    }

    fn note(&self, count: &AtomicUsize, words: &Words) {
        let (posted, enqueued) = self.counts();
        let entry = &self.words[(posted + enqueued) % 64];
        for (place, word) in entry.iter().zip(words) {
            place.store(*word, Ordering::SeqCst);
        }
        count.fetch_add(1, Ordering::SeqCst);
    }
}

impl Submit for Log {
    fn post(&self, words: &Words, _: Caller<'_>) {
        self.note(&self.posted, words);
    }

    fn enqueue(&self, words: &Words, _: Caller<'_>) -> bool {
        let accepted = !self.full.load(Ordering::SeqCst);
        if accepted {
            self.note(&self.enqueued, words);
        }
        accepted
    }

    fn unmapped(&self) {
        self.unmapped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Maps `submit`.
pub(crate) fn map(submit: &'static dyn Submit) -> usize {
    let protection = libc::PROT_WRITE;
    dray_portal::mapping::map(
        0,
        4096,
        protection,
        libc::MAP_SHARED,
        None,
        Portal::leak(submit),
    )
    .expect("a page")
}

/// New memory that may be written and executed.
pub(crate) fn code(bytes: usize) -> usize {
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new pages.
    let pages = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert_ne!(pages, libc::MAP_FAILED);
    pages.addr()
}

/// Writes an instruction, and behind it the jump that ends a [`run`].
pub(crate) fn place(at: usize, instruction: &[u8]) -> usize {
    let mut bytes = instruction.to_vec();
    bytes.extend([0xff, 0x25, 0, 0, 0, 0]); // jmp [rip]
    bytes.extend((back as *const () as usize).to_le_bytes());
    // SAFETY: the caller has mapped it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
    bytes.len().next_multiple_of(16)
}

static STATE: AtomicUsize = AtomicUsize::new(0);
static CODE: AtomicUsize = AtomicUsize::new(0);
static STACK: AtomicUsize = AtomicUsize::new(0);
static RAX: AtomicUsize = AtomicUsize::new(0);
static RUNNING: Mutex<()> = Mutex::new(());

/// One run at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Executes what was [placed](place) with these registers, rsp included.
pub(crate) fn run(registers: &mut Registers, code: usize) {
    // SAFETY: the code ends in the jump back, and the registers point at memory of the test.
    unsafe { enter(registers, code) };
}

#[unsafe(naked)]
unsafe extern "C" fn enter(registers: *mut Registers, code: usize) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rip + {stack}], rsp",
        "mov [rip + {state}], rdi",
        "mov [rip + {code}], rsi",
        "mov rax, rdi",
        "push qword ptr [rax + 128]",
        "popfq",
        "mov rcx, [rax + 8]",
        "mov rdx, [rax + 16]",
        "mov rbx, [rax + 24]",
        "mov rsp, [rax + 32]",
        "mov rbp, [rax + 40]",
        "mov rsi, [rax + 48]",
        "mov rdi, [rax + 56]",
        "mov r8, [rax + 64]",
        "mov r9, [rax + 72]",
        "mov r10, [rax + 80]",
        "mov r11, [rax + 88]",
        "mov r12, [rax + 96]",
        "mov r13, [rax + 104]",
        "mov r14, [rax + 112]",
        "mov r15, [rax + 120]",
        "mov rax, [rax]",
        "jmp qword ptr [rip + {code}]",
        stack = sym STACK,
        state = sym STATE,
        code = sym CODE,
    )
}

#[unsafe(naked)]
unsafe extern "C" fn back() {
    naked_asm!(
        "mov [rip + {rax}], rax",
        "mov rax, [rip + {state}]",
        "mov [rax + 8], rcx",
        "mov [rax + 16], rdx",
        "mov [rax + 24], rbx",
        "mov [rax + 32], rsp",
        "mov [rax + 40], rbp",
        "mov [rax + 48], rsi",
        "mov [rax + 56], rdi",
        "mov [rax + 64], r8",
        "mov [rax + 72], r9",
        "mov [rax + 80], r10",
        "mov [rax + 88], r11",
        "mov [rax + 96], r12",
        "mov [rax + 104], r13",
        "mov [rax + 112], r14",
        "mov [rax + 120], r15",
        "mov rsp, [rip + {stack}]",
        "pushfq",
        "pop qword ptr [rax + 128]",
        "mov rcx, [rip + {rax}]",
        "mov [rax], rcx",
        "cld",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        stack = sym STACK,
        state = sym STATE,
        rax = sym RAX,
    )
}

/// MOVDIR64B [rdi], [rsi], as a function that is patched when it is first called.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn movdir64b(to: usize, from: *const Words) {
    naked_asm!(".byte 0x66, 0x0f, 0x38, 0xf8, 0x3e", "ret")
}

/// ENQCMD [rdi], [rsi]; whether it is to be tried again.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enqcmd(to: usize, from: *const Words) -> bool {
    naked_asm!(".byte 0xf2, 0x0f, 0x38, 0xf8, 0x3e", "setz al", "ret")
}
