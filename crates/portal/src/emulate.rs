//! The writes of 64 bytes: MOVDIR64B, ENQCMD, ENQCMDS.

use crate::checker;
use crate::decode::Mnemonic;
use crate::guarded::{Fault, copy_line, probe_write};
use crate::process::process;
use crate::submit::Caller;

/// How an instruction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineWrite {
    /// Done; it leaves the flags alone.
    Silent,
    /// Done; the zero flag says whether it is to be tried again.
    Answered {
        /// The device took it.
        accepted: bool,
    },
    /// It did not take place.
    Fault(Fault),
}

/// Writes the 64 bytes at `from` to `to`, a portal or any other memory.
///
/// # Safety
/// [`trap::install`](crate::trap::install) was called, and the program executes such an
/// instruction with these operands.
#[inline]
pub(crate) unsafe fn write_line(
    kind: Mnemonic,
    to: u64,
    from: u64,
    caller: Caller<'_>,
) -> LineWrite {
    // ENQCMDS is the kernel's; no 64 bytes cross a line.
    if kind == Mnemonic::Enqcmds || to & 63 != 0 {
        return LineWrite::Fault(Fault::PROTECTION);
    }
    let mut words = [0u64; 8];
    // SAFETY: the words are ours to write.
    if let Err(fault) = unsafe { copy_line((&raw mut words).addr() as u64, from) } {
        return LineWrite::Fault(fault);
    }
    // The processor fills in PASID and privilege, and refuses what is there already (SDM, ENQCMD).
    if kind == Mnemonic::Enqcmd && words[0] as u32 != 0 {
        return LineWrite::Fault(Fault::PROTECTION);
    }
    let Some(mapped) = process().and_then(|process| process.table.find(to)) else {
        // SAFETY: the program's own write.
        return unsafe { write_memory(kind, to, &words) };
    };
    if !mapped.writable {
        return LineWrite::Fault(Fault::read_only(to));
    }
    checker::submitted(&words);
    let submit = mapped.portal.submit();
    match kind {
        Mnemonic::Enqcmd => {
            let accepted = submit.enqueue(&words, caller);
            LineWrite::Answered { accepted }
        }
        _ => {
            submit.post(&words, caller);
            LineWrite::Silent
        }
    }
}

/// # Safety
/// The program writes these words there.
#[cold]
unsafe fn write_memory(kind: Mnemonic, to: u64, words: &[u64; 8]) -> LineWrite {
    let result = match kind {
        // Memory is no device that could accept it: nothing is written.
        Mnemonic::Enqcmd => {
            // SAFETY: as the caller promises.
            unsafe { probe_write(to) }.map(|()| LineWrite::Answered { accepted: false })
        }
        // SAFETY: as the caller promises.
        _ => unsafe { copy_line(to, words.as_ptr().addr() as u64) }.map(|()| LineWrite::Silent),
    };
    result.unwrap_or_else(LineWrite::Fault)
}
