//! The program that is started: whether it loads a preload library.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use dray_interpose::program::{Obstacle, PreloadSupport, kind};

use crate::complain::Usage;

/// Refuses programs that load no preload library. One that is not there, or is no program, its
/// execution refuses.
pub(super) fn check(program: &OsStr) -> anyhow::Result<()> {
    let Some(path) = find(program) else {
        return Ok(());
    };
    let text = CString::new(OsString::from(&path).as_bytes())?;
    match kind(&text) {
        Ok(PreloadSupport::Hindered(Obstacle::RawCalls)) => {
            eprintln!(
                "warning: {} has a runtime of its own, as Go programs do: copies that do not go \
                 through the C library are not taken",
                path.display()
            );
            Ok(())
        }
        Ok(PreloadSupport::Hindered(obstacle)) => Err(Usage::error(
            format!("{} {obstacle}: it loads no preload library", path.display()),
            "take a dynamically linked build of it, and one without privileges of its own",
        )),
        Ok(PreloadSupport::Native) | Err(_) => Ok(()),
    }
}

/// Whether there is such a program that may be executed: what is to be recorded in stays as it is otherwise.
pub(crate) fn starts(program: &OsStr) -> bool {
    let meta = find(program).and_then(|path| path.metadata().ok());
    meta.is_some_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(program));
    places.find(|place| place.is_file())
}
