//! The functions that programs call.
//!
//! Below its limit a call is a compare and a jump to the next function of that name. The limit is 0
//! until this library is ready, and all else here is relative to the instruction, so a call before
//! this library has been relocated (from an IFUNC resolver, say) finds its way too: to a plain
//! function of its own.
//!
//! The linker gets `--wrap`: what this library itself calls goes to the `__wrap_` functions, so
//! that its copies are never offloaded.

use std::arch::{global_asm, naked_asm};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::Call;
use crate::{execute, next, runtime};

/// From so many bytes on a call does not jump to the next function.
static MEMCPY_LIMIT: AtomicUsize = AtomicUsize::new(0);
static MEMMOVE_LIMIT: AtomicUsize = AtomicUsize::new(0);
static MEMSET_LIMIT: AtomicUsize = AtomicUsize::new(0);
static MEMCMP_LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Sets the limit of a call, in bytes.
pub(crate) fn set_limit(call: Call, bytes: usize) {
    let limit = match call {
        Call::Memcpy => &MEMCPY_LIMIT,
        Call::Memmove => &MEMMOVE_LIMIT,
        Call::Memset => &MEMSET_LIMIT,
        Call::Memcmp => &MEMCMP_LIMIT,
    };
    limit.store(bytes, Ordering::Release);
}

/// A function that goes on to `$next` below its limit, and to `$large` otherwise, with the return
/// address as one argument more.
macro_rules! entry {
    ($name:ident, $limit:ident, $next:ident, $large:ident, $early:literal, $site:literal) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "cmp rdx, qword ptr [rip + {limit}]",
                "jae 2f",
                "jmp qword ptr [rip + {next}]",
                "2:",
                "cmp qword ptr [rip + {ready}], 0",
                concat!("je ", $early),
                concat!("mov ", $site, ", qword ptr [rsp]"),
                "jmp {large}",
                limit = sym $limit,
                next = sym next::$next,
                ready = sym next::MEMCPY,
                large = sym $large,
            )
        }
    };
}

entry!(
    memcpy,
    MEMCPY_LIMIT,
    MEMCPY,
    large_memcpy,
    "dray_early_move",
    "rcx"
);
entry!(
    memmove,
    MEMMOVE_LIMIT,
    MEMMOVE,
    large_memmove,
    "dray_early_move",
    "rcx"
);
entry!(
    memset,
    MEMSET_LIMIT,
    MEMSET,
    large_memset,
    "dray_early_set",
    "rcx"
);
entry!(
    memcmp,
    MEMCMP_LIMIT,
    MEMCMP,
    large_memcmp,
    "dray_early_compare",
    "rcx"
);
entry!(
    __memcpy_chk,
    MEMCPY_LIMIT,
    MEMCPY_CHK,
    large_memcpy_chk,
    "dray_early_move_chk",
    "r8"
);
entry!(
    __memmove_chk,
    MEMMOVE_LIMIT,
    MEMMOVE_CHK,
    large_memmove_chk,
    "dray_early_move_chk",
    "r8"
);
entry!(
    __memset_chk,
    MEMSET_LIMIT,
    MEMSET_CHK,
    large_memset_chk,
    "dray_early_set_chk",
    "r8"
);

// Functions for the time before this library is ready, and what its own calls go to. None of them
// needs a relocation.
global_asm!(
    ".text",
    ".p2align 4",
    "dray_early_move_chk:",
    "cmp rcx, rdx",
    "jb dray_early_overflow",
    "dray_early_move:",
    "mov rax, rdi",
    "mov rcx, rdi",
    "sub rcx, rsi",
    "cmp rcx, rdx",
    "mov rcx, rdx",
    "jb 2f",
    "rep movsb",
    "ret",
    "2:",
    "lea rdi, [rdi + rdx - 1]",
    "lea rsi, [rsi + rdx - 1]",
    "std",
    "rep movsb",
    "cld",
    "ret",
    "dray_early_set_chk:",
    "cmp rcx, rdx",
    "jb dray_early_overflow",
    "dray_early_set:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    "dray_early_compare:",
    "xor ecx, ecx",
    "3:",
    "cmp rcx, rdx",
    "jae 4f",
    "movzx eax, byte ptr [rdi + rcx]",
    "movzx r8d, byte ptr [rsi + rcx]",
    "inc rcx",
    "sub eax, r8d",
    "je 3b",
    "ret",
    "4:",
    "xor eax, eax",
    "ret",
    "dray_early_overflow:",
    "ud2",
    ".globl __wrap_memcpy",
    ".hidden __wrap_memcpy",
    ".type __wrap_memcpy, @function",
    "__wrap_memcpy:",
    ".globl __wrap_memmove",
    ".hidden __wrap_memmove",
    ".type __wrap_memmove, @function",
    "__wrap_memmove:",
    "mov rax, qword ptr [rip + {memmove}]",
    "test rax, rax",
    "je dray_early_move",
    "jmp rax",
    ".globl __wrap_memset",
    ".hidden __wrap_memset",
    ".type __wrap_memset, @function",
    "__wrap_memset:",
    "mov rax, qword ptr [rip + {memset}]",
    "test rax, rax",
    "je dray_early_set",
    "jmp rax",
    ".globl __wrap_memcmp",
    ".hidden __wrap_memcmp",
    ".type __wrap_memcmp, @function",
    "__wrap_memcmp:",
    "mov rax, qword ptr [rip + {memcmp}]",
    "test rax, rax",
    "je dray_early_compare",
    "jmp rax",
    memmove = sym next::MEMMOVE,
    memset = sym next::MEMSET,
    memcmp = sym next::MEMCMP,
);

/// # Safety
/// As memcpy(3).
unsafe extern "C" fn large_memcpy(
    to: *mut u8,
    from: *const u8,
    len: usize,
    site: usize,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { execute::copy(runtime::get(), Call::Memcpy, to, from, len, site) };
    to
}

/// # Safety
/// As memmove(3).
unsafe extern "C" fn large_memmove(
    to: *mut u8,
    from: *const u8,
    len: usize,
    site: usize,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { execute::copy(runtime::get(), Call::Memmove, to, from, len, site) };
    to
}

/// # Safety
/// As memset(3).
unsafe extern "C" fn large_memset(to: *mut u8, byte: c_int, len: usize, site: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { execute::fill(runtime::get(), to, byte, len, site) };
    to
}

/// # Safety
/// As memcmp(3).
unsafe extern "C" fn large_memcmp(a: *const u8, b: *const u8, len: usize, site: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { execute::compare(runtime::get(), a, b, len, site) }
}

type Checked = unsafe extern "C" fn(*mut u8, *const u8, usize, usize) -> *mut u8;

/// The next function, which ends the program: the destination is too small.
///
/// # Safety
/// As that function.
unsafe fn overflow(next: &AtomicUsize, to: *mut u8, from: *const u8, len: usize, room: usize) {
    let address = next.load(Ordering::Relaxed);
    let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: a function of that form: it is ready.
    let next = unsafe { std::mem::transmute::<*const c_void, Checked>(pointer) };
    // SAFETY: the caller's promise.
    unsafe { next(to, from, len, room) };
}

/// # Safety
/// As memcpy(3), with the room at the destination.
unsafe extern "C" fn large_memcpy_chk(
    to: *mut u8,
    from: *const u8,
    len: usize,
    room: usize,
    site: usize,
) -> *mut u8 {
    if room < len {
        // SAFETY: the caller's promise.
        unsafe { overflow(&next::MEMCPY_CHK, to, from, len, room) };
    }
    // SAFETY: the caller's promise.
    unsafe { large_memcpy(to, from, len, site) }
}

/// # Safety
/// As memmove(3), with the room at the destination.
unsafe extern "C" fn large_memmove_chk(
    to: *mut u8,
    from: *const u8,
    len: usize,
    room: usize,
    site: usize,
) -> *mut u8 {
    if room < len {
        // SAFETY: the caller's promise.
        unsafe { overflow(&next::MEMMOVE_CHK, to, from, len, room) };
    }
    // SAFETY: the caller's promise.
    unsafe { large_memmove(to, from, len, site) }
}

/// # Safety
/// As memset(3), with the room at the destination.
unsafe extern "C" fn large_memset_chk(
    to: *mut u8,
    byte: c_int,
    len: usize,
    room: usize,
    site: usize,
) -> *mut u8 {
    if room < len {
        let from = std::ptr::without_provenance(byte as usize);
        // SAFETY: the caller's promise; the byte is in the second argument's register.
        unsafe { overflow(&next::MEMSET_CHK, to, from, len, room) };
    }
    // SAFETY: the caller's promise.
    unsafe { large_memset(to, byte, len, site) }
}
