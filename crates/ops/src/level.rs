//! Vector instructions: which a processor has.

use std::sync::atomic::{AtomicBool, Ordering};

static WITHOUT_VPCLMULQDQ: AtomicBool = AtomicBool::new(false);

/// Has CRCs and guards computed as on a processor without VPCLMULQDQ, or again as on this one. For tests
/// and benchmarks: the results are the same.
#[doc(hidden)]
pub fn leave_out_vpclmulqdq(yes: bool) {
    WITHOUT_VPCLMULQDQ.store(yes, Ordering::Relaxed);
}

/// Whether carry-less multiplications of 64 bytes are to be used.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_vpclmulqdq() -> bool {
    is_x86_feature_detected!("vpclmulqdq") && !WITHOUT_VPCLMULQDQ.load(Ordering::Relaxed)
}

/// Sets of vector instructions, from least to most.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What every processor of the architecture has.
    Baseline,
    /// 32 bytes at once.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64 bytes at once.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The most that this processor has.
    #[inline]
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            return Self::Avx512;
        } else if is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Baseline
    }

    /// All that this processor has.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let levels = [
            Self::Baseline,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512,
        ];
        let best = levels.iter().position(|level| *level == Self::best());
        levels[..=best.expect("one of them")].to_vec()
    }
}
