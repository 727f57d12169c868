//! Starting a program with the preload library, and waiting for its end.

mod place;

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::session::{Session, Setup, VARIABLE};
use crate::sys::damon;
use crate::tracking::Tracking;
use crate::{TierError, untiered};
use place::Place;

/// File of the session, and of the library, in the session's directory.
const SESSION: &str = "session";
const LIBRARY: &str = "libdray_tier_preload.so";

/// How often, and how long apart, it is looked for children once the program has ended.
const LAST_LOOKS: u32 = 100;
const LAST_LOOK: Duration = Duration::from_millis(2);

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
        adopt_orphans();
        let result = dray_interpose::start(Some(&library), &variables, &launch.program);
        reap_agents();
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

/// Runs a program to its end as it is, and `step` beside it, each time after as long as it says; its exit code, or the
/// signal that ended it. Its orphans become children of this process.
///
/// # Errors
/// Of `step`, once the program has ended: without it the program goes on.
pub fn run_beside(
    program: &[OsString],
    mut step: impl FnMut() -> Result<Option<Duration>, TierError> + Send,
) -> Result<(u8, Option<i32>), TierError> {
    let (end, ended) = mpsc::channel::<()>();
    let (ended, stepped) = thread::scope(|scope| {
        adopt_orphans();
        let steps = scope.spawn(move || {
            while let Some(pause) = step()? {
                if ended.recv_timeout(pause) != Err(mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
            Ok::<(), TierError>(())
        });
        let result = dray_interpose::start(None, &[], program);
        drop(end);
        let stepped = steps.join().expect("it does not panic");
        (result, stepped)
    });
    let ended = ended.map_err(failed("running the program"))?;
    stepped?;
    Ok((ended.code, ended.signal))
}

/// Agents are children of no program, so that none waits for one: they become this process's, which reaps them. So do
/// processes whose parents have ended.
fn adopt_orphans() {
    // SAFETY: it changes this process alone.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Waits for agents of programs that have ended, which end at once; the memory is free then.
fn reap_agents() {
    for _ in 0..LAST_LOOKS {
        // SAFETY: it asks alone.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            // Programs that go on in the background have agents too.
            0 => thread::sleep(LAST_LOOK),
            pid if pid > 0 => {}
            _ => break,
        }
    }
}

/// A session that others find, as long as this lives.
#[derive(Debug)]
pub struct Hosted {
    /// The session.
    pub session: Session,
    directory: Place,
}

impl Hosted {
    /// A new session with these knobs, `NAME=NUMBER`.
    ///
    /// # Errors
    /// No directory for its files; no such knob.
    pub fn new(setup: &Setup, knobs: &[String]) -> Result<Hosted, TierError> {
        clean();
        let directory = Place::new().map_err(failed("making the session's directory"))?;
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
    let all = place::all().into_iter();
    let files = all.map(|(number, directory)| (number, directory.join(SESSION)));
    let mut found: Vec<(u32, PathBuf)> = files.filter(|(_, path)| path.exists()).collect();
    found.sort_unstable();
    found
}

/// The file of a session, by the number of its process.
pub fn session_of(process: u32) -> Option<PathBuf> {
    let mut all = sessions().into_iter();
    all.find_map(|(number, path)| (number == process).then_some(path))
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

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    // Whatever the umask is.
    file.set_permissions(fs::Permissions::from_mode(0o755))?;
    file.write_all(bytes)
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> TierError {
    move |source| TierError::Io { what, source }
}
