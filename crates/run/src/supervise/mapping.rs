//! The system calls that map and unmap, of a supervised program.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;

use dray_portal::node::{Wanted, check, identify};
use dray_wire::Node;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::ptrace::{self, Tid};
use super::space::{PAGE, Page, Portal};
use super::supervisor::Tracee;
use crate::clients::Clients;
use crate::serial_executor::SerialExecutor;

/// In place of a number: the kernel does nothing, and returns what RAX holds.
const NO_SYSTEM_CALL: u64 = u64::MAX;

/// A call that is being done.
#[derive(Debug)]
pub(super) enum Pending {
    /// mmap(2) that is made another one: the page of a portal.
    Map {
        /// As the program calls.
        asked: Box<libc::user_regs_struct>,
        /// What is to be there.
        portal: Box<Portal>,
    },
    /// mremap(2) of a portal's page.
    Move {
        /// Where it was.
        from: u64,
        /// What it is.
        page: Page,
    },
}

/// Called before a system call. Returns what is to be finished after it, if anything.
///
/// # Errors
/// The tracee has been killed.
pub(super) fn begin(
    tid: Tid,
    tracee: &Tracee,
    clients: &Arc<Clients>,
    executor: &SerialExecutor,
) -> io::Result<Option<Pending>> {
    let mut registers = ptrace::registers(tid)?;
    let (address, bytes) = (registers.rdi, registers.rsi);
    let aligned = address.is_multiple_of(PAGE) && bytes != 0;
    match registers.orig_rax as i64 {
        libc::SYS_munmap if aligned => {
            // Before it is done: afterwards the page may be another thread's.
            tracee.space.borrow_mut().forget(address, bytes);
            Ok(None)
        }
        libc::SYS_mprotect if aligned => {
            let writable = registers.rdx as i32 & libc::PROT_WRITE != 0;
            let portals = tracee.space.borrow_mut().protect(address, bytes, writable);
            if portals > 0 {
                // The page stays as it is; of a range that has others, they cannot be left out.
                let whole = portals == bytes.div_ceil(PAGE);
                let answer = if whole { 0 } else { -i64::from(libc::EACCES) };
                skip(tid, &mut registers, answer)?;
            }
            Ok(None)
        }
        libc::SYS_mremap if aligned => relocate(tid, tracee, &mut registers),
        libc::SYS_mmap => map(tid, tracee, registers, clients, executor),
        _ => Ok(None),
    }
}

/// mremap(2), as `dray_portal::mapping::relocate` has it: a portal goes with its page.
fn relocate(
    tid: Tid,
    tracee: &Tracee,
    registers: &mut libc::user_regs_struct,
) -> io::Result<Option<Pending>> {
    let (from, bytes, new_bytes) = (registers.rdi, registers.rsi, registers.rdx);
    let flags = registers.r10 as i32;
    let mut space = tracee.space.borrow_mut();
    let portal = match space.find(from) {
        Some(page @ Page::Portal { .. }) => Some(page.clone()),
        _ => None,
    };
    let round = |bytes: u64| bytes.div_ceil(PAGE);
    let refusal = match portal {
        Some(_) if flags & libc::MREMAP_DONTUNMAP != 0 => Some(libc::EINVAL),
        Some(_) if round(new_bytes) > round(bytes) => Some(libc::EFAULT),
        _ => None,
    };
    if let Some(errno) = refusal {
        skip(tid, registers, -i64::from(errno))?;
        return Ok(None);
    }
    if flags & libc::MREMAP_FIXED != 0 {
        space.forget(registers.r8, new_bytes);
    }
    Ok(portal.map(|page| {
        space.forget(from, PAGE);
        Pending::Move { from, page }
    }))
}

fn map(
    tid: Tid,
    tracee: &Tracee,
    asked: libc::user_regs_struct,
    clients: &Arc<Clients>,
    executor: &SerialExecutor,
) -> io::Result<Option<Pending>> {
    let flags = asked.r10 as i32;
    let forget = |bytes| {
        if flags & libc::MAP_FIXED != 0 && asked.rdi.is_multiple_of(PAGE) {
            tracee.space.borrow_mut().forget(asked.rdi, bytes);
        }
    };
    let node = match flags & libc::MAP_ANONYMOUS {
        0 => node(tid, tracee.process, asked.r8 as i32),
        _ => None,
    };
    // One of another session, that runs inside this one, is left to it.
    let ours = node.filter(|(_, node)| clients.node(node.cookie).is_some());
    let Some((file, node)) = ours else {
        forget(asked.rsi);
        return Ok(None);
    };
    let mut registers = asked;
    let wanted = Wanted {
        address: asked.rdi as usize,
        bytes: asked.rsi as usize,
        protection: asked.rdx as i32,
        flags,
        offset: asked.r9 as i64,
    };
    let attached = check(file.as_fd(), &wanted)
        .map_err(|errno| errno.raw_os_error())
        .and_then(|()| attach(&node, tracee.process, asked.rsi, clients, executor));
    // Before the program goes on: it may close its own and open it again.
    drop(file);
    let portal = match attached {
        Ok(portal) => portal,
        Err(errno) => {
            skip(tid, &mut registers, -i64::from(errno))?;
            return Ok(None);
        }
    };
    forget(PAGE);
    let kept = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_32BIT;
    registers.rsi = PAGE;
    registers.rdx = libc::PROT_NONE as u64;
    registers.r10 = (flags & kept | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    registers.r8 = u64::MAX;
    registers.r9 = 0;
    ptrace::set_registers(tid, &registers)?;
    Ok(Some(Pending::Map {
        asked: Box::new(asked),
        portal: Box::new(portal),
    }))
}

/// Has the system call return without being done.
fn skip(tid: Tid, registers: &mut libc::user_regs_struct, answer: i64) -> io::Result<()> {
    registers.orig_rax = NO_SYSTEM_CALL;
    registers.rax = answer as u64;
    ptrace::set_registers(tid, registers)
}

/// `PIDFD_THREAD` (include/uapi/linux/pidfd.h).
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);

/// The work queue's node that is open as `fd`.
fn node(tid: Tid, process: Tid, fd: i32) -> Option<(OwnedFd, Node)> {
    // By its name first: a file system of someone else's may not answer.
    let path = std::fs::read_link(format!("/proc/{tid}/fd/{fd}")).ok()?;
    let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    if !name.starts_with(b"wq") {
        return None;
    }
    let open = |pid, flags| {
        let holder = pidfd_open(Pid::from_raw(pid)?, flags).ok()?;
        pidfd_getfd(holder, fd, PidfdGetfdFlags::empty()).ok()
    };
    // The first thread has no files any more once it has ended; threads can be asked since Linux 6.9.
    let file = open(process, PidfdFlags::empty()).or_else(|| open(tid, THREAD))?;
    let node = identify(file.as_fd())?;
    Some((file, node))
}

/// A mapping of a node, or the error number of mmap(2).
fn attach(
    node: &Node,
    process: Tid,
    bytes: u64,
    clients: &Arc<Clients>,
    executor: &SerialExecutor,
) -> Result<Portal, i32> {
    let (answer, answered) = channel();
    let cookie = node.cookie;
    let service = clients.clone();
    let length = bytes.checked_next_multiple_of(PAGE).ok_or(libc::EINVAL)?;
    // After all that was opened and closed before.
    executor.submit(Some(node.device), move || {
        // The supervisor waits for it.
        let _ = answer.send(service.map(cookie, process as u32, length));
    });
    let mapped = answered.recv().map_err(|_| libc::EIO)?;
    let (attached, mapping) = mapped.map_err(|errno| errno.0)?;
    let portal = clients.machine.portal(attached.device, attached.wq);
    let portal = portal.ok_or(libc::ENXIO)?;
    let (clients, executor) = (clients.clone(), executor.clone());
    Ok(Portal::new(
        portal,
        attached.pasid,
        mapping,
        clients,
        executor,
    ))
}

/// The page of a portal is there, or could not be had; or it has moved, or not.
///
/// # Errors
/// The tracee has been killed.
pub(super) fn finish(tid: Tid, tracee: &Tracee, pending: Pending) -> io::Result<()> {
    let answer = ptrace::registers(tid)?;
    let (asked, portal) = match pending {
        Pending::Map { asked, portal } => (asked, portal),
        Pending::Move { from, page } => {
            let moved = (answer.rax as i64) >= 0;
            let place = if moved { answer.rax } else { from };
            tracee.space.borrow_mut().insert(place, page);
            return Ok(());
        }
    };
    if (answer.rax as i64) >= 0 {
        // The preload library maps pages that nothing may access, and knows the program's protection. What it
        // has not patched is carried out here, so that no signal is delivered to it.
        let library = asked.rdx as i32 == libc::PROT_NONE;
        let page = Page::Portal {
            portal: Rc::from(portal),
            writable: library || asked.rdx as i32 & libc::PROT_WRITE != 0,
        };
        tracee.space.borrow_mut().insert(answer.rax, page);
    }
    // A system call leaves the registers of its arguments as they were.
    let kept = libc::user_regs_struct {
        rsi: asked.rsi,
        rdx: asked.rdx,
        r10: asked.r10,
        r8: asked.r8,
        r9: asked.r9,
        ..answer
    };
    ptrace::set_registers(tid, &kept)
}

/// Flags of the call that has just started a thread or a process, as those of clone(2).
///
/// # Errors
/// The tracee has been killed.
pub(super) fn clone_flags(tid: Tid) -> io::Result<u64> {
    let registers = ptrace::registers(tid)?;
    Ok(match registers.orig_rax as i64 {
        libc::SYS_vfork => libc::CLONE_VM as u64,
        libc::SYS_clone => registers.rdi,
        libc::SYS_clone3 => {
            let mut flags = [0; 8];
            // The first word of `struct clone_args`; the kernel has just read it.
            ptrace::read_memory(tid, registers.rdi, &mut flags);
            u64::from_ne_bytes(flags)
        }
        _ => 0,
    })
}
