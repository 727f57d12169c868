//! The processes of a session without a namespace of its own: all that descend from this one.

use std::fs;
use std::io;

use crate::RunError;
use crate::error::system;

/// Has processes whose parent has ended become children of this one, so that none gets away.
///
/// # Errors
/// The system refuses.
pub(crate) fn adopt() -> Result<(), RunError> {
    // SAFETY: it changes what becomes of other processes' children.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
        0 => Ok(()),
        _ => Err(system("prctl")(io::Error::last_os_error())),
    }
}

/// Kills all descendants and waits for their end. Those of another user, which an unprivileged one
/// cannot kill, are left and named.
pub(crate) fn end() {
    loop {
        let children = children();
        let killed: Vec<libc::pid_t> = children
            .iter()
            .copied()
            // SAFETY: a child that has not been waited for keeps its number.
            .filter(|child| unsafe { libc::kill(*child, libc::SIGKILL) } == 0)
            .collect();
        if killed.is_empty() {
            if !children.is_empty() {
                eprintln!("warning: processes of other users are left: {children:?}");
            }
            return;
        }
        for child in killed {
            // Its own children are ours by then.
            // SAFETY: without a place for the status.
            while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// The children of this process.
fn children() -> Vec<libc::pid_t> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ours = std::process::id().to_string();
    let numbers = entries.flatten().filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name is in brackets and may hold anything; its state and its parent follow
        // (proc_pid_stat(5)).
        let (_, rest) = stat.rsplit_once(')')?;
        (rest.split_whitespace().nth(1)? == ours).then_some(number)
    });
    numbers.collect()
}
