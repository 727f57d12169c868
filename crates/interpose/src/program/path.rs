//! Paths without a heap, and where execvp(3) looks for a program.

use std::ffi::CStr;

use rustix::fs::{AtFlags, CWD, FileType, statat};

/// Longer paths the kernel does not take (`PATH_MAX`, with the zero at its end).
const LONGEST: usize = 4096;
/// Where execvp(3) looks without `PATH`.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// A path of its own, of less than so many bytes: the stack may be a signal handler's.
#[derive(Debug, Clone)]
pub struct Path<const ROOM: usize = LONGEST> {
    /// With zeros at its end, one or more.
    bytes: [u8; ROOM],
}

impl<const ROOM: usize> Path<ROOM> {
    /// None yet.
    pub const fn empty() -> Self {
        Path { bytes: [0; ROOM] }
    }

    /// These parts, one behind the other; `None` if they are too long or have a zero inside.
    pub fn set(&mut self, parts: &[&[u8]]) -> Option<&CStr> {
        let mut length = 0;
        for part in parts {
            let end = length + part.len();
            if end >= ROOM || part.contains(&0) {
                return None;
            }
            self.bytes[length..end].copy_from_slice(part);
            length = end;
        }
        self.bytes[length..].fill(0);
        CStr::from_bytes_until_nul(&self.bytes).ok()
    }

    /// The file that a command names, as execvp(3) looks for it in `PATH`, if it has one.
    pub fn find(&mut self, command: &CStr, directories: Option<&CStr>) -> Option<&CStr> {
        let command = command.to_bytes();
        if command.is_empty() {
            return None;
        }
        if command.contains(&b'/') {
            return self.set(&[command]).filter(|path| is_executable(path));
        }
        let directories = directories.map_or(DEFAULT_PATH, CStr::to_bytes);
        for directory in directories.split(|byte| *byte == b':') {
            let path = match directory {
                // The working directory.
                [] => self.set(&[command]),
                directory => self.set(&[directory, b"/", command]),
            };
            if path.is_some_and(is_executable) {
                return CStr::from_bytes_until_nul(&self.bytes).ok();
            }
        }
        None
    }
}

fn is_executable(path: &CStr) -> bool {
    statat(CWD, path, AtFlags::empty()).is_ok_and(|stat| {
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
        let mut path: Path = Path::empty();
        let tool = CString::new(format!("{root}/b/tool")).unwrap();
        assert_eq!(path.find(c"tool", Some(&directories)), Some(&*tool));
        assert_eq!(path.find(c"other", Some(&directories)), None);
        assert_eq!(path.find(c"", Some(&directories)), None);
        assert!(path.find(c"sh", None).is_some());
        assert_eq!(path.find(&tool, None), Some(&*tool));
    }

    #[test]
    fn a_path_that_is_too_long_is_refused() {
        let mut path = Path::<8>::empty();
        assert_eq!(path.set(&[b"/bin", b"/", b"sh"]), Some(c"/bin/sh"));
        assert_eq!(path.set(&[b"/bin/bash"]), None);
        assert_eq!(path.set(&[b"/bin/", b"ash"]), None);
        assert_eq!(path.set(&[b"a\0b"]), None);
        assert_eq!(path.set(&[b"/a"]), Some(c"/a"));
    }
}
