//! The baseline: how HeMem (Raybuck et al., SOSP 2021) moves pages, written anew. Tiers are shared
//! files in memory; the new frame is mapped over the page with `MAP_FIXED` and registered again.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use super::Quartiles;
use super::mechanism::Cost;
use crate::TierError;
use crate::error::system;
use crate::sys::uffd::{FEATURE_WP, REGISTER_MISSING, REGISTER_WP, Uffd};
use crate::sys::{PAGE, errno, memory, thread_cpu_ns};

/// `WP_HUGETLBFS_SHMEM`: protection of shared memory.
const FEATURE_WP_SHMEM: u64 = 1 << 12;

/// Core time a page of batches of so many base pages, without the copy.
///
/// # Errors
/// userfaultfd is forbidden; no memory.
pub fn hemem(batches: &[u64], rounds: usize) -> Result<Vec<Cost>, TierError> {
    let most = batches.iter().max().copied().unwrap_or(1) * PAGE;
    let files = [file(most)?, file(most)?];
    let uffd = Uffd::open(FEATURE_WP | FEATURE_WP_SHMEM).map_err(crate::mechanism::refused)?;
    let home = memory::reserve(most, PAGE).map_err(system("mmap"))?;
    let mut result = Vec::new();
    map(home, &files[0], most)?;
    let register = |len| {
        uffd.register(home, len, REGISTER_MISSING | REGISTER_WP)
            .map_err(system("UFFDIO_REGISTER"))
    };
    for size in batches {
        let len = size * PAGE;
        let mut samples = Vec::new();
        for round in 0..rounds * 2 {
            // As a program has them that uses its memory.
            memory::advise(home, len, libc::MADV_POPULATE_WRITE).map_err(system("madvise"))?;
            register(len)?;
            let target = &files[(round + 1) % 2];
            let before = thread_cpu_ns();
            uffd.write_protect(home, len, true)
                .map_err(system("UFFDIO_WRITEPROTECT"))?;
            map(home, target, len)?;
            register(len)?;
            uffd.wake(home, len);
            // The program's next accesses fault: the pages are not mapped yet.
            uffd.unregister(home, len)
                .map_err(system("UFFDIO_UNREGISTER"))?;
            memory::advise(home, len, libc::MADV_POPULATE_WRITE).map_err(system("madvise"))?;
            samples.push((thread_cpu_ns() - before) / size);
        }
        result.push(Cost {
            way: "hemem",
            frames: "mapped files",
            pages: *size,
            huge: false,
            batches: samples.len(),
            core_ns: Quartiles::of(samples),
            copy_ns: Quartiles::of(vec![0]),
            frames_ns: Quartiles::of(vec![0]),
            protect_ns: Quartiles::of(vec![0]),
            out_ns: Quartiles::of(vec![0]),
            in_ns: Quartiles::of(vec![0]),
            release_ns: Quartiles::of(vec![0]),
        });
    }
    // SAFETY: ours, and no longer in use.
    unsafe { memory::unmap(home, most) };
    Ok(result)
}

/// A populated file in memory.
fn file(len: u64) -> Result<File, TierError> {
    // SAFETY: the name is a string.
    let fd = unsafe { libc::memfd_create(c"dray-tier".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(system("memfd_create")(errno()));
    }
    // SAFETY: the kernel has just given it to us.
    let file = unsafe { File::from_raw_fd(fd) };
    // SAFETY: it has the file grow and take its pages.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len as i64) } {
        0 => Ok(file),
        _ => Err(system("fallocate")(errno())),
    }
}

fn map(start: u64, file: &File, len: u64) -> Result<(), TierError> {
    // SAFETY: over the benchmark's own memory.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            start as usize,
            len as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED,
            file.as_raw_fd(),
            0usize,
        )
    };
    match answer {
        0.. => Ok(()),
        _ => Err(system("mmap")(errno())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hemem_moves_are_measured_for_every_batch_size() {
        let costs = hemem(&[1, 64], 3).expect("root on Linux 6.8");
        assert_eq!(costs.len(), 2);
        assert!(costs.iter().all(|cost| cost.batches == 6));
    }
}
