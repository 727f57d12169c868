//! How a preload library is named so that glibc loads it, and no other dynamic linker.
//!
//! musl's ends a program whose preload library needs glibc's libraries, and passes over one that it does not find.
//! glibc replaces `$ORIGIN` in a name of `LD_PRELOAD` by the directory of the program (ld.so(8)); musl does not. From
//! there enough steps upwards lead to the root, where one step more stays.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const ORIGIN: &[u8] = b"$ORIGIN";
const UP: &[u8] = b"/..";
/// Directories in which a program is found, at most.
const DEPTH: usize = 64;

/// The name of a library, for glibc alone. Its path is absolute.
pub fn for_glibc(library: &Path) -> OsString {
    let path = library.as_os_str().as_bytes();
    OsString::from_vec([ORIGIN, &UP.repeat(DEPTH), path].concat())
}

/// The path of a library that may have such a name.
pub fn plain(name: &OsStr) -> &Path {
    let bytes = name.as_bytes();
    let mut path = bytes.strip_prefix(ORIGIN).unwrap_or(bytes);
    while let Some(rest) = path.strip_prefix(UP).filter(|_| path.len() < bytes.len()) {
        path = rest;
    }
    Path::new(OsStr::from_bytes(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_path_of_a_name_is_the_librarys() {
        for path in ["/dev/.dray-portal.so", "/tmp/a b/../x.so"] {
            let path = Path::new(path);
            assert_eq!(plain(&for_glibc(path)), path);
            assert_eq!(plain(path.as_os_str()), path);
        }
        assert_eq!(plain(OsStr::new("/../x.so")), Path::new("/../x.so"));
        assert_eq!(plain(OsStr::new("x.so")), Path::new("x.so"));
    }
}
