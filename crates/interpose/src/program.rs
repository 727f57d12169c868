//! What kind of file a program is: whether it loads the preload library.
//!
//! Nothing here allocates or calls the C library: it runs in children of vfork(2).

mod elf;
mod path;

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, accessat, fgetxattr, fstat, openat, statat,
};
use rustix::io::{Errno, pread};
use rustix::process::{getgid, getuid};
use rustix::thread::no_new_privs;
use thiserror::Error;

pub use path::Path;

/// Interpreters of interpreters: the kernel follows as many (`bprm_execve`).
const DEPTH: usize = 5;
/// The kernel reads as much of a script's first line (`BINPRM_BUF_SIZE`).
const FIRST_LINE: usize = 256;

/// Whether a program loads the preload library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreloadSupport {
    /// The dynamic linker is there to do it.
    Native,
    /// It does not.
    Hindered(Obstacle),
}

/// Why a program does not load the preload library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Obstacle {
    /// No `PT_INTERP`.
    #[error("is statically linked")]
    Static,
    /// The dynamic linker obeys no environment then (ld.so(8), secure-execution mode).
    #[error("has privileges of its own")]
    Privileged,
    /// Another processor's.
    #[error("is no program for x86-64")]
    Machine,
    /// `PT_INTERP` names another dynamic linker than glibc's, which cannot load a library made for glibc.
    #[error("is linked with another C library than glibc")]
    Linker,
    /// Its runtime makes system calls itself, past the C library.
    #[error("makes system calls itself, as Go programs do")]
    RawCalls,
    /// The environment that it is given has neither the library nor the session's socket.
    #[error("is started without dray's LD_PRELOAD or DRAY_SOCKET")]
    Environment,
}

/// Why nothing can be said about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UnknownError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] Errno),
    /// It is neither ELF nor a script: exec(2) decides.
    #[error("it is neither ELF nor a script")]
    NoElf,
    /// The table of program headers has entries of another size than the ABI's.
    #[error("its program headers have {bytes} bytes each, and are {count}")]
    Headers {
        /// Bytes of an entry.
        bytes: u16,
        /// Entries.
        count: u16,
    },
}

/// Whether a program loads the preload library, or the interpreter does that executes it.
///
/// # Errors
/// It cannot be read, or is what the kernel would not execute.
pub fn kind(path: &CStr) -> Result<PreloadSupport, UnknownError> {
    kind_at(CWD, path)
}

/// As [`kind`], of a path that begins at an open directory.
///
/// # Errors
/// As for [`kind`].
pub fn kind_at(directory: BorrowedFd<'_>, path: &CStr) -> Result<PreloadSupport, UnknownError> {
    let mut file = open(directory, path)?;
    for _ in 0..DEPTH {
        let mut start = [0; FIRST_LINE];
        let length = read_at_most(&file, &mut start, 0)?;
        let start = &start[..length];
        if let Some(line) = start.strip_prefix(b"#!") {
            let mut path = Path::<FIRST_LINE>::empty();
            let interpreter = interpreter(line).and_then(|word| path.set(&[word]));
            file = open(CWD, interpreter.ok_or(UnknownError::NoElf)?)?;
            continue;
        }
        return match is_privileged(&file)? {
            true => Ok(PreloadSupport::Hindered(Obstacle::Privileged)),
            false => elf::kind(&file, start),
        };
    }
    Err(UnknownError::NoElf)
}

/// Opens a program; nothing else than a file, for to open it may be to change something.
fn open(directory: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, UnknownError> {
    let stat = statat(directory, path, AtFlags::empty())?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(UnknownError::NoElf);
    }
    // Also where the file system has no programs (`noexec`).
    accessat(directory, path, Access::EXEC_OK, AtFlags::EACCESS)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(openat(directory, path, flags, Mode::empty())?)
}

/// The first word after `#!`.
fn interpreter(line: &[u8]) -> Option<&[u8]> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t' | 0));
    words.find(|word| !word.is_empty())
}

/// Whether it would run in secure-execution mode (`AT_SECURE`).
fn is_privileged(file: &OwnedFd) -> Result<bool, UnknownError> {
    let stat = fstat(file)?;
    let (user, group) = (getuid(), getgid());
    let none: &mut [u8] = &mut [];
    // Root has all capabilities anyway (capabilities(7)).
    let capable = || fgetxattr(file, c"security.capability", none).is_ok_and(|bytes| bytes > 0);
    let changes = changes_user(&stat, user.as_raw(), group.as_raw());
    Ok((changes || !user.is_root() && capable()) && !no_new_privs()?)
}

/// What stat(2) returns for users and groups that the namespace does not map (user_namespaces(7)); exec does
/// not change to one of them. Where the namespace maps this number it is an ordinary user.
const UNKNOWN: u32 = 65534;

/// Whether the namespace of this process maps the number, by `/proc/self/uid_map` or `gid_map`.
fn maps_unknown_of_this_process(map: &CStr) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut text = [0; 1024];
    let read = openat(CWD, map, flags, Mode::empty())
        .and_then(|file| read_at_most(&file, &mut text, 0))
        .unwrap_or(0);
    maps_unknown(&text[..read])
}

/// Lines of first number inside, first number outside, count.
fn maps_unknown(text: &[u8]) -> bool {
    let number = |word: &[u8]| str::from_utf8(word).ok()?.parse::<u64>().ok();
    text.split(|byte| *byte == b'\n').any(|line| {
        let mut words = line
            .split(|byte| *byte == b' ')
            .filter(|word| !word.is_empty());
        let first = words.next().and_then(number);
        let count = words.nth(1).and_then(number);
        let (Some(first), Some(count)) = (first, count) else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&u64::from(UNKNOWN))
    })
}

fn changes_user(file: &Stat, user: u32, group: u32) -> bool {
    const SETUID: u32 = 0o4000;
    /// Without the second bit it is mandatory locking.
    const SETGID: u32 = 0o2010;
    let changes = |bits, to, from, map| {
        file.st_mode & bits == bits
            && to != from
            && (to != UNKNOWN || maps_unknown_of_this_process(map))
    };
    changes(SETUID, file.st_uid, user, c"/proc/self/uid_map")
        || changes(SETGID, file.st_gid, group, c"/proc/self/gid_map")
}

fn read_at_most(file: &OwnedFd, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < bytes.len() {
        // No file is as long as an offset that does not fit.
        let Some(at) = offset.checked_add(filled as u64) else {
            break;
        };
        match pread(file, &mut bytes[filled..], at) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(Errno::INTR) => (),
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::elf::tests::program;
    use super::*;
    use std::ffi::CString;
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    fn name(path: &std::path::Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    fn executable(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        permit(&file, 0o755);
        file
    }

    fn permit(file: &tempfile::NamedTempFile, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(file.path(), mode).unwrap();
    }

    fn written(bytes: &[u8]) -> Result<PreloadSupport, UnknownError> {
        kind(&name(executable(bytes).path()))
    }

    #[test]
    fn this_program_is_recognised_as_static_or_dynamic() {
        let path = std::env::current_exe().unwrap();
        let expected = match cfg!(target_feature = "crt-static") {
            true => PreloadSupport::Hindered(Obstacle::Static),
            false => PreloadSupport::Native,
        };
        assert_eq!(kind(&name(&path)), Ok(expected));
    }

    #[test]
    fn the_overflow_id_is_found_in_a_uid_map() {
        assert!(maps_unknown(b"         0          0 4294967295\n"));
        assert!(maps_unknown(b"0 1000 1\n65534 65534 1\n"));
        for text in ["", "0 0 1", "0 1000 65534", "65535 0 9", "x y z", "65534"] {
            assert!(!maps_unknown(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_script_has_the_kind_of_its_interpreter() {
        let file = executable(&program(&[1]));
        let path = file.path().to_str().unwrap().to_owned();
        let script = format!("#! {path} -x\nwords");
        let hindered = PreloadSupport::Hindered(Obstacle::Static);
        assert_eq!(written(script.as_bytes()), Ok(hindered));
        assert_eq!(written(b"#!\n"), Err(UnknownError::NoElf));
        let missing = Err(UnknownError::Read(Errno::NOENT));
        assert_eq!(written(b"#!/not/there\n"), missing);
    }

    #[test]
    fn a_script_that_is_its_own_interpreter_is_refused() {
        let mut file = executable(b"");
        let path = file.path().to_owned();
        writeln!(file, "#!{}", path.display()).unwrap();
        assert_eq!(kind(&name(&path)), Err(UnknownError::NoElf));
    }

    #[test]
    fn the_kind_of_a_file_without_permission_is_unknown() {
        let file = executable(&program(&[1]));
        permit(&file, 0o644);
        let denied = Err(UnknownError::Read(Errno::ACCESS));
        assert_eq!(kind(&name(file.path())), denied);
    }

    #[test]
    fn pipes_and_directories_are_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = name(&directory.path().join("pipe"));
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(kind(&pipe), Err(UnknownError::NoElf));
        assert_eq!(kind(&name(directory.path())), Err(UnknownError::NoElf));
    }

    #[test]
    fn a_setuid_or_setgid_program_ignores_the_environment() {
        let file = tempfile::tempfile().unwrap();
        let mut stat = fstat(&file).unwrap();
        (stat.st_uid, stat.st_gid) = (5, 6);
        let cases = [
            (0o755, 1000, 1000, false),
            (0o4755, 1000, 1000, true),
            (0o4755, 5, 1000, false),
            (0o2755, 5, 1000, true),
            (0o2745, 5, 1000, false),
            (0o6755, 5, 6, false),
        ];
        for (mode, user, group, expected) in cases {
            stat.st_mode = 0o100_000 | mode;
            let changes = changes_user(&stat, user, group);
            assert_eq!(changes, expected, "{mode:o} {user} {group}");
        }
        stat.st_mode = 0o104_755;
        stat.st_uid = UNKNOWN;
        let known = maps_unknown_of_this_process(c"/proc/self/uid_map");
        assert_eq!(changes_user(&stat, 0, 0), known);
    }
}
