//! Starting a program with a shared object loaded, and waiting for its end.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::preload_path::{for_glibc, plain};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Exit code: 127 if there is no such program, 126 if it cannot be executed.
    pub code: u8,
    /// Signal that ended it.
    pub signal: Option<i32>,
}

/// The program, for the signal handler.
static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: libc::c_int) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: a child that has not been waited for.
        unsafe { libc::kill(child, signal) };
    }
}

/// What LD_PRELOAD becomes: the shared object, and what was preloaded already but for another copy
/// of it.
fn preload(library: &Path, before: Option<&OsStr>) -> OsString {
    let mut preload = for_glibc(library);
    let before = before.unwrap_or_default().as_bytes();
    for name in before.split(|byte| matches!(byte, b':' | b' ')) {
        let name = OsStr::from_bytes(name);
        if !name.is_empty() && plain(name).file_name() != library.file_name() {
            preload.push(":");
            preload.push(name);
        }
    }
    preload
}

/// Runs a program and its arguments to its end, with `library` preloaded, if there is one, and these variables.
///
/// Signals of the terminal reach the program by themselves; SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are
/// passed on. For one program at a time.
///
/// # Errors
/// No program is named; it cannot be waited for.
pub fn start(
    library: Option<&Path>,
    variables: &[(&str, OsString)],
    program: &[OsString],
) -> io::Result<Ended> {
    let (name, arguments) = match program.split_first() {
        Some(found) => found,
        None => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let before = std::env::var_os("LD_PRELOAD");
    let mut command = Command::new(name);
    if let Some(library) = library {
        command.env("LD_PRELOAD", preload(library, before.as_deref()));
    }
    command
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)));
    // The terminal's signals reach the program by themselves, and dray waits for it.
    let before = [libc::SIGINT, libc::SIGQUIT].map(|number| {
        // SAFETY: no handler is installed.
        (number, unsafe { libc::signal(number, libc::SIG_IGN) })
    });
    for number in [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
        let handler = pass_on as extern "C" fn(libc::c_int);
        // SAFETY: the handler calls kill(2) alone.
        unsafe { libc::signal(number, handler as libc::sighandler_t) };
    }
    let restore = move || {
        for (number, action) in before {
            // SAFETY: the action that the signal had before.
            unsafe { libc::signal(number, action) };
        }
        Ok(())
    };
    // SAFETY: signal(2) may be called between fork and exec.
    unsafe { command.pre_exec(restore) };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("error: {}: {error}", name.display());
            let code = match error.kind() {
                io::ErrorKind::NotFound => 127,
                _ => 126,
            };
            return Ok(Ended { code, signal: None });
        }
    };
    CHILD.store(child.id() as i32, Ordering::Relaxed);
    reap_until(child.id());
    let status = child.wait()?;
    CHILD.store(0, Ordering::Relaxed);
    Ok(Ended {
        code: status.code().unwrap_or(1) as u8,
        signal: status.signal(),
    })
}

/// Reaps children that have come to this process from others, until the program has ended, which is left.
fn reap_until(program: u32) {
    loop {
        let mut ended = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let how = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: the place is written to.
        let answer = unsafe { libc::waitid(libc::P_ALL, 0, ended.as_mut_ptr(), how) };
        if answer != 0 {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return;
        }
        // SAFETY: the kernel has filled it, or it is all zeros.
        let ended = unsafe { ended.assume_init() };
        // SAFETY: it is about a child.
        let pid = unsafe { ended.si_pid() };
        if pid == program as i32 {
            return;
        }
        // SAFETY: a child that has ended.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_preloaded_libraries_stay_and_other_copies_are_replaced() {
        let library = Path::new("/a/libdray_offload.so");
        let preloaded = |before: &str| preload(library, Some(OsStr::new(before)));
        let alone = for_glibc(library);
        assert_eq!(preload(library, None), alone);
        assert_eq!(preloaded(""), alone);
        let mut with_others = alone.clone();
        with_others.push(":libc.so.6:/x/y.so");
        assert_eq!(
            preloaded("/b/libdray_offload.so:libc.so.6 /x/y.so"),
            with_others
        );
        assert_eq!(preload(library, Some(&with_others)), with_others);
    }
}
