//! The runtime's functions that programs call before they read memory: a completion record that is read as written is an
//! acquire of what comes before it.
//!
//! A program's reads call these, which stand before the runtime's where that is a shared object. Each goes on to the runtime's
//! by a jump, so that the runtime finds the program's address where it expects it.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::mem::{offset_of, transmute};

use super::pending::{self, resolve};
use super::records::{FILTER, LINES, RECORD, Record, find};
use super::runtime::Runtime;
use crate::next::Next;

const ADDRESS: usize = offset_of!(Next, address);
const _: () = assert!(LINES == 1 << 16 && RECORD == 1 << 5);

/// Looks again at a record that was empty: the fewer reads of the program come after the last look, the better.
const LOOKS: usize = 64;
/// A longer read is none of a record.
const LONGEST: u64 = 4 * RECORD;

/// Whether the program's reads come here. Not in a signal handler.
pub(super) fn are_seen() -> bool {
    // SAFETY: the name is a string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_read1".as_ptr()) };
    address.addr() == __tsan_read1 as *const () as usize
}

/// The program is about to read a range; as [`is_for_runtime`].
extern "C" fn is_range_for_runtime(address: u64, bytes: u64) -> bool {
    resolve(address);
    is_for_runtime(address, bytes)
}

/// The program is about to read; whether the runtime is to know it. Of a record that the device has yet to write it is not:
/// what the program reads is no race.
extern "C" fn is_for_runtime(address: u64, bytes: u64) -> bool {
    let alone = lines(address, bytes).nth(1).is_none();
    lines(address, bytes).fold(true, |all, (line, record)| {
        // SAFETY: there are records where there are portals, and handlers with them.
        let mut looks = (0..LOOKS).map(|_| unsafe { record.is_written(line) });
        let written = looks.any(|written| {
            std::hint::spin_loop();
            written
        });
        match written {
            true => record.seen(),
            false if alone => pending::set(line, record),
            // A thread has one pending record; the others stay polled.
            false => record.begin_poll(),
        }
        all & written
    })
}

/// Whether the device has written all records in a range; a thread has seen those then.
extern "C" fn all_written(address: u64, bytes: u64) -> bool {
    lines(address, bytes).fold(true, |all, (line, record)| {
        // SAFETY: there are records where there are portals, and handlers with them.
        let written = unsafe { record.is_written(line) };
        if written {
            record.seen();
        }
        all & written
    })
}

/// The runtime loads, and judges no race with a device that has yet to write, or has just written.
extern "C" fn load_of_record(address: u64, order: c_int, next: &Next, bytes: u64) -> u64 {
    type Load = unsafe extern "C" fn(u64, c_int) -> u64;
    // SAFETY: it is null or the function of that name; of a shorter value the rest is not looked at.
    let load: Option<Load> = unsafe { transmute(next.address()) };
    let (Some(load), Some(runtime)) = (load, Runtime::get()) else {
        unreachable!("records are entered by way of the runtime");
    };
    // SAFETY: of this thread, which heeds accesses again below.
    unsafe { (runtime.ignore)() };
    // SAFETY: the program's own call.
    let value = unsafe { load(address, order) };
    // SAFETY: it ends what was begun above.
    unsafe { (runtime.heed)() };
    all_written(address, bytes);
    value
}

/// Records in a range.
fn lines(address: u64, bytes: u64) -> impl Iterator<Item = (u64, &'static Record)> {
    let bytes = if bytes > LONGEST { 0 } else { bytes };
    let (first, end) = (address & !(RECORD - 1), address.wrapping_add(bytes));
    let lines = (first..end).step_by(RECORD as usize);
    lines.filter_map(|line| Some((line, find(line)?)))
}

/// The runtime's function.
pub(super) extern "C" fn look_up(next: &Next) -> usize {
    next.address()
}

/// Functions with an address, which read so many bytes; without a number as many as the second argument says.
macro_rules! reads {
    ($($name:ident $next:ident $text:literal $size:literal;)*) => {$(
        static $next: Next = Next::new($text);

        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// Called by instrumented code.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(_: *const c_void) {
            naked_asm!(
                "endbr64",
                "mov rax, qword ptr [rip + dray_tsan_pending@GOTTPOFF]",
                "cmp qword ptr fs:[rax], 0",
                "jne 6f",
                "7:",
                "mov eax, edi",
                "shr eax, 5",
                "movzx eax, ax",
                "lea rcx, [rip + {filter}]",
                "cmp byte ptr [rcx + rax], 0",
                "jne 3f",
                "2:",
                "mov rax, [rip + {next} + {address}]",
                "test rax, rax",
                "jz 4f",
                "jmp rax",
                "3:",
                "push rdi",
                concat!("mov esi, ", $size),
                "call {is_for_runtime}",
                "pop rdi",
                "test al, al",
                "jnz 2b",
                "ret",
                "4:",
                "push rdi",
                "lea rdi, [rip + {next}]",
                "call {look_up}",
                "pop rdi",
                "test rax, rax",
                "jz 5f",
                "jmp rax",
                "5:",
                "ret",
                "6:",
                "push rdi",
                "call {resolve}",
                "pop rdi",
                "jmp 7b",
                filter = sym FILTER,
                next = sym $next,
                address = const ADDRESS,
                is_for_runtime = sym is_for_runtime,
                look_up = sym look_up,
                resolve = sym resolve,
            )
        }
    )*};
}

reads! {
    __tsan_read1 READ1 c"__tsan_read1" "1";
    __tsan_read2 READ2 c"__tsan_read2" "2";
    __tsan_read4 READ4 c"__tsan_read4" "4";
    __tsan_read8 READ8 c"__tsan_read8" "8";
    __tsan_read16 READ16 c"__tsan_read16" "16";
    __tsan_unaligned_read2 UNALIGNED2 c"__tsan_unaligned_read2" "2";
    __tsan_unaligned_read4 UNALIGNED4 c"__tsan_unaligned_read4" "4";
    __tsan_unaligned_read8 UNALIGNED8 c"__tsan_unaligned_read8" "8";
    __tsan_unaligned_read16 UNALIGNED16 c"__tsan_unaligned_read16" "16";
}

static READ_RANGE: Next = Next::new(c"__tsan_read_range");

/// `__tsan_read_range`.
///
/// # Safety
/// Called by instrumented code.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_read_range(_: *const c_void, _: usize) {
    naked_asm!(
        "endbr64",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {is_range_for_runtime}",
        "mov rsi, [rsp + 8]",
        "mov rdi, [rsp + 16]",
        "test al, al",
        "jz 2f",
        "lea rdi, [rip + {next}]",
        "call {look_up}",
        "mov rsi, [rsp + 8]",
        "mov rdi, [rsp + 16]",
        "test rax, rax",
        "jz 2f",
        "add rsp, 24",
        "jmp rax",
        "2:",
        "add rsp, 24",
        "ret",
        next = sym READ_RANGE,
        is_range_for_runtime = sym is_range_for_runtime,
        look_up = sym look_up,
    )
}

/// Atomic loads. Whether a record was written is asked after the runtime has loaded from it.
macro_rules! loads {
    ($($name:ident $next:ident $text:literal $type:ty, $size:literal;)*) => {$(
        static $next: Next = Next::new($text);

        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// Called by instrumented code.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(_: *const c_void, _: c_int) -> $type {
            naked_asm!(
                "endbr64",
                "mov rax, qword ptr [rip + dray_tsan_pending@GOTTPOFF]",
                "cmp qword ptr fs:[rax], 0",
                "jne 6f",
                "7:",
                "mov eax, edi",
                "shr eax, 5",
                "movzx eax, ax",
                "lea rcx, [rip + {filter}]",
                "cmp byte ptr [rcx + rax], 0",
                "jne 3f",
                "2:",
                "mov rax, [rip + {next} + {address}]",
                "test rax, rax",
                "jz 4f",
                "jmp rax",
                "3:",
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                concat!("mov esi, ", $size),
                "call {all_written}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "test al, al",
                "jnz 2b",
                "lea rdx, [rip + {next}]",
                concat!("mov ecx, ", $size),
                "jmp {load_of_record}",
                "4:",
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                "lea rdi, [rip + {next}]",
                "call {look_up}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                "6:",
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                "call {resolve}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "jmp 7b",
                filter = sym FILTER,
                next = sym $next,
                address = const ADDRESS,
                all_written = sym all_written,
                load_of_record = sym load_of_record,
                look_up = sym look_up,
                resolve = sym resolve,
            )
        }
    )*};
}

loads! {
    __tsan_atomic8_load LOAD8 c"__tsan_atomic8_load" u8, "1";
    __tsan_atomic16_load LOAD16 c"__tsan_atomic16_load" u16, "2";
    __tsan_atomic32_load LOAD32 c"__tsan_atomic32_load" u32, "4";
    __tsan_atomic64_load LOAD64 c"__tsan_atomic64_load" u64, "8";
}
