//! What a path leads to.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::place::Place;

/// Links that are followed before a path counts as a circle (`MAXSYMLINKS` of the kernel).
const MAX_LINKS: usize = 40;

/// The end of a path, all links followed.
#[derive(Debug)]
pub(crate) enum Target {
    /// An open file of this process, as `/dev/stdout` and `/dev/fd/N` name one. To open it again by
    /// name would write from its beginning, over what was written there before.
    Descriptor(RawFd),
    /// An open file of another process: not to be replaced, whatever name its link shows.
    Foreign(PathBuf),
    /// A name in a directory that exists; nothing may be there.
    Place { place: Place, path: PathBuf },
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
        let parent = resolve(parent)?;
        let end = parent.join(name);
        if let Some(owner) = owner_of_descriptors(&parent) {
            let number = name.to_str().and_then(|name| name.parse().ok());
            return Ok(match number {
                Some(number) if owner == std::process::id() => Target::Descriptor(number),
                _ => Target::Foreign(end),
            });
        }
        match fs::read_link(&end) {
            Ok(to) => {
                check_owner(&end)?;
                path = parent.join(to);
            }
            // EINVAL: there is something, and it is no link.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    || error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) =>
            {
                let place = Place::new(&parent, name)?;
                return Ok(Target::Place { place, path: end });
            }
            Err(error) => return Err(error),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// A directory's path without links.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut rest = parts(path);
    let (mut at, mut links) = (PathBuf::new(), 0);
    while let Some(part) = rest.pop() {
        match part.as_bytes() {
            b"." => continue,
            b".." => {
                at.pop();
                continue;
            }
            _ => at.push(&part),
        }
        match fs::read_link(&at) {
            Ok(to) => {
                check_owner(&at)?;
                links += 1;
                if links > MAX_LINKS {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                at.pop();
                rest.extend(parts(&to));
            }
            // There is something, and it is no link.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            }
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

/// A link is followed if this user has made it, or the system: another user's may lead to a file that this user would not write.
fn check_owner(link: &Path) -> io::Result<()> {
    let owner = fs::symlink_metadata(link)?.uid();
    // In a namespace of users root can have another number.
    let system = fs::metadata("/")?.uid();
    if [rustix::process::geteuid().as_raw(), 0, system].contains(&owner) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{} is another user's symbolic link", link.display()),
    ))
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

    /// Where a result would be made.
    fn place(path: &Path) -> PathBuf {
        match follow(path) {
            Ok(Target::Place { path, .. }) => path,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn links_are_resolved_to_a_missing_target() {
        let directory = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(directory.path()).unwrap();
        symlink("second", real.join("first")).unwrap();
        symlink("nothing", real.join("second")).unwrap();
        assert_eq!(place(&real.join("first")), real.join("nothing"));
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
    fn links_of_another_user_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(real.join("below")).unwrap();
        for (link, to) in [
            ("file", "nothing"),
            ("folder", "below"),
            ("mine", "folder/../file"),
        ] {
            symlink(to, real.join(link)).unwrap();
        }
        assert_eq!(place(&real.join("folder/name")), real.join("below/name"));
        for link in ["file", "folder"] {
            if std::os::unix::fs::lchown(real.join(link), Some(65534), None).is_err() {
                eprintln!("skipped: only root can give a link away");
                return;
            }
        }
        for path in ["file", "folder/name", "mine"] {
            let error = follow(&real.join(path)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{path}");
            assert!(error.to_string().contains("another user's"), "{error}");
        }
    }

    #[test]
    fn paths_of_proc_self_fd_are_open_descriptors() {
        for path in ["/proc/self/fd/7", "/proc/thread-self/fd/7"] {
            let found = follow(Path::new(path)).unwrap();
            assert!(matches!(found, Target::Descriptor(7)), "{found:?}");
        }
        let of_init = Path::new("/proc/1/fd/1");
        if fs::canonicalize("/proc/1/fd").is_ok() && std::process::id() != 1 {
            let found = follow(of_init).unwrap();
            assert!(matches!(found, Target::Foreign(path) if path == of_init));
        }
    }
}
