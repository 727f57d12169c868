//! From how many bytes on a device executes.

use crate::{PAGE, Reason};

/// From how many bytes on a device executes; the CPU does what is below.
///
/// ```
/// use dray_placement::{Reason, Threshold};
///
/// assert_eq!(Threshold::bytes(4096).reason(4095), Some(Reason::BelowThreshold));
/// assert_eq!(Threshold::bytes(4096).reason(4096), None);
/// // A page that is begun counts: 4097 bytes are two.
/// assert_eq!(Threshold::pages(2).reason(4097), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    from: u64,
}

impl Threshold {
    /// From so many bytes on; 0: always a device.
    #[inline]
    pub const fn bytes(from: u64) -> Threshold {
        Threshold { from }
    }

    /// From so many base pages on, of which the last need not be whole.
    #[inline]
    pub const fn pages(from: u64) -> Threshold {
        let from = match from {
            0 => 0,
            from => (from - 1).saturating_mul(PAGE).saturating_add(1),
        };
        Threshold { from }
    }

    /// Why the CPU executes a request of `len` bytes, as far as its size says.
    #[inline]
    pub const fn reason(self, len: u64) -> Option<Reason> {
        match len < self.from {
            true => Some(Reason::BelowThreshold),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_rounded_up() {
        for pages in [0, 1, 2, 12, 1 << 20] {
            for len in [0_u64, 1, 4095, 4096, 4097, 45_056, 45_057, 49_152, 1 << 32] {
                let below = len.div_ceil(PAGE) < pages;
                let said = Threshold::pages(pages).reason(len).is_some();
                assert_eq!(said, below, "{len} bytes of {pages} pages");
            }
        }
        assert!(Threshold::pages(u64::MAX).reason(u64::MAX - 1).is_some());
    }
}
