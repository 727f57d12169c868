//! Vector instructions: which a processor has.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::AtomicU8;
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
    /// The most that this processor has, which is looked up once.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn best() -> Self {
        static KNOWN: AtomicU8 = AtomicU8::new(0);
        match KNOWN.load(Ordering::Relaxed) {
            0 => {
                let best = Self::detect();
                KNOWN.store(best as u8 + 1, Ordering::Relaxed);
                best
            }
            known if known == Self::Avx512 as u8 + 1 => Self::Avx512,
            known if known == Self::Avx2 as u8 + 1 => Self::Avx2,
            _ => Self::Baseline,
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[cold]
    fn detect() -> Self {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            Self::Avx512
        } else if is_x86_feature_detected!("avx2") {
            Self::Avx2
        } else {
            Self::Baseline
        }
    }

    /// The only one.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn best() -> Self {
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
