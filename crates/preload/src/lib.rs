//! The shared objects that `dray run`, `dray tier` and `dray offload` have programs load, as bytes.
//!
//! Cargo gives a program no way on stable Rust to depend on a shared object of another package. So
//! this package's build script has cargo build `dray-portal` once more, as one, in a directory of
//! its own and with a profile of its own, and the bytes become part of each crate that depends on this.
//! That is why it needs nothing but a checkout of the workspace, and works the same by `cargo run`,
//! `cargo test` and `cargo install --path`.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// File name of the shared object.
pub const NAME: &str = "libdray_portal.so";

#[cfg(dray_preload)]
const BYTES: Option<&[u8]> = Some(include_bytes!(concat!(
    env!("OUT_DIR"),
    "/libdray_portal.so"
)));
#[cfg(not(dray_preload))]
const BYTES: Option<&[u8]> = None;

#[cfg(dray_preload)]
const TIER: Option<&[u8]> = Some(include_bytes!(concat!(
    env!("OUT_DIR"),
    "/libdray_tier_preload.so"
)));
#[cfg(not(dray_preload))]
const TIER: Option<&[u8]> = None;

#[cfg(dray_preload)]
const OFFLOAD: Option<&[u8]> = Some(include_bytes!(concat!(
    env!("OUT_DIR"),
    "/libdray_offload.so"
)));
#[cfg(not(dray_preload))]
const OFFLOAD: Option<&[u8]> = None;

/// The shared object of `dray offload`; `None` where there is none, as for [`tier_library`].
pub fn offload_library() -> Option<&'static [u8]> {
    OFFLOAD
}

/// The shared object of `dray tier`; `None` where there is none: it exists for x86-64 Linux with
/// glibc.
pub fn tier_library() -> Option<&'static [u8]> {
    TIER
}

/// The shared object; `None` where there is none: it exists for x86-64 Linux with glibc.
pub fn library() -> Option<&'static [u8]> {
    BYTES
}

/// Writes the shared object into `directory`, for its owner to write and everybody to load and
/// execute; where it is.
///
/// # Errors
/// The file is there already or cannot be written; there is no shared object for this platform.
pub fn write_to(directory: &Path) -> io::Result<PathBuf> {
    let bytes = library().ok_or(io::ErrorKind::Unsupported)?;
    let path = directory.join(OsStr::new(NAME));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(&path)?;
    file.write_all(bytes)?;
    Ok(path)
}

#[cfg(all(test, dray_preload))]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_a_shared_object_and_exports_its_hooks() {
        let bytes = library().expect("this platform has it");
        assert_eq!(&bytes[..4], b"\x7fELF");
        // e_type: ET_DYN.
        assert_eq!(bytes[16..18], [3, 0]);
        let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        for name in [
            "mmap",
            "mmap64",
            "munmap",
            "mprotect",
            "madvise",
            "close",
            "sigaction",
            "signal",
            "open64",
            "write",
            "realpath",
            "stat",
            "execl",
            "execle",
            "execlp",
            "execv",
            "execve",
            "execveat",
            "execvp",
            "execvpe",
            "fexecve",
            "posix_spawn",
            "posix_spawnp",
            "syscall",
            "__tsan_read1",
            "__tsan_atomic8_load",
            "_ZN6__tsan8OnReportEPKNS_10ReportDescEb",
        ] {
            assert!(holds(format!("\0{name}\0").as_bytes()), "{name}");
        }
    }
}
