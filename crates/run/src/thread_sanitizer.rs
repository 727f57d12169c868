//! Whether a command has ThreadSanitizer, as `--sanitize=thread` needs it: as a shared object, so that its reads of records
//! come to the preload library.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::{Object, ObjectSymbol, ReadCache};

use crate::RunError;

/// Looks at a command before it is started. A word of it may be the program that another one starts, as after timeout(1).
///
/// # Errors
/// No word names a program with ThreadSanitizer as a shared object.
pub(crate) fn check(command: &[OsString]) -> Result<(), RunError> {
    // A program that loads libraries with ThreadSanitizer, as interpreters do, has it preloaded.
    let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let names = [&b"libtsan."[..], b"libclang_rt.tsan"];
    let is_preloaded = names.iter().any(|name| {
        let mut windows = preloaded.as_bytes().windows(name.len());
        windows.any(|window| window == *name)
    });
    let has = |word: &OsString| found(word).is_some_and(|path| calls_runtime(&path));
    match is_preloaded || command.iter().any(has) {
        true => Ok(()),
        false => Err(RunError::NoThreadSanitizer {
            program: command.first().map(PathBuf::from).unwrap_or_default(),
        }),
    }
}

/// The program of a name, which is looked up in `PATH` if it is no path.
fn found(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|directory| directory.join(name));
    files.find(|file| file.is_file())
}

/// Whether a program has the runtime from a shared object.
fn calls_runtime(path: &Path) -> bool {
    // To open another kind of file may be to change something.
    if !path.is_file() {
        return false;
    }
    let Ok(file) = File::open(path) else {
        return false;
    };
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else {
        return false;
    };
    let mut symbols = object.dynamic_symbols();
    symbols.any(|symbol| symbol.is_undefined() && symbol.name() == Ok("__tsan_init"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_thread_sanitizer_is_refused_with_the_flag() {
        for command in [
            &["/bin/true"][..],
            &["sh", "-c", "true"],
            &["/not/there"],
            &[],
        ] {
            let words: Vec<OsString> = command.iter().map(OsString::from).collect();
            let error = check(&words).expect_err("it has none");
            assert!(error.is_bad_input());
            let hint = error.hint().expect("the flag");
            assert!(hint.contains("-fsanitize=thread"), "{hint}");
        }
    }
}
