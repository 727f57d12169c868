//! The instructions that submit descriptors.

use dray_spec::Descriptor;

/// MOVDIR64B: 64 bytes in one posted write.
///
/// # Safety
/// `portal` must be a mapped portal, aligned to 64 bytes, and the processor must have the
/// instruction (or an emulation of it).
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) unsafe fn movdir64b(portal: *mut u8, descriptor: &Descriptor) {
    // SAFETY: by the caller's promise; the source is a whole descriptor.
    unsafe {
        core::arch::asm!(
            "movdir64b {to}, [{from}]",
            to = in(reg) portal,
            from = in(reg) core::ptr::from_ref(descriptor),
            options(nostack, preserves_flags),
        );
    }
}

/// ENQCMD: 64 bytes in one write that is answered. True if the device has accepted them.
///
/// # Safety
/// As [`movdir64b`].
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) unsafe fn enqcmd(portal: *mut u8, descriptor: &Descriptor) -> bool {
    let retry: u8;
    // SAFETY: by the caller's promise; the source is a whole descriptor.
    unsafe {
        core::arch::asm!(
            "enqcmd {to}, [{from}]",
            "setz {retry}",
            to = in(reg) portal,
            from = in(reg) core::ptr::from_ref(descriptor),
            retry = out(reg_byte) retry,
            options(nostack),
        );
    }
    retry == 0
}

/// Makes stores visible before what is submitted next: MOVDIR64B is weakly ordered.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn store_fence() {
    // SAFETY: in the instruction set of x86-64, without operands.
    unsafe { core::arch::x86_64::_mm_sfence() };
}
