//! Pages of a guest that nobody has touched, before they are copied.
//!
//! The kernel makes such a page at its first access, some 0.6 us each, and a driver may put each segment of a burst in one.
//! So the pages of a burst with many segments are touched first, for a limited time. What is left waits for the next call,
//! in which those that were touched cost next to nothing.

use std::time::{Duration, Instant};

use crate::memory;
use crate::ring::Segment;

/// Pages of a burst that are not looked at: a burst of packets that lie in one page each has no more.
pub(super) const FEW: usize = super::MAX_BURST;
/// Least bytes of a page.
pub(super) const PAGE: usize = 4096;
/// Pages between two looks at the clock.
const AT_ONCE: u32 = 8;

/// What touching the pages of one burst may still take.
#[derive(Debug)]
pub(super) struct Touch {
    budget: Duration,
    until: Option<Instant>,
    pages: usize,
}

impl Touch {
    /// Nothing has been touched.
    pub(super) fn new() -> Touch {
        Touch::within(Duration::from_micros(10))
    }

    fn within(budget: Duration) -> Touch {
        Touch {
            budget,
            until: None,
            pages: 0,
        }
    }

    /// Touches the pages of the first `len` bytes of some segments, if the burst has many. Returns whether all
    /// of them are: otherwise the time is up.
    #[inline]
    pub(super) fn all(&mut self, segments: &[Segment], len: usize) -> bool {
        self.pages += segments.len() + len / PAGE;
        self.pages <= FEW || self.each(segments, len)
    }

    #[cold]
    fn each(&mut self, segments: &[Segment], mut len: usize) -> bool {
        let until = *self
            .until
            .get_or_insert_with(|| Instant::now() + self.budget);
        let mut count = 0;
        for segment in segments {
            let part = len.min(segment.len as usize);
            len -= part;
            let mut at = 0;
            while at < part {
                if count % AT_ONCE == AT_ONCE - 1 && Instant::now() >= until {
                    return false;
                }
                count += 1;
                // SAFETY: the offset is less than the segment's length, all of which is mapped.
                let ptr = unsafe { segment.ptr.add(at) };
                // SAFETY: as above. A shared mapping gets its page writable by a read, too.
                let _: u8 = unsafe { memory::read(ptr) };
                at += PAGE - ptr.addr().get() % PAGE;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;
    use crate::memory::{MemoryMap, RegionInfo};

    const PAGES: usize = 256;

    /// Memory that nobody has touched.
    fn memory() -> MemoryMap {
        let size = (PAGES * PAGE) as u64;
        let file = memfd_create(c"touch", MemfdFlags::CLOEXEC).expect("a memfd");
        ftruncate(&file, size).expect("a length");
        let info = RegionInfo {
            size,
            ..RegionInfo::default()
        };
        MemoryMap::new(size).with(info, file).expect("a region")
    }

    fn segments(memory: &MemoryMap, count: usize, len: u32) -> Vec<Segment> {
        let at = |page: usize| memory.translate((page * PAGE) as u64, len);
        let segment = |page| at(page).map(|ptr| Segment { ptr, len });
        (0..count)
            .map(|page| segment(page).expect("mapped"))
            .collect()
    }

    /// Pages that the kernel has made.
    fn present(memory: &MemoryMap) -> usize {
        let start = memory.translate(0, 1).expect("mapped").as_ptr();
        let mut pages = [0_u8; PAGES];
        // SAFETY: the range is mapped, and the vector has a byte for each of its pages.
        let status = unsafe { libc::mincore(start.cast(), PAGES * PAGE, pages.as_mut_ptr()) };
        assert_eq!(status, 0);
        pages.iter().filter(|page| **page & 1 != 0).count()
    }

    #[test]
    fn pages_are_touched_until_the_time_is_up_and_the_rest_by_later_calls() {
        let memory = memory();
        let all = segments(&memory, PAGES, 256);
        assert!(!Touch::within(Duration::ZERO).all(&all, PAGES * 256));
        assert_eq!(present(&memory), AT_ONCE as usize - 1);
        assert!(Touch::within(Duration::from_secs(1000)).all(&all, PAGES * 256));
        assert_eq!(present(&memory), PAGES);
    }

    #[test]
    fn a_long_segment_is_touched_in_each_of_its_pages_and_no_further_than_the_packet() {
        let memory = memory();
        let long = segments(&memory, 1, (PAGES * PAGE) as u32);
        assert!(Touch::within(Duration::from_secs(1000)).all(&long, 99 * PAGE + 1));
        assert_eq!(present(&memory), 100);
    }

    #[test]
    fn a_burst_of_few_segments_costs_no_look() {
        let memory = memory();
        let mut touch = Touch::within(Duration::ZERO);
        for _ in 0..FEW {
            assert!(touch.all(&segments(&memory, 1, 2048), 2048));
        }
        assert_eq!(present(&memory), 0);
        assert!(
            touch.all(&segments(&memory, 1, 2048), 2048),
            "less than the clock is asked for"
        );
        assert_eq!(present(&memory), 1);
    }
}
