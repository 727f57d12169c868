//! Starting a program with the shared object loaded, and waiting for its end.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::settings::SESSION;
use crate::stats::Stats;

/// File name of the shared object.
pub const LIBRARY: &str = "libdray_offload.so";

/// What to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Directory for the shared object and the counters, for as long as the program runs.
    pub directory: &'a Path,
    /// The shared object.
    pub library: &'a [u8],
    /// Variables to set.
    pub variables: &'a [(&'static str, OsString)],
    /// The program and its arguments.
    pub program: &'a [OsString],
}

/// How it ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Exit code: 127 if there is no such program, 126 if it cannot be executed.
    pub code: u8,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// What it and the programs that it started have counted.
    pub stats: Stats,
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
pub fn preload(library: &Path, before: Option<&OsStr>) -> OsString {
    let mut preload = OsString::from(library);
    let before = before.unwrap_or_default().as_bytes();
    for name in before.split(|byte| matches!(byte, b':' | b' ')) {
        let path = Path::new(OsStr::from_bytes(name));
        if !name.is_empty() && path.file_name() != Some(OsStr::new(LIBRARY)) {
            preload.push(":");
            preload.push(path);
        }
    }
    preload
}

/// Runs a program to its end.
///
/// # Errors
/// The files cannot be written, or the program not waited for; no program is named.
pub fn launch(launch: &Launch<'_>) -> io::Result<Ended> {
    let session = launch.directory.join("session");
    let stats = Stats::create(&session)?;
    let library = launch.directory.join(LIBRARY);
    fs::write(&library, launch.library)?;
    fs::set_permissions(&library, fs::Permissions::from_mode(0o755))?;
    let (name, arguments) = match launch.program.split_first() {
        Some(found) => found,
        None => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let before = std::env::var_os("LD_PRELOAD");
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env("LD_PRELOAD", preload(&library, before.as_deref()))
        .env(SESSION, &session)
        .envs(launch.variables.iter().map(|(name, value)| (name, value)));
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
            // SAFETY: what it was before.
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
            return Ok(Ended {
                code,
                signal: None,
                stats,
            });
        }
    };
    CHILD.store(child.id() as i32, Ordering::Relaxed);
    let status = child.wait()?;
    CHILD.store(0, Ordering::Relaxed);
    Ok(Ended {
        code: status.code().unwrap_or(1) as u8,
        signal: status.signal(),
        stats,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_preloaded_stays_so_but_for_another_copy() {
        let library = Path::new("/a/libdray_offload.so");
        let preloaded = |before: &str| preload(library, Some(OsStr::new(before)));
        assert_eq!(preload(library, None), "/a/libdray_offload.so");
        assert_eq!(preloaded(""), "/a/libdray_offload.so");
        assert_eq!(
            preloaded("/b/libdray_offload.so:libc.so.6 /x/y.so"),
            "/a/libdray_offload.so:libc.so.6:/x/y.so"
        );
    }
}
