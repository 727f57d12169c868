//! A work queue's node as an open file, and calls that are refused without the driver.

use std::os::fd::{AsRawFd, BorrowedFd};

use dray_wire::{CLIENT, Node};
use rustix::fs::{OFlags, fcntl_getfl, fstatfs};
use rustix::io::Errno;

use crate::redirect::{file, redirection};
use crate::syscall::syscall;

/// `f_type` of a FUSE file system (`FUSE_SUPER_MAGIC`).
const FUSE: u64 = 0x6573_5546;
/// What the program gives mmap.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Wanted address.
    pub address: usize,
    /// Length.
    pub bytes: usize,
    /// `PROT_` bits.
    pub protection: i32,
    /// `MAP_` bits.
    pub flags: i32,
    /// Offset in the file.
    pub offset: i64,
}

/// Device, queue and client of the node; `None` if it is not a node of the session.
pub fn identify(fd: BorrowedFd<'_>) -> Option<Node> {
    if redirection().is_some() {
        let name = file::node(fd.as_raw_fd())?;
        return Some(Node::new(name.device, name.wq, name.cookie));
    }
    if fstatfs(fd).ok()?.f_type as u64 != FUSE {
        return None;
    }
    let mut bytes = [0u8; size_of::<Node>()];
    let raw = fd.as_raw_fd() as usize;
    let arguments = [raw, CLIENT as usize, bytes.as_mut_ptr().addr(), 0, 0, 0];
    // SAFETY: the answer has the size that the number of the ioctl says.
    unsafe { syscall(libc::SYS_ioctl, arguments) }.ok()?;
    Node::from_message(&bytes).ok()
}

/// What mmap(2) refuses of any file.
///
/// # Errors
/// What it returns.
pub fn check(fd: BorrowedFd<'_>, wanted: &Wanted) -> Result<(), Errno> {
    let kind = wanted.flags & libc::MAP_TYPE;
    let shared = kind == libc::MAP_SHARED || kind == libc::MAP_SHARED_VALIDATE;
    if wanted.bytes == 0 || wanted.offset & 4095 != 0 || !(shared || kind == libc::MAP_PRIVATE) {
        return Err(Errno::INVAL);
    }
    let mode = match redirection().and_then(|_| file::node(fd.as_raw_fd())) {
        // A socket can always do both.
        Some(name) => OFlags::from_bits_retain(name.mode.into()),
        None => fcntl_getfl(fd)? & OFlags::RWMODE,
    };
    let writes = shared && wanted.protection & libc::PROT_WRITE != 0;
    match mode == OFlags::RDWR || mode == OFlags::RDONLY && !writes {
        true => Ok(()),
        false => Err(Errno::ACCESS),
    }
}
