//! The C library's own calls of write: what its streams hold is written by them.
//!
//! A shell's `echo 8 >size`, tee and all that uses stdio write that way, and no symbol is looked up
//! for it. So the C library's write is made to lead here as well.

use crate::next;
use crate::patch::Memory;
use crate::stub::jump;

/// Has the C library's write continue at `target`. Where that cannot be, programs that use streams
/// change what they see of an attribute, and nothing else: that is said.
pub(crate) fn lead(target: u64) {
    if change(target).is_none() {
        let text = "dray: attributes cannot be written by streams in this program\n";
        let arguments = [2, text.as_ptr().addr(), text.len(), 0, 0, 0];
        // SAFETY: a text.
        let _ = unsafe { crate::syscall::syscall(libc::SYS_write, arguments) };
    }
}

/// In a process with one thread: no other thread executes the function meanwhile.
fn change(target: u64) -> Option<()> {
    let single = next::of_libc(c"__libc_single_threaded")?;
    // SAFETY: a byte of that name (`sys/single_threaded.h`).
    if unsafe { std::ptr::with_exposed_provenance::<u8>(single).read_volatile() } == 0 {
        return None;
    }
    let write = next::of_libc(c"write")? as u64;
    let code = jump(write, target)?;
    Memory::open()?.write(write, &code)
}
