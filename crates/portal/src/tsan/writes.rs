//! The runtime's functions that programs call before they write memory, and where a function ends. A thread that comes here
//! has read the record that it looked at (`pending`): the memory that it gives back next is no longer the device's.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::mem::offset_of;

use super::pending::resolve;
use super::reads::look_up;
use crate::next::Next;

const ADDRESS: usize = offset_of!(Next, address);

/// Functions with an address and perhaps a number of bytes; `$address` makes one where there is none.
macro_rules! writes {
    ($($name:ident $next:ident $text:literal $($address:literal)?;)*) => {$(
        static $next: Next = Next::new($text);

        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// Called by instrumented code.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(_: *mut c_void, _: usize) {
            naked_asm!(
                "endbr64",
                "mov rax, qword ptr [rip + dray_tsan_pending@GOTTPOFF]",
                "cmp qword ptr fs:[rax], 0",
                "jne 3f",
                "mov rax, [rip + {next} + {address}]",
                "test rax, rax",
                "jz 3f",
                "jmp rax",
                "3:",
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                $($address,)?
                "call {resolve}",
                "lea rdi, [rip + {next}]",
                "call {look_up}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "test rax, rax",
                "jz 4f",
                "jmp rax",
                "4:",
                "ret",
                next = sym $next,
                address = const ADDRESS,
                resolve = sym resolve,
                look_up = sym look_up,
            )
        }
    )*};
}

writes! {
    __tsan_write1 WRITE1 c"__tsan_write1";
    __tsan_write2 WRITE2 c"__tsan_write2";
    __tsan_write4 WRITE4 c"__tsan_write4";
    __tsan_write8 WRITE8 c"__tsan_write8";
    __tsan_write16 WRITE16 c"__tsan_write16";
    __tsan_unaligned_write2 UNALIGNED2 c"__tsan_unaligned_write2";
    __tsan_unaligned_write4 UNALIGNED4 c"__tsan_unaligned_write4";
    __tsan_unaligned_write8 UNALIGNED8 c"__tsan_unaligned_write8";
    __tsan_unaligned_write16 UNALIGNED16 c"__tsan_unaligned_write16";
    __tsan_write_range WRITE_RANGE c"__tsan_write_range";
    __tsan_func_exit FUNC_EXIT c"__tsan_func_exit" "xor edi, edi";
}
