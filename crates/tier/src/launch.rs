//! Starting a program with the preload library, and waiting for its end.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;

use crate::session::{Session, Setup, VARIABLE, directory};
use crate::sys::damon;
use crate::tracking::Tracking;
use crate::{TierError, untiered};

/// File of the session, and of the library, in the session's directory.
const SESSION: &str = "session";
const LIBRARY: &str = "libdray_tier_preload.so";

/// What to start.
#[derive(Debug)]
pub struct Launch {
    /// The tiers.
    pub setup: Setup,
    /// Knobs to set first, `NAME=NUMBER`.
    pub knobs: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// The preload library.
    pub library: &'static [u8],
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code.
    pub code: u8,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Its counters.
    pub session: Session,
}

/// Runs a program to its end.
///
/// # Errors
/// No directory for the session's files. A program that cannot be started ends with 126 or 127.
pub fn launch(launch: &Launch) -> Result<Ended, TierError> {
    let hosted = Hosted::new(&launch.setup, &launch.knobs)?;
    let (session, directory) = (hosted.session, &hosted.directory);
    let library = directory.0.join(LIBRARY);
    write(&library, launch.library).map_err(failed("writing the preload library"))?;
    let variables = [(VARIABLE, directory.0.join(SESSION).into_os_string())];
    let (end, ended) = mpsc::channel();
    let ended = thread::scope(|scope| {
        scope.spawn(move || untiered::watch(session, LIBRARY, &ended));
        let result = dray_interpose::start(&library, &variables, &launch.program);
        drop(end);
        result
    });
    let ended = ended.map_err(failed("running the program"))?;
    for process in session.processes() {
        let pid = process.pid.load(Ordering::Relaxed);
        if process.tracking() == Some(Tracking::Damon)
            && let Ok(pid) = u32::try_from(pid)
        {
            damon::tidy(Path::new(damon::DIRECTORY), pid);
        }
    }
    Ok(Ended {
        code: ended.code,
        signal: ended.signal,
        session,
    })
}

/// A session that others find, as long as this lives.
#[derive(Debug)]
pub struct Hosted {
    /// The session.
    pub session: Session,
    directory: SessionDirectory,
}

impl Hosted {
    /// A new session with these knobs, `NAME=NUMBER`.
    ///
    /// # Errors
    /// No directory for its files; no such knob.
    pub fn new(setup: &Setup, knobs: &[String]) -> Result<Hosted, TierError> {
        clean();
        let directory =
            SessionDirectory::new().map_err(failed("making the session's directory"))?;
        let session = Session::create(&directory.0.join(SESSION), setup)
            .map_err(failed("making the session's file"))?;
        for knob in knobs {
            session.set(knob).map_err(|error| {
                failed("setting a knob")(io::Error::new(io::ErrorKind::InvalidInput, error))
            })?;
        }
        Ok(Hosted { session, directory })
    }
}

/// Sessions that can be looked at: their number and file.
pub fn sessions() -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(directory()) else {
        return Vec::new();
    };
    let mut found: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((number, entry.path().join(SESSION)))
        })
        .filter(|(_, path)| path.exists())
        .collect();
    found.sort_unstable();
    found
}

/// The file of a session, by the number of its process.
pub fn session_of(process: u32) -> PathBuf {
    directory().join(process.to_string()).join(SESSION)
}

/// Removes what sessions have left that were killed and of which no process lives.
fn clean() {
    for (number, path) in sessions() {
        let lives = |pid: u64| Path::new("/proc").join(pid.to_string()).exists();
        if lives(number.into()) {
            continue;
        }
        let used = Session::open(&path).is_ok_and(|session| {
            let mut processes = session.processes();
            processes.any(|process| {
                let pid = process.pid.load(Ordering::Relaxed);
                pid != 0 && lives(pid)
            })
        });
        if !used && let Some(directory) = path.parent() {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// The session's directory; it is removed at the end.
#[derive(Debug)]
struct SessionDirectory(PathBuf);

impl SessionDirectory {
    fn new() -> io::Result<SessionDirectory> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let parent = directory();
        match builder.create(&parent) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // A directory of that name of another user would make the program load their library.
        let metadata = fs::symlink_metadata(&parent)?;
        let ours = {
            use std::os::unix::fs::MetadataExt;
            // SAFETY: it cannot fail.
            metadata.is_dir() && metadata.uid() == unsafe { libc::geteuid() }
        };
        if !ours {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} is not this user's directory", parent.display()),
            ));
        }
        let directory = parent.join(std::process::id().to_string());
        let _ = fs::remove_dir_all(&directory);
        builder.create(&directory)?;
        Ok(SessionDirectory(directory))
    }
}

impl Drop for SessionDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(path)?;
    file.write_all(bytes)
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> TierError {
    move |source| TierError::Io { what, source }
}
