//! Bases of the segments that have one.

use crate::decode::Segment;
use crate::syscall::syscall;

const ARCH_GET_FS: usize = 0x1003;
const ARCH_GET_GS: usize = 0x1004;

/// The base of a segment in this thread. By a system call, for RDFSBASE needs a kernel that allows
/// it, and no known program addresses descriptors in this way.
#[cold]
pub(crate) fn base(segment: Segment) -> u64 {
    let code = match segment {
        Segment::Flat => return 0,
        Segment::Fs => ARCH_GET_FS,
        Segment::Gs => ARCH_GET_GS,
    };
    let mut base = 0u64;
    // SAFETY: the call writes one word.
    let answer = unsafe {
        syscall(
            libc::SYS_arch_prctl,
            [code, (&raw mut base).addr(), 0, 0, 0, 0],
        )
    };
    debug_assert!(answer.is_ok());
    base
}
