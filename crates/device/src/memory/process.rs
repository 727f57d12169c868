//! Memory of this process, by its own addresses.

use std::ptr::{self, with_exposed_provenance, with_exposed_provenance_mut};
use std::slice;
use std::sync::Arc;

use super::{Access, Memory};

/// Which addresses can be accessed: what IOMMU and page tables are to a device.
///
/// A page that is not accessible is a page fault, as on hardware.
pub trait Translation: Send + Sync + 'static {
    /// Bytes from `addr` on, at most `len`, that can be accessed before the first page fault.
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64;
}

impl<S: Translation> Translation for Arc<S> {
    #[inline]
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        S::accessible(self, addr, len, access)
    }
}

/// Every address can be accessed: the submitter vouches for what a descriptor names.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllAccessible;

impl Translation for AllAccessible {
    #[inline]
    fn accessible(&self, _: u64, len: u64, _: Access) -> u64 {
        len
    }
}

/// Whether [`ProcessMemory`] evicts lines from caches: a process may use the processor's instruction for it.
pub const CAN_FLUSH: bool = cfg!(target_arch = "x86_64");

/// Memory of this process, by its own addresses.
#[derive(Debug, Clone)]
pub struct ProcessMemory<S> {
    space: S,
}

impl<S: Translation> ProcessMemory<S> {
    /// What `space` says can be accessed.
    ///
    /// # Safety
    /// As long as a device works on it: what `space` calls accessible is mapped, and writable if it
    /// says so; what a descriptor that was submitted reads is not written, and what it writes is not
    /// accessed, until its completion record has been seen. That includes the record itself, but for
    /// its status byte, which may be read as an atomic.
    #[inline]
    pub unsafe fn new(space: S) -> ProcessMemory<S> {
        ProcessMemory { space }
    }
}

impl<S: Translation> Memory for ProcessMemory<S> {
    #[inline]
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.space.accessible(addr, len, access)
    }

    #[inline]
    fn read(&self, addr: u64, into: &mut [u8]) {
        let from: *const u8 = with_exposed_provenance(addr as usize);
        // SAFETY: the space has these bytes, and by the contract of `new` nothing writes them.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    #[inline]
    fn write(&mut self, addr: u64, from: &[u8]) {
        let into: *mut u8 = with_exposed_provenance_mut(addr as usize);
        // SAFETY: the space has these bytes, and by the contract of `new` nothing accesses them.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into, from.len()) };
    }

    #[inline]
    fn copy(&mut self, from: u64, to: u64, len: u64) {
        let from: *const u8 = with_exposed_provenance(from as usize);
        let into: *mut u8 = with_exposed_provenance_mut(to as usize);
        // SAFETY: the space has these bytes, and by the contract of `new` nothing else accesses them.
        unsafe { ptr::copy(from, into, len as usize) };
    }

    #[inline]
    fn in_place(&self, addr: u64, len: u64) -> Option<&[u8]> {
        let bytes: *const u8 = with_exposed_provenance(addr as usize);
        // SAFETY: the space has these bytes, which is no more than an address space holds, and by
        // the contract of `new` nothing writes them.
        (addr != 0).then(|| unsafe { slice::from_raw_parts(bytes, len as usize) })
    }

    #[inline]
    fn in_place_into<const N: usize>(
        &mut self,
        sources: [(u64, u64); N],
        (addr, len): (u64, u64),
    ) -> Option<([&[u8]; N], &mut [u8])> {
        let fits = |&source: &(u64, u64)| source.0 != 0 && is_apart(source, (addr, len));
        if !sources.iter().all(fits) || addr == 0 && len > 0 {
            return None;
        }
        let sources = sources.map(|(addr, len)| {
            let bytes: *const u8 = with_exposed_provenance(addr as usize);
            // SAFETY: as in `in_place`; the destination, which is written, overlaps none of them.
            unsafe { slice::from_raw_parts(bytes, len as usize) }
        });
        let destination: &mut [u8] = match len {
            0 => &mut [],
            _ => {
                let bytes: *mut u8 = with_exposed_provenance_mut(addr as usize);
                // SAFETY: the space has these bytes, and by the contract of `new` nothing else
                // accesses them; no source that is borrowed overlaps them.
                unsafe { slice::from_raw_parts_mut(bytes, len as usize) }
            }
        };
        Some((sources, destination))
    }

    #[cfg(target_arch = "x86_64")]
    fn flush(&mut self, addr: u64, len: u64) {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        const LINE: u64 = 64;
        if len == 0 {
            // The line of an address that cannot be accessed is none of the region's.
            return;
        }
        let first = addr & !(LINE - 1);
        for offset in (0..addr - first + len).step_by(LINE as usize) {
            let line: *const u8 = with_exposed_provenance((first + offset) as usize);
            // SAFETY: the line has a byte of the region, which the space has; the instruction is in the
            // instruction set's baseline and changes no byte.
            unsafe { _mm_clflush(line) };
        }
        // SAFETY: in the instruction set's baseline, without operands.
        unsafe { _mm_mfence() };
    }
}

/// Whether two runs of bytes, by address and length, have none in common.
#[inline]
fn is_apart(a: (u64, u64), b: (u64, u64)) -> bool {
    let (low, high) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    high.0 - low.0 >= low.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_not_borrowed_twice() {
        let mut bytes = [0_u8; 64];
        let start = bytes.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the buffer is accessed through this memory alone until its last use.
        let mut memory = unsafe { ProcessMemory::new(AllAccessible) };
        for (source, destination, apart) in [
            ((0, 8), (8, 8), true),
            ((8, 8), (0, 8), true),
            ((0, 9), (8, 8), false),
            ((8, 8), (0, 9), false),
            ((0, 64), (16, 1), false),
            ((16, 1), (0, 64), false),
            ((0, 8), (0, 8), false),
            // Nothing overlaps nothing.
            ((0, 8), (8, 0), true),
        ] {
            let at = |(offset, len): (u64, u64)| (start + offset, len);
            let both = memory.in_place_into([at(source)], at(destination));
            assert_eq!(both.is_some(), apart, "{source:?} {destination:?}");
            if let Some(([from], to)) = both {
                assert_eq!(
                    (from.len() as u64, to.len() as u64),
                    (source.1, destination.1)
                );
            }
            let sources = [at((32, 8)), at(source)];
            assert_eq!(
                memory.in_place_into(sources, at(destination)).is_some(),
                apart
            );
        }
    }

    #[test]
    fn a_flush_of_nothing_touches_no_line() {
        // SAFETY: nothing is accessed.
        let mut memory = unsafe { ProcessMemory::new(AllAccessible) };
        // In the first page, which no process has; and behind the start of a line.
        memory.flush(1, 0);
    }

    #[test]
    fn no_slice_starts_at_null() {
        // SAFETY: nothing is accessed.
        let mut memory = unsafe { ProcessMemory::new(AllAccessible) };
        assert!(memory.in_place(0, 8).is_none());
        assert!(memory.in_place_into([(0, 8)], (64, 0)).is_none());
        assert!(memory.in_place_into([], (0, 8)).is_none());
        assert!(memory.in_place_into([], (0, 0)).is_some());
    }
}
