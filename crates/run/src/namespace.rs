//! A private view of the system's files and processes.

use std::fs;
use std::io;

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{PidfdFlags, chroot, fchdir, getegid, geteuid, getpid, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use crate::RunError;
use crate::error::{Facility, forbidden};

/// Moves this process into mounts of its own. Where
/// that takes privileges that it lacks, it becomes root of a namespace of users first, in which
/// no other process is. Whether it has not: root is root to the kernel, too.
///
/// # Errors
/// The system does not allow it; or there are several threads.
pub(crate) fn enter() -> Result<bool, RunError> {
    let (uid, gid) = (geteuid(), getegid());
    let privileged = uid.is_root() && unshare(libc::CLONE_NEWNS).is_ok();
    if !privileged {
        unshare(libc::CLONE_NEWNS | libc::CLONE_NEWUSER)
            .map_err(forbidden(Facility::Namespaces))?;
        // Without privileges a group can be mapped only after setgroups(2) is denied (user_namespaces(7)).
        let maps = [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("0 {} 1", uid.as_raw())),
            ("gid_map", format!("0 {} 1", gid.as_raw())),
        ];
        for (file, map) in maps {
            fs::write(format!("/proc/self/{file}"), map)
                .map_err(forbidden(Facility::Namespaces))?;
        }
    }
    make_private().map_err(forbidden(Facility::Namespaces))?;
    Ok(privileged && !is_nested())
}

/// Lets no mount of this process reach others.
fn make_private() -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    match mount_change("/", private) {
        // The root directory is no mount: this process is in a chroot, as in a build of a Debian package. Mounts are
        // changed from the root of all, which setns(2) leads to; then this process goes back to where it was.
        Err(Errno::INVAL) => {
            let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let root = open("/", directory, Mode::empty())?;
            let current = open(".", directory, Mode::empty())?;
            let own = pidfd_open(getpid(), PidfdFlags::empty())?;
            let mounts = ThreadNameSpaceType::MOUNT;
            move_into_thread_name_spaces(own.as_fd(), mounts)?;
            let changed = mount_change("/", private);
            fchdir(&root)?;
            chroot(".")?;
            fchdir(&current)?;
            Ok(changed?)
        }
        result => Ok(result?),
    }
}

/// Whether this process is root to the kernel.
pub(crate) fn is_root() -> bool {
    geteuid().is_root() && !is_nested()
}

/// Whether this process is in a namespace of users already.
fn is_nested() -> bool {
    // The first one maps every number to itself (user_namespaces(7)).
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"]
}

/// Forks the first process of a new namespace of processes. It gets 0.
///
/// `unshare` would do as well, but that a process cannot start threads after it.
///
/// # Errors
/// The system does not allow it.
pub(crate) fn fork() -> Result<libc::pid_t, RunError> {
    let flags = libc::CLONE_NEWPID | libc::SIGCHLD;
    // SAFETY: without a stack and without shared memory it is a fork; this process has one thread,
    // so that no lock is held by another.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match pid {
        -1 => Err(forbidden(Facility::Namespaces)(io::Error::last_os_error())),
        pid => Ok(pid as libc::pid_t),
    }
}

fn unshare(what: libc::c_int) -> io::Result<()> {
    // SAFETY: it changes what names mean to this process, and no memory.
    match unsafe { libc::unshare(what) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
