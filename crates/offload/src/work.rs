//! What a call writes, and parts of it.

use std::ffi::c_int;

use dray::Operation;
use dray_placement::Piece;

use crate::next;

/// What a call writes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    Copy { to: *mut u8, from: *const u8 },
    Fill { to: *mut u8, byte: c_int },
}

/// A part of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// It has faulted before.
    pub(crate) resumed: bool,
}

impl From<Piece> for Part {
    fn from(piece: Piece) -> Part {
        Part {
            at: piece.offset as usize,
            len: piece.bytes as usize,
            resumed: false,
        }
    }
}

impl Work {
    pub(crate) fn operation(self, part: Part) -> Operation {
        let len = part.len as u32;
        match self {
            Work::Copy { to, from } => {
                let from = from.wrapping_add(part.at).expose_provenance() as u64;
                let to = to.wrapping_add(part.at).expose_provenance() as u64;
                Operation::memmove(from, to, len)
            }
            Work::Fill { to, byte } => {
                let to = to.wrapping_add(part.at).expose_provenance() as u64;
                Operation::fill(u64::from_ne_bytes([byte as u8; 8]), to, len)
            }
        }
    }

    /// # Safety
    /// The part must be in what the caller of the C library's function has promised.
    pub(crate) unsafe fn on_core(self, part: Part) {
        match self {
            Work::Copy { to, from } => {
                let (to, from) = (to.wrapping_add(part.at), from.wrapping_add(part.at));
                // SAFETY: the caller's promise.
                unsafe { next::memmove(to, from, part.len) };
            }
            Work::Fill { to, byte } => {
                let to = to.wrapping_add(part.at);
                // SAFETY: the caller's promise.
                unsafe { next::memset(to, byte, part.len) };
            }
        }
    }

    /// Makes the pages of a part present. Whether all are.
    pub(crate) fn populate(self, part: Part) -> bool {
        let written = |to: *mut u8| {
            let to = to.wrapping_add(part.at);
            populate(to, part.len, libc::MADV_POPULATE_WRITE)
        };
        match self {
            Work::Copy { to, from } => {
                let from = from.wrapping_add(part.at);
                populate(from, part.len, libc::MADV_POPULATE_READ) && written(to)
            }
            Work::Fill { to, .. } => written(to),
        }
    }

    pub(crate) fn destination(self) -> *const u8 {
        match self {
            Work::Copy { to, .. } | Work::Fill { to, .. } => to,
        }
    }
}

/// Makes pages present, where the kernel can (5.14). Whether all are: where one cannot be, the core
/// finds out.
pub(crate) fn populate(start: *const u8, len: usize, advice: c_int) -> bool {
    let first = start.addr() & !4095;
    let end = (start.addr() + len).next_multiple_of(4096);
    // SAFETY: the contents of the pages stay as they are.
    unsafe { libc::syscall(libc::SYS_madvise, first, end - first, advice) == 0 }
}
