//! Memory to measure on.

use std::fs;
use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::PATTERN;

const HUGE_PAGE: usize = 2 << 20;
/// Bind: memory comes from these nodes or not at all (linux/mempolicy.h).
const MPOL_BIND: libc::c_int = 2;

/// Pages of an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pages {
    /// Small ones, in huge ones where the kernel has them at hand.
    #[default]
    Transparent,
    /// Of 2 MiB, from the pool.
    Huge2M,
    /// Of 1 GiB, from the pool.
    Huge1G,
}

impl Pages {
    fn bytes(self) -> usize {
        match self {
            Pages::Transparent => 4096,
            Pages::Huge2M => HUGE_PAGE,
            Pages::Huge1G => 1 << 30,
        }
    }

    /// Pages of the pool that `bytes` bytes take; 0 without a pool.
    pub fn needed(self, bytes: usize) -> usize {
        match self {
            Pages::Transparent => 0,
            _ => bytes.div_ceil(self.bytes()),
        }
    }

    /// Free pages in the pool.
    pub fn free(self) -> usize {
        let path = format!("{}/free_hugepages", self.pool());
        let text = fs::read_to_string(path).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Where the kernel keeps the pool's numbers.
    pub fn pool(self) -> String {
        let kib = self.bytes() >> 10;
        format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB")
    }
}

/// Private memory, touched by the thread that made it, so that it lies on that thread's node
/// unless it is bound to another.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    mapped: usize,
    start: u64,
}

impl Arena {
    /// At least `bytes` bytes, all set to [`PATTERN`].
    pub fn new(bytes: usize, pages: Pages, node: Option<u16>) -> io::Result<Arena> {
        let spare = match pages {
            // To begin at a huge page's boundary, and to end at one.
            Pages::Transparent => 2 * HUGE_PAGE,
            _ => pages.bytes(),
        };
        let mapped = bytes.checked_next_multiple_of(pages.bytes());
        let mapped = mapped.and_then(|bytes| bytes.checked_add(spare - pages.bytes()));
        let mapped = mapped.ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE
            | match pages {
                Pages::Transparent => MapFlags::NORESERVE,
                Pages::Huge2M => MapFlags::HUGETLB | MapFlags::HUGE_2MB,
                Pages::Huge1G => MapFlags::HUGETLB | MapFlags::HUGE_1GB,
            };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address that the kernel chooses.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, protection, flags) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut arena = Arena {
            base,
            mapped,
            start: (base.as_ptr() as u64).next_multiple_of(match pages {
                Pages::Transparent => HUGE_PAGE as u64,
                _ => 1,
            }),
        };
        if pages == Pages::Transparent {
            // SAFETY: the range is the mapping just made. Advice that is not taken is no error.
            let _ = unsafe { madvise(base.as_ptr().cast(), mapped, Advice::LinuxHugepage) };
        }
        if let Some(node) = node {
            arena.bind(node)?;
        }
        let whole = bytes.next_multiple_of(8);
        for chunk in arena.bytes(whole).chunks_exact_mut(8) {
            chunk.copy_from_slice(&PATTERN.to_le_bytes());
        }
        Ok(arena)
    }

    /// First address, at a huge page's boundary.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Takes the pages from one memory node when they are first touched.
    fn bind(&mut self, node: u16) -> io::Result<()> {
        const BITS: usize = libc::c_ulong::BITS as usize;
        let mut mask = [0 as libc::c_ulong; 1024 / BITS];
        let word = mask.get_mut(usize::from(node) / BITS);
        *word.ok_or(io::ErrorKind::InvalidInput)? |= 1 << (usize::from(node) % BITS);
        // SAFETY: the range is this arena's mapping, the mask as long as it says.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.base.as_ptr(),
                self.mapped,
                MPOL_BIND,
                mask.as_ptr(),
                mask.len() * BITS,
                0,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn bytes(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: `start + len` is within the mapping, which is as long plus what alignment takes.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, len) }
    }

    /// Bytes of it in huge pages, transparent or not, as the kernel counts them; `None` where it
    /// does not say.
    pub fn huge_bytes(&self) -> Option<u64> {
        let maps = fs::read_to_string("/proc/self/smaps").ok()?;
        Some(huge_bytes(&maps, self.start))
    }
}

/// Of the mapping that holds an address (proc_pid_smaps(5)).
fn huge_bytes(maps: &str, address: u64) -> u64 {
    let mut inside = false;
    let mut kib = 0;
    for line in maps.lines() {
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        if let Some((from, to)) = word.split_once('-') {
            let number = |digits| u64::from_str_radix(digits, 16).unwrap_or(0);
            inside = (number(from)..number(to)).contains(&address);
        } else if inside && matches!(word, "AnonHugePages:" | "Private_Hugetlb:") {
            let digits = rest.trim().trim_end_matches(" kB");
            kib += digits.parse::<u64>().unwrap_or(0);
        }
    }
    kib << 10
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is this arena's, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_counted_in_the_right_mapping() {
        let maps = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n\
AnonHugePages:      2048 kB\n\
VmFlags: rd wr mr\n\
7f0000400000-7f0000800000 rw-p 00000000 00:00 0 \n\
AnonHugePages:      4096 kB\n\
Private_Hugetlb:       0 kB\n";
        assert_eq!(huge_bytes(maps, 0x7f00_0000_0000), 2 << 20);
        assert_eq!(huge_bytes(maps, 0x7f00_0040_0000), 4 << 20);
        assert_eq!(huge_bytes(maps, 0x7f00_0080_0000), 0);
    }

    #[test]
    fn memory_bound_to_a_node_is_allocated_and_filled() {
        let mut arena = Arena::new(10_000, Pages::Transparent, Some(0)).unwrap();
        assert_eq!(arena.start() % HUGE_PAGE as u64, 0);
        assert_eq!(arena.bytes(8), PATTERN.to_le_bytes());
        let error = Arena::new(1, Pages::Transparent, Some(2000)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn huge_page_pools_need_whole_pages() {
        assert_eq!(Pages::Huge2M.needed(1), 1);
        assert_eq!(Pages::Huge2M.needed((2 << 20) + 1), 2);
        assert_eq!(Pages::Transparent.needed(1 << 40), 0);
        assert!(Pages::Huge1G.pool().ends_with("hugepages-1048576kB"));
    }
}
