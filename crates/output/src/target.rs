//! What a path leads to.

use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// Links that are followed before a path counts as a circle (`MAXSYMLINKS` of the kernel).
const MAX_LINKS: usize = 40;

/// The end of a path, all links followed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An open file of this process, as `/dev/stdout` and `/dev/fd/N` name one. To open it again by
    /// name would write from its beginning, over what was written there before.
    Descriptor(RawFd),
    /// An open file of another process: not to be replaced, whatever name its link shows.
    Foreign(PathBuf),
    /// A name in a directory that exists; nothing may be there.
    Path(PathBuf),
}

/// Follows a path to its end.
///
/// # Errors
/// No file name, a directory that does not exist, a circle of links.
pub(crate) fn follow(path: &Path) -> io::Result<Target> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..MAX_LINKS {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path names no file",
            ));
        };
        let parent = fs::canonicalize(parent)?;
        let end = parent.join(name);
        if let Some(owner) = owner_of_descriptors(&parent) {
            let number = name.to_str().and_then(|name| name.parse().ok());
            return Ok(match number {
                Some(number) if owner == std::process::id() => Target::Descriptor(number),
                _ => Target::Foreign(end),
            });
        }
        match fs::read_link(&end) {
            Ok(to) => path = parent.join(to),
            // EINVAL: there is something, and it is no link.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    || error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) =>
            {
                return Ok(Target::Path(end));
            }
            Err(error) => return Err(error),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Whose open files a directory lists: `/proc/PID/fd` or `/proc/PID/task/TID/fd`.
fn owner_of_descriptors(directory: &Path) -> Option<u32> {
    let below = directory.strip_prefix("/proc").ok()?.to_str()?;
    let parts: Vec<&str> = below.split('/').collect();
    match parts[..] {
        [pid, "fd"] | [pid, "task", _, "fd"] => pid.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_resolved_to_a_missing_target() {
        let directory = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(directory.path()).unwrap();
        symlink("second", real.join("first")).unwrap();
        symlink("nothing", real.join("second")).unwrap();
        let found = follow(&real.join("first")).unwrap();
        assert_eq!(found, Target::Path(real.join("nothing")));
        symlink("round", real.join("round")).unwrap();
        let error = follow(&real.join("round")).unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(rustix::io::Errno::LOOP.raw_os_error())
        );
        assert!(follow(&real.join("missing/file")).is_err());
        assert!(follow(Path::new("/")).is_err());
    }

    #[test]
    fn paths_of_proc_self_fd_are_open_descriptors() {
        assert_eq!(
            follow(Path::new("/proc/self/fd/7")).unwrap(),
            Target::Descriptor(7)
        );
        assert_eq!(
            follow(Path::new("/proc/thread-self/fd/7")).unwrap(),
            Target::Descriptor(7)
        );
        let of_init = Path::new("/proc/1/fd/1");
        if fs::canonicalize("/proc/1/fd").is_ok() && std::process::id() != 1 {
            assert_eq!(follow(of_init).unwrap(), Target::Foreign(of_init.into()));
        }
    }
}
