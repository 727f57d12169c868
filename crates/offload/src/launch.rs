//! Starting a program with the shared object loaded, and waiting for its end.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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
    let mut variables = vec![(SESSION, session.into_os_string())];
    variables.extend_from_slice(launch.variables);
    let ended = dray_interpose::start(Some(&library), &variables, launch.program)?;
    Ok(Ended {
        code: ended.code,
        signal: ended.signal,
        stats,
    })
}
