//! Vector instructions: which a processor has.

use std::sync::atomic::{AtomicU8, Ordering};

/// How CRCs and guards multiply without carries, from least to most.
#[doc(hidden)]
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Multiplication {
    /// Not at all: by tables.
    None,
    /// 16 bytes at once, by PCLMULQDQ.
    Narrow,
    /// 32 bytes at once, by VPCLMULQDQ and AVX2, where it is of use.
    Half,
    /// 64 bytes at once, by VPCLMULQDQ and AVX-512.
    Wide,
}

impl Multiplication {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Narrow, Self::Half, Self::Wide];
}

static MOST: AtomicU8 = AtomicU8::new(Multiplication::Wide as u8);

/// Has CRCs and guards computed as on a processor with no more than this. For tests and benchmarks: the
/// results are the same. A processor that has less stays with what it has.
#[doc(hidden)]
pub fn multiply_at_most(most: Multiplication) {
    MOST.store(most as u8, Ordering::Relaxed);
}

/// Whether multiplications of this size are to be used, where the processor has them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn may_multiply(size: Multiplication) -> bool {
    MOST.load(Ordering::Relaxed) >= size as u8
}

/// What [`Level::best`] gives, and 1; 0 until it is looked up.
#[cfg(target_arch = "x86_64")]
static KNOWN: AtomicU8 = AtomicU8::new(0);

/// Has all but CRCs and guards done as on a processor whose vectors have no more bytes than this: 16, 32 or 64. For tests and
/// benchmarks, as [`multiply_at_most`].
#[doc(hidden)]
pub fn vectors_at_most(bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    KNOWN.store(Level::detect().at_most(bytes) as u8 + 1, Ordering::Relaxed);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
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

    /// The least of this and what so many bytes at once need.
    #[cfg(target_arch = "x86_64")]
    fn at_most(self, bytes: usize) -> Self {
        match (self, bytes) {
            (Self::Baseline, _) | (_, ..32) => Self::Baseline,
            (Self::Avx2, _) | (_, ..64) => Self::Avx2,
            (Self::Avx512, _) => Self::Avx512,
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
