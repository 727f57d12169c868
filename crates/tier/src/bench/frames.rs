//! The cost of new frames in the kernel: the part of the default way of release that no engine can save.
//!
//! A frame that goes back to the kernel comes anew with the next page: allocated, charged to the memory
//! cgroup, zeroed and mapped. Nothing that a program can call says whether the kernel still refers to a
//! frame (vmsplice(2), MSG_ZEROCOPY), so that it could be kept instead.

use serde::Serialize;

use super::Quartiles;
use crate::TierError;
use crate::error::system;
use crate::sys::{HUGE, PAGE, memory, thread_cpu_ns};

/// Core time of frames alone, in ns a page.
#[derive(Debug, Clone, Serialize)]
pub struct Frames {
    /// Pages of a batch; of 2 MiB if `huge`.
    pub pages: u64,
    /// Pages are of 2 MiB.
    pub huge: bool,
    /// `MADV_POPULATE_WRITE` on memory that has no frames.
    pub make_ns: Quartiles,
    /// The same number of bytes set to zero by this core, just after, in frames that are there: what
    /// zeroing takes at least.
    pub zero_ns: Quartiles,
    /// `MADV_DONTNEED` on it.
    pub drop_ns: Quartiles,
}

/// Measures batches of 4 KiB pages, then one and eight pages of 2 MiB. No userfaultfd is involved.
///
/// # Errors
/// No memory.
pub fn frames(batches: &[u64], rounds: usize) -> Result<Vec<Frames>, TierError> {
    let base = batches.iter().map(|pages| one(*pages, false, rounds));
    base.chain([1, 8].map(|pages| one(pages, true, rounds)))
        .collect()
}

fn one(pages: u64, huge: bool, rounds: usize) -> Result<Frames, TierError> {
    let len = pages * if huge { HUGE } else { PAGE };
    let start = memory::reserve(len, HUGE).map_err(system("mmap"))?;
    let advice = match huge {
        true => libc::MADV_HUGEPAGE,
        false => libc::MADV_NOHUGEPAGE,
    };
    // Without huge pages in the kernel these are 512 base pages.
    let _ = memory::advise(start, len, advice);
    let mut samples = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds.max(1) {
        let times = [
            thread_cpu_ns(),
            made(start, len)?,
            zeroed(start, len),
            dropped(start, len)?,
        ];
        for (samples, pair) in samples.iter_mut().zip(times.windows(2)) {
            samples.push((pair[1] - pair[0]) / pages);
        }
    }
    // SAFETY: ours, and no longer in use.
    unsafe { memory::unmap(start, len) };
    let [make, zero, drop] = samples.map(Quartiles::of);
    Ok(Frames {
        pages,
        huge,
        make_ns: make,
        zero_ns: zero,
        drop_ns: drop,
    })
}

fn made(start: u64, len: u64) -> Result<u64, TierError> {
    memory::advise(start, len, libc::MADV_POPULATE_WRITE).map_err(system("madvise"))?;
    Ok(thread_cpu_ns())
}

fn zeroed(start: u64, len: u64) -> u64 {
    let bytes = std::ptr::with_exposed_provenance_mut::<u8>(start as usize);
    // SAFETY: the benchmark's own memory, which is writable.
    unsafe { std::ptr::write_bytes(bytes, 0, len as usize) };
    std::hint::black_box(bytes);
    thread_cpu_ns()
}

fn dropped(start: u64, len: u64) -> Result<u64, TierError> {
    // SAFETY: the benchmark's own memory, without references into it.
    unsafe { memory::empty(start, len) }.map_err(system("madvise"))?;
    Ok(thread_cpu_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_allocation_is_measured_for_every_batch_size() {
        let measured = frames(&[1, 64], 3).expect("memory");
        assert_eq!(measured.len(), 4);
        for one in measured {
            assert!(one.make_ns.median > 0 && one.make_ns.lower <= one.make_ns.upper);
        }
    }
}
