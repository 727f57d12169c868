//! Access to memory of the program that may fault.
//!
//! The instructions that may fault are between two labels. If one does, the handler
//! ([`scratch`](crate::scratch)) continues at a third: the function returns the fault instead of a zero.

use std::arch::global_asm;

global_asm!(
    ".pushsection .text.dray_portal_guarded, \"ax\", @progbits",
    ".p2align 5",
    ".hidden dray_portal_guarded_begin",
    ".hidden dray_portal_guarded_end",
    ".hidden dray_portal_guarded_missed",
    ".hidden dray_portal_copy_line",
    ".hidden dray_portal_copy_bytes",
    ".hidden dray_portal_probe_write",
    ".globl dray_portal_guarded_begin",
    ".globl dray_portal_guarded_end",
    ".globl dray_portal_guarded_missed",
    ".globl dray_portal_copy_line",
    ".globl dray_portal_copy_bytes",
    ".globl dray_portal_probe_write",
    "dray_portal_guarded_begin:",
    // 64 bytes, read completely before the first is written: MOVDIR64B's operands may overlap.
    "dray_portal_copy_line:",
    "movups xmm0, [rsi]",
    "movups xmm1, [rsi + 16]",
    "movups xmm2, [rsi + 32]",
    "movups xmm3, [rsi + 48]",
    "movups [rdi], xmm0",
    "movups [rdi + 16], xmm1",
    "movups [rdi + 32], xmm2",
    "movups [rdi + 48], xmm3",
    "xor eax, eax",
    "ret",
    "dray_portal_copy_bytes:",
    "mov rcx, rdx",
    "rep movsb",
    "xor eax, eax",
    "ret",
    // Writes what is there.
    "dray_portal_probe_write:",
    "lock or byte ptr [rdi], 0",
    "xor eax, eax",
    "ret",
    "dray_portal_guarded_end:",
    // The handler has set rax to the cause and rdx to the address.
    "dray_portal_guarded_missed:",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    pub(crate) static dray_portal_guarded_begin: u8;
    pub(crate) static dray_portal_guarded_end: u8;
    pub(crate) static dray_portal_guarded_missed: u8;
    fn dray_portal_copy_line(to: *mut u64, from: *const u64) -> Missed;
    fn dray_portal_copy_bytes(to: *mut u8, from: *const u8, bytes: usize) -> Missed;
    fn dray_portal_probe_write(at: *mut u8) -> Missed;
}

/// As a pair of registers: all zero if nothing was missed.
#[repr(C)]
#[derive(Clone, Copy)]
struct Missed {
    /// [`MISSED`], the error code of the processor from bit 8, `si_code` above bit 32.
    cause: u64,
    address: u64,
}

/// In [`Missed::cause`]: there is one.
pub(crate) const MISSED: u64 = 1;

/// A fault that the program itself has to answer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// `si_code`.
    pub(crate) code: i32,
    /// `si_addr`.
    pub(crate) address: u64,
    /// Number of the exception.
    pub(crate) exception: u64,
    /// Its error code.
    pub(crate) error: u64,
}

/// General protection.
pub(crate) const GP: u64 = 13;
/// Page fault.
pub(crate) const PF: u64 = 14;
/// `si_code` of what the processor finds and is no page fault.
pub(crate) const SI_KERNEL: i32 = 0x80;

impl Fault {
    /// General protection, as the kernel reports it.
    pub(crate) const PROTECTION: Fault = Fault {
        code: SI_KERNEL,
        address: 0,
        exception: GP,
        error: 0,
    };

    /// A write to a page that is there and may not be written.
    pub(crate) fn read_only(address: u64) -> Fault {
        Fault {
            code: 2, // SEGV_ACCERR
            address,
            exception: PF,
            error: 7, // present, write, user
        }
    }
}

impl Missed {
    #[inline]
    fn result(self) -> Result<(), Fault> {
        match self.cause {
            0 => Ok(()),
            _ => Err(self.fault()),
        }
    }

    #[cold]
    fn fault(self) -> Fault {
        let code = (self.cause >> 32) as i32;
        Fault {
            code,
            address: self.address,
            exception: if code == SI_KERNEL { GP } else { PF },
            error: self.cause >> 8 & 0xff_ffff,
        }
    }
}

/// Copies 64 bytes; reads all of them first.
///
/// # Errors
/// What could not be read or written.
///
/// # Safety
/// [`trap::install`](crate::trap::install) was called. What is written is the program's to write
/// at this point, or `to` lies in an object of the caller.
#[inline]
pub(crate) unsafe fn copy_line(to: u64, from: u64) -> Result<(), Fault> {
    // SAFETY: the caller's promise; what faults is resumed behind it.
    unsafe { dray_portal_copy_line(to as *mut u64, from as *const u64) }.result()
}

/// Copies bytes out of the program's memory.
///
/// # Errors
/// What could not be read.
///
/// # Safety
/// [`trap::install`](crate::trap::install) was called.
pub(crate) unsafe fn read(from: u64, to: &mut [u8]) -> Result<(), Fault> {
    // SAFETY: the destination is a slice of this length; what faults is resumed behind it.
    unsafe { dray_portal_copy_bytes(to.as_mut_ptr(), from as *const u8, to.len()) }.result()
}

/// As [`read`], of so many bytes to a vector in place of what it held. No function of the C library writes them: one
/// that offloads would submit them to the device.
///
/// # Errors
/// What could not be read; the vector is empty then.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn read_to(from: u64, bytes: usize, to: &mut Vec<u8>) -> Result<(), Fault> {
    to.clear();
    to.reserve(bytes);
    // SAFETY: there is room for as many; what faults is resumed behind it.
    unsafe { dray_portal_copy_bytes(to.as_mut_ptr(), from as *const u8, bytes) }.result()?;
    // SAFETY: they have been written.
    unsafe { to.set_len(bytes) };
    Ok(())
}

/// Finds out whether a byte can be written, without changing it.
///
/// # Errors
/// It cannot.
///
/// # Safety
/// [`trap::install`](crate::trap::install) was called.
pub(crate) unsafe fn probe_write(at: u64) -> Result<(), Fault> {
    // SAFETY: the byte keeps its value; what faults is resumed behind it.
    unsafe { dray_portal_probe_write(at as *mut u8) }.result()
}
