//! Vector registers of the program, of which a stub saves those of SSE alone: the runtime calls the C library's functions.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{_xrstor64, _xsave64};
use std::mem::MaybeUninit;

/// AVX, and the three parts of AVX-512 (SDM, volume 1, 13.1).
const PARTS: u64 = 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7;
/// Where these end in the standard format, rounded up (SDM, volume 1, 13.4, and CPUID leaf 13).
const BYTES: usize = 2816;
/// Where the header of 64 bytes begins, and all that XRSTOR reads of the rest is within what XSAVE writes.
const HEADER: usize = 512;

#[repr(C, align(64))]
struct Area([MaybeUninit<u8>; BYTES]);

/// What they hold.
pub(super) struct Vectors(Option<Area>);

impl Vectors {
    pub(super) fn save() -> Vectors {
        if !is_x86_feature_detected!("xsave") {
            return Vectors(None);
        }
        let mut area = Area([MaybeUninit::uninit(); BYTES]);
        area.0[HEADER..HEADER + 64].fill(MaybeUninit::new(0));
        // SAFETY: the processor has it; it writes these parts, of those that the system has enabled.
        unsafe { save(&mut area) };
        Vectors(Some(area))
    }

    pub(super) fn restore(&self) {
        if let Some(area) = &self.0 {
            // SAFETY: as it was saved.
            unsafe { restore(area) };
        }
    }
}

#[target_feature(enable = "xsave")]
unsafe fn save(area: &mut Area) {
    // SAFETY: there is room, and it is aligned.
    unsafe { _xsave64(area.0.as_mut_ptr().cast(), PARTS) };
}

#[target_feature(enable = "xsave")]
unsafe fn restore(area: &Area) {
    // SAFETY: a saved state.
    unsafe { _xrstor64(area.0.as_ptr().cast(), PARTS) };
}
