//! Where the tree is seen.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmod, makedev, mknodat, open, readlinkat, statat,
};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, unmount};
use rustix::process::{getegid, geteuid};

use crate::error::{Facility, forbidden};
use crate::{RunError, cpu, module};

/// Directories over which the whole tree can lie for a moment. Every Linux has one of them.
const STAGES: [&str; 5] = ["/tmp", "/mnt", "/run", "/var", "/usr"];

/// A file system of this process, mounted where no other process sees it.
#[derive(Debug)]
pub(crate) struct Stage {
    path: &'static Path,
}

/// Opens FUSE and mounts it; its server gets the descriptor. The session's name is the source of
/// the mount, by which programs distinguish its files from those of other sessions.
///
/// # Errors
/// There is no FUSE, or it is forbidden.
pub(crate) fn stage(session: &str) -> Result<(Stage, OwnedFd), RunError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let fuse = open("/dev/fuse", flags, Mode::empty()).map_err(forbidden(Facility::Fuse))?;
    let stages = STAGES.map(Path::new);
    let found = stages.into_iter().find(|path| path.is_dir());
    let path = found.unwrap_or(Path::new("/"));
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},allow_other,default_permissions",
        fuse.as_raw_fd(),
        geteuid().as_raw(),
        getegid().as_raw(),
    );
    let options = std::ffi::CString::new(options).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(session, path, "fuse.dray", flags, Some(options.as_c_str()))
        .map_err(forbidden(Facility::Fuse))?;
    Ok((Stage { path }, fuse))
}

impl Stage {
    /// Shows a directory of the tree at the same path of the system, which gets a place for it where
    /// it has none.
    pub(crate) fn show(&self, directory: &Path) -> Result<(), RunError> {
        if !directory.is_dir() {
            let parent = directory.parent().unwrap_or(Path::new("/"));
            shadow(parent)?;
            fs::create_dir(directory).map_err(at(directory))?;
        }
        bind(&self.below(directory), directory)
    }

    /// Makes a link beside those of a directory.
    pub(crate) fn link(&self, target: &str, link: &Path) -> Result<(), RunError> {
        let Some(parent) = link.parent().filter(|parent| parent.is_dir()) else {
            return Ok(());
        };
        if fs::symlink_metadata(link).is_ok() {
            return Ok(());
        }
        shadow(parent)?;
        symlink(target, link).map_err(at(link))
    }

    /// Writes a file that everyone can read and execute, beside the things of its directory.
    pub(crate) fn put(&self, bytes: &[u8], file: &Path) -> Result<(), RunError> {
        let parent = file.parent().unwrap_or(Path::new("/"));
        shadow(parent)?;
        // One of a session around this one is hidden by it.
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(file)(error)),
            _ => {}
        }
        fs::write(file, bytes).map_err(at(file))?;
        let everyone = fs::Permissions::from_mode(0o755);
        fs::set_permissions(file, everyone).map_err(at(file))
    }

    /// Makes a directory that everyone can write to, beside the things of its own; it ends with the
    /// session.
    pub(crate) fn directory(&self, path: &Path) -> Result<(), RunError> {
        shadow(path.parent().unwrap_or(Path::new("/")))?;
        if !path.is_dir() {
            fs::create_dir(path).map_err(at(path))?;
        }
        let everyone = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(path, everyone).map_err(at(path))
    }

    /// Has a directory of the session's own written to by its maker alone.
    pub(crate) fn keep(&self, path: &Path) -> Result<(), RunError> {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(at(path))
    }

    fn below(&self, path: &Path) -> PathBuf {
        let relative = path.strip_prefix("/").unwrap_or(path);
        self.path.join(relative)
    }

    /// Takes the whole tree away; what is shown stays.
    pub(crate) fn clear(self) -> Result<(), RunError> {
        unmount(self.path, UnmountFlags::DETACH).map_err(at(self.path))
    }
}

/// Mounts the namespace's own `/proc`.
///
/// # Errors
/// Parts of the present one are masked.
pub(crate) fn proc() -> Result<(), RunError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(forbidden(Facility::Proc))
}

/// Shows the session's list of modules and its processor in `/proc`. Where that is not allowed, lsmod does not list the
/// driver, and nothing else is missing.
pub(crate) fn modules() {
    let list = Path::new(module::LIST);
    if list.exists() {
        let _ = mount_bind(list, "/proc/modules");
    }
    let info = Path::new(cpu::INFO);
    if info.exists() {
        let _ = mount_bind(info, cpu::CPUINFO);
    }
}

fn at<E: Into<io::Error>>(target: &Path) -> impl FnOnce(E) -> RunError {
    let target = target.to_owned();
    move |source| RunError::Mount {
        target,
        source: source.into(),
    }
}

/// With the mounts below: only root may bind a directory without them (mount_namespaces(7)).
fn bind(source: &Path, target: &Path) -> Result<(), RunError> {
    mount_bind_recursive(source, target).map_err(at(target))
}

/// Replaces a directory by one in memory with the same things in it, so that names can be added.
fn shadow(directory: &Path) -> Result<(), RunError> {
    if is_ours(directory)? {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let original = open(directory, flags, Mode::empty()).map_err(at(directory))?;
    let mode = fs::metadata(directory)
        .map_err(at(directory))?
        .permissions();
    let options = format!("mode={:o}", mode.mode() & 0o7777);
    let options = std::ffi::CString::new(options).unwrap_or_default();
    mount(
        OURS,
        directory,
        "tmpfs",
        MountFlags::empty(),
        Some(options.as_c_str()),
    )
    .map_err(at(directory))?;
    let names = Dir::read_from(&original).map_err(at(directory))?;
    for entry in names {
        let entry = entry.map_err(at(directory))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let target = directory.join(OsString::from_vec(name.to_bytes().to_vec()));
        match copy(&original, name, &target) {
            // Something that went away meanwhile.
            Err(RunError::Mount { source, .. }) if source.raw_os_error() == Some(libc::ENOENT) => {}
            result => result?,
        }
    }
    Ok(())
}

/// Where the directory of devices is seen that [`shadow`] covers.
const COVERED: &str = ".dray-covered";

/// The kernel looks for `pts` beside the node by which new terminals are opened (`devpts_acquire`), where a node that is
/// bound alone has nothing. Root makes one of its own; for others it is that of the covered directory, by whose name their
/// terminals are known then.
fn terminals(original: &OwnedFd, ptmx: &Path) -> Result<(), RunError> {
    let mode = Mode::from_raw_mode(0o666);
    let made = mknodat(CWD, ptmx, FileType::CharacterDevice, mode, makedev(5, 2));
    match made.and_then(|()| chmod(ptmx, mode)) {
        Ok(()) => return Ok(()),
        Err(Errno::PERM) => {}
        Err(error) => return Err(at(ptmx)(error)),
    }
    let covered = ptmx.with_file_name(COVERED);
    fs::create_dir(&covered).map_err(at(&covered))?;
    let source = Path::new("/proc/self/fd").join(original.as_raw_fd().to_string());
    bind(&source, &covered)?;
    // What covers the original came with it.
    unmount(&covered, UnmountFlags::DETACH).map_err(at(&covered))?;
    // Devices of the machine stay covered.
    let devices = covered.join("dsa");
    if devices.is_dir() {
        mount(OURS, &devices, "tmpfs", MountFlags::RDONLY, None).map_err(at(&devices))?;
    }
    symlink(Path::new(COVERED).join("ptmx"), ptmx).map_err(at(ptmx))
}

/// Source of the file systems that [`shadow`] mounts.
const OURS: &str = "dray-shadow";

/// Whether [`shadow`] has been here.
fn is_ours(directory: &Path) -> Result<bool, RunError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(forbidden(Facility::Proc))?;
    let Some(text) = directory.to_str() else {
        return Ok(false);
    };
    // The last mount of a place is what is seen there (proc_pid_mountinfo(5)).
    let here = |line: &&str| line.split(' ').nth(4) == Some(text);
    let top = mounts.lines().rfind(here);
    Ok(top.is_some_and(|line| line.contains(&format!(" tmpfs {OURS} "))))
}

/// Puts a thing of the original directory into the one that covers it.
fn copy(original: &OwnedFd, name: &std::ffi::CStr, target: &Path) -> Result<(), RunError> {
    let stat = statat(original, name, AtFlags::SYMLINK_NOFOLLOW).map_err(at(target))?;
    let name_path = PathBuf::from(OsString::from_vec(name.to_bytes().to_vec()));
    let source = Path::new("/proc/self/fd")
        .join(original.as_raw_fd().to_string())
        .join(name_path);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let link = readlinkat(original, name, Vec::new()).map_err(at(target))?;
            symlink(OsString::from_vec(link.into_bytes()), target).map_err(at(target))
        }
        FileType::Directory => {
            fs::create_dir(target).map_err(at(target))?;
            bind(&source, target)
        }
        FileType::CharacterDevice if name == c"ptmx" => terminals(original, target),
        _ => {
            fs::File::create(target).map_err(at(target))?;
            bind(&source, target)
        }
    }
}
