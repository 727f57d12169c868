//! Bytes from and to another process.

use std::io;

use libc::{c_void, iovec};

use crate::threads::Target;

/// A transfer stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Short {
    /// Bytes that were transferred; the page behind them could not be accessed.
    pub(crate) done: usize,
}

/// Reads from `addr` of a process.
pub(crate) fn read(target: &Target, addr: u64, into: &mut [u8]) -> Result<(), Short> {
    let mut done = 0;
    while done < into.len() {
        let rest = &mut into[done..];
        let local = iovec {
            iov_base: rest.as_mut_ptr().cast(),
            iov_len: rest.len(),
        };
        let remote = remote(addr + done as u64, rest.len());
        // SAFETY: the local bytes are `rest`, borrowed until the call is over; the kernel checks the
        // remote ones.
        let n = target.call(|pid| unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) });
        done += progress(n, done)?;
    }
    Ok(())
}

/// Writes to `addr` of a process.
pub(crate) fn write(target: &Target, addr: u64, from: &[u8]) -> Result<(), Short> {
    let mut done = 0;
    while done < from.len() {
        let rest = &from[done..];
        let local = local(rest);
        let remote = remote(addr + done as u64, rest.len());
        // SAFETY: the local bytes are `rest`, which the kernel reads only; it checks the remote ones.
        let n =
            target.call(|pid| unsafe { libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) });
        done += progress(n, done)?;
    }
    Ok(())
}

/// Writes all but the first byte, then, once they can be seen, that one.
///
/// One call is enough: the kernel takes the remote pieces in their order, each through to its end
/// (mm/process_vm_access.c, `process_vm_rw_core`), with ordinary stores, and x86 shows the stores of
/// one processor in their order; those of a string instruction come before what is stored after it
/// (Intel SDM volume 3, 10.2.4 and 10.2.2). What starts on one page and is aligned stays on it, so
/// either both pieces can be written or none.
pub(crate) fn publish(target: &Target, addr: u64, from: &[u8; 32]) -> Result<(), Short> {
    let (first, rest) = from.split_at(1);
    let local = [local(rest), local(first)];
    let remote = [remote(addr + 1, rest.len()), remote(addr, 1)];
    // SAFETY: the local bytes are those of `from`, which the kernel reads only; it checks the remote
    // ones.
    let n = target.call(|pid| unsafe {
        libc::process_vm_writev(pid, local.as_ptr(), 2, remote.as_ptr(), 2, 0)
    });
    match progress(n, 0)? {
        32 => Ok(()),
        done => Err(Short { done }),
    }
}

fn local(bytes: &[u8]) -> iovec {
    iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

fn remote(addr: u64, len: usize) -> iovec {
    iovec {
        iov_base: addr as *mut c_void,
        iov_len: len,
    }
}

/// Bytes of one call. Less than was asked for is no failure: the next call meets what stopped it.
fn progress(n: io::Result<usize>, done: usize) -> Result<usize, Short> {
    match n {
        Ok(n) if n > 0 => Ok(n),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Ok(_) | Err(_) => Err(Short { done }),
    }
}
