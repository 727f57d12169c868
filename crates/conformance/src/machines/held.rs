//! A page whose faults stay unanswered.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::movers::{Held, PAGE};

/// A page whose faults stay unanswered until it is released: a device that blocks on faults holds what
/// accesses it. `None` where this process may not hold faults of the kernel.
pub fn held_page() -> Option<Held> {
    // linux/userfaultfd.h
    const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
    const UFFD_API: u64 = 0xaa;
    const MODE_MISSING: u64 = 1;
    // SAFETY: it makes a file.
    let file = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
    let file = i32::try_from(file).ok().filter(|file| *file >= 0)?;
    // SAFETY: it is open, and nothing else has it.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let mut api = [UFFD_API, 0, 0];
    // SAFETY: a structure of three words.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), UFFDIO_API, &raw mut api) };
    assert_eq!(answer, 0);
    let page = untouched_page();
    let mut area = [page, PAGE, MODE_MISSING, 0];
    // SAFETY: a structure of four words; nothing is on the page yet.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), UFFDIO_REGISTER, &raw mut area) };
    assert_eq!(answer, 0);
    Some(Held {
        page,
        // All faults are answered with a page of zeros then.
        release: Box::new(move || drop(file)),
    })
}

/// A page that is mapped, and not there yet. It stays mapped.
fn untouched_page() -> u64 {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED, "no memory");
    page.expose_provenance() as u64
}
