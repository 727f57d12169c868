//! Paths without a heap, and where execvp(3) looks for a program.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, FileType, statat};

/// Longer paths the kernel does not take (`PATH_MAX`, with the zero at its end).
const LONGEST: usize = 4096;
/// Where execvp(3) looks without `PATH`.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// A path of its own.
#[derive(Debug, Clone)]
pub struct Path {
    bytes: [u8; LONGEST],
    /// Without the zero.
    length: usize,
}

impl Path {
    /// These parts, one behind the other; `None` if they are too long or have a zero inside.
    pub(crate) fn new(parts: &[&[u8]]) -> Option<Path> {
        let mut path = Path {
            bytes: [0; LONGEST],
            length: 0,
        };
        for part in parts {
            let end = path.length + part.len();
            if end >= LONGEST || part.contains(&0) {
                return None;
            }
            path.bytes[path.length..end].copy_from_slice(part);
            path.length = end;
        }
        Some(path)
    }

    /// It, for system calls.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// It, for everyone else.
    pub fn as_path(&self) -> &std::path::Path {
        std::path::Path::new(std::ffi::OsStr::from_bytes(&self.bytes[..self.length]))
    }
}

/// The file that a command names, as execvp(3) looks for it in `PATH`, if it has one.
pub fn find(command: &CStr, directories: Option<&CStr>) -> Option<Path> {
    let command = command.to_bytes();
    if command.is_empty() {
        return None;
    }
    if command.contains(&b'/') {
        return Path::new(&[command]).filter(is_executable);
    }
    let directories = directories.map_or(DEFAULT_PATH, CStr::to_bytes);
    directories
        .split(|byte| *byte == b':')
        .filter_map(|directory| match directory {
            // The working directory.
            [] => Path::new(&[command]),
            directory => Path::new(&[directory, b"/", command]),
        })
        .find(is_executable)
}

fn is_executable(path: &Path) -> bool {
    statat(CWD, path.as_c_str(), AtFlags::empty()).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        kind == FileType::RegularFile && stat.st_mode & 0o111 != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn commands_are_found_where_exec_finds_them() {
        let directory = tempfile::tempdir().unwrap();
        let make = |name: &str, mode| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        make("a/tool", 0o644);
        make("b/tool", 0o755);
        std::fs::create_dir(directory.path().join("a/other")).unwrap();
        let root = directory.path().display();
        let directories = CString::new(format!("/not/there::{root}/a:{root}/b")).unwrap();
        let found =
            |name: &CStr| find(name, Some(&directories)).map(|path| path.as_path().to_owned());
        assert_eq!(found(c"tool"), Some(directory.path().join("b/tool")));
        assert_eq!(found(c"other"), None);
        assert_eq!(found(c""), None);
        assert!(find(c"sh", None).is_some());
        let path = CString::new(format!("{root}/b/tool")).unwrap();
        assert!(find(&path, None).is_some());
    }

    #[test]
    fn a_path_that_is_too_long_is_none() {
        assert!(Path::new(&[&[b'a'; LONGEST - 1]]).is_some());
        assert!(Path::new(&[&[b'a'; LONGEST - 1], b"b"]).is_none());
        assert!(Path::new(&[b"a\0b"]).is_none());
        let joined = Path::new(&[b"/bin", b"/", b"sh"]).unwrap();
        assert_eq!(joined.as_c_str(), c"/bin/sh");
    }
}
