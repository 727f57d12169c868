//! The command as a process.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::RunError;
use crate::error::system;
use crate::supervise::{Followed, without};

/// What a command is started with; made before anything is forked.
#[derive(Debug)]
pub(crate) struct Program {
    arguments: Vec<CString>,
    environment: Vec<CString>,
    directory: Option<CString>,
    mask: libc::sigset_t,
}

/// Exit codes of a command that cannot be started, as `env` and shells have them.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

impl Program {
    /// A command with the environment of this process and some more variables.
    pub(crate) fn new(
        command: &[OsString],
        variables: &[(&str, OsString)],
        mask: libc::sigset_t,
    ) -> Result<Program, RunError> {
        let text = |text: OsString| CString::new(text.into_vec());
        let arguments: Result<Vec<CString>, _> = command.iter().cloned().map(text).collect();
        let inherited = std::env::vars_os().filter(|(name, _)| {
            let replaced = variables.iter().any(|(other, _)| *name == **other);
            !replaced
        });
        let added = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), value.clone()));
        let environment: Result<Vec<CString>, _> = inherited
            .chain(added)
            .map(|(mut name, value)| {
                name.push("=");
                name.push(value);
                text(name)
            })
            .collect();
        let invalid = |_| system("execvp")(io::Error::from(io::ErrorKind::InvalidInput));
        let directory = std::env::current_dir().ok();
        let directory =
            directory.and_then(|path| CString::new(path.into_os_string().into_vec()).ok());
        Ok(Program {
            arguments: arguments.map_err(invalid)?,
            environment: environment.map_err(invalid)?,
            directory,
            mask,
        })
    }

    /// Becomes the command, in a process that was forked for it.
    pub(crate) fn become_it(&self, followed: &Followed) -> ! {
        if let Some(directory) = &self.directory {
            // By its name, at which another directory may be mounted now. If it does not exist, nothing changes.
            // SAFETY: the text ends with a zero.
            let _ = unsafe { libc::chdir(directory.as_ptr()) };
        }
        // What this process ignores by itself; a program would inherit it.
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        // SAFETY: the mask is one.
        unsafe {
            libc::sigprocmask(
                libc::SIG_SETMASK,
                &raw const self.mask,
                std::ptr::null_mut(),
            )
        };
        let error = match self.arguments.first() {
            Some(name) => {
                let loads = followed.follow(name);
                let arguments = pointers(&self.arguments);
                let shorter;
                let environment = match loads {
                    true => pointers(&self.environment),
                    false => {
                        shorter = without(&self.environment);
                        pointers(&shorter)
                    }
                };
                // SAFETY: a name and two lists of texts, each with its end.
                unsafe {
                    libc::execvpe(name.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                };
                io::Error::last_os_error()
            }
            None => io::Error::from_raw_os_error(libc::ENOENT),
        };
        let name = self
            .arguments
            .first()
            .map_or(&b""[..], |name| name.to_bytes());
        let name = String::from_utf8_lossy(name);
        eprintln!("error: {name}: {error}");
        if error.kind() == io::ErrorKind::NotFound && !Path::new(&*name).exists() {
            eprintln!("hint: the command comes after `--`: dray run -- ./program argument");
        }
        exit(match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        })
    }
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    let texts = texts.iter().map(|text| text.as_ptr());
    texts.chain([std::ptr::null()]).collect()
}

/// Forks. The child gets 0.
///
/// # Errors
/// No more processes.
pub(crate) fn fork() -> Result<libc::pid_t, RunError> {
    // SAFETY: this process has one thread, so that no lock is held by another.
    match unsafe { libc::fork() } {
        -1 => Err(system("fork")(io::Error::last_os_error())),
        pid => Ok(pid),
    }
}

/// Ends a forked process without what its parent has to do at its end.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: nothing comes after it.
    unsafe { libc::_exit(code) }
}
