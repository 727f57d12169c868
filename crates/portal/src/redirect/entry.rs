//! Names that are looked up from a directory: where they are in the tree.

use std::ffi::{CStr, c_char, c_int};

use super::path::{FilePath, Use, place};
use super::redirection;
use super::text::Text;
use crate::syscall::{Answer, close, syscall};

/// Room for a path that the kernel takes.
const PATH: usize = libc::PATH_MAX as usize;

/// The file in the directory that `path` names, looked up from `at`, by its directory's own name;
/// `None` for all others, and where there is no such directory.
///
/// # Safety
/// `path` is null or a text with its end.
pub(crate) unsafe fn entry(at: c_int, path: *const c_char) -> Option<FilePath> {
    redirection()?;
    // SAFETY: the caller vouches for the path.
    let first = unsafe { path.as_ref() }?;
    if *first == b'/' as c_char {
        // SAFETY: as above.
        return unsafe { place(path, Use::Entry) };
    }
    // SAFETY: as above; and it is not null.
    relative(at, unsafe { CStr::from_ptr(path) }.to_bytes())
}

#[inline(never)]
fn relative(at: c_int, path: &[u8]) -> Option<FilePath> {
    let redirection = redirection()?;
    let (parent, name) = parts(path)?;
    let mut directory = if parent.is_empty() {
        named(at)?
    } else {
        let fd = open(at, parent)?;
        let directory = named(fd);
        close(fd);
        directory?
    };
    let rest = directory.as_bytes().strip_prefix(redirection.root)?;
    let within = rest.is_empty() || rest[0] == b'/';
    (within && directory.push(b"/") && directory.push(name)).then_some(directory)
}

/// The directory that a path is looked up in, and the name that is sought there.
fn parts(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let last = path.iter().rposition(|byte| *byte != b'/')?;
    let slash = path[..last].iter().rposition(|byte| *byte == b'/');
    Some(path.split_at(slash.map_or(0, |slash| slash + 1)))
}

/// What the kernel calls a directory.
fn named(fd: c_int) -> Option<FilePath> {
    let mut link = Text::<40>::new();
    let fits = match u32::try_from(fd) {
        Ok(fd) => link.push(b"/proc/self/fd/") && link.push_number(fd),
        Err(_) => fd == libc::AT_FDCWD && link.push(b"/proc/self/cwd"),
    };
    let mut name = FilePath::new();
    name.fill(|room| {
        let (room, size) = (room.as_mut_ptr().addr(), room.len());
        let arguments = [link.as_ptr().addr(), room, size, 0, 0, 0];
        // SAFETY: a text with its end, and room for as many bytes as it says.
        unsafe { syscall(libc::SYS_readlink, arguments) }.unwrap_or(0)
    });
    fits.then_some(name)
}

fn open(at: c_int, path: &[u8]) -> Option<c_int> {
    let mut text = Text::<PATH>::new();
    if !text.push(path) {
        return None;
    }
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let arguments = [at as usize, text.as_ptr().addr(), flags as usize, 0, 0, 0];
    // SAFETY: a text with its end.
    let opened = unsafe { syscall(libc::SYS_openat, arguments) };
    opened.ok().map(|fd| fd as c_int)
}

/// Whether there is something at a place; links are not followed.
pub(crate) fn is_there(place: &FilePath) -> bool {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    let arguments = [place.as_ptr().addr(), stat.as_mut_ptr().addr(), 0, 0, 0, 0];
    // SAFETY: a text with its end, and room for the answer.
    let answer: Answer = unsafe { syscall(libc::SYS_lstat, arguments) };
    answer.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_before_their_last_name() {
        for (path, parent, name) in [
            ("size", "", "size"),
            ("a//size//", "a//", "size//"),
            ("../..", "../", ".."),
        ] {
            let expected = Some((parent.as_bytes(), name.as_bytes()));
            assert_eq!(parts(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(parts(b""), None);
    }

    #[test]
    fn directory_descriptors_are_named_by_proc_self_fd() {
        let here = std::env::current_dir().unwrap();
        let name = named(libc::AT_FDCWD).unwrap();
        assert_eq!(name.as_bytes(), here.as_os_str().as_encoded_bytes());
        let fd = open(libc::AT_FDCWD, b"./.").unwrap();
        assert_eq!(named(fd).unwrap().as_bytes(), name.as_bytes());
        close(fd);
        assert!(is_there(&name));
    }
}
