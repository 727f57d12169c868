//! A directory as a sysfs: `/sys` itself, or one of the same shape.

use std::ffi::{CString, OsStr};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dray_wire::{REDIRECT_VARIABLE, Redirection, STATE_DIRECTORY};
use rustix::fs::OFlags;

use crate::tree::{MAX_BYTES, Tree, TreeError};

/// `f_type` of sysfs and of FUSE (`linux/magic.h`, `fs/fuse/inode.c`).
const SYSFS_MAGIC: i64 = 0x6265_6572;
const FUSE_MAGIC: i64 = 0x6573_5546;

/// A directory in the place of `/sys`.
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
    /// `f_type` of the file system with the devices.
    kind: i64,
}

impl Directory {
    /// Opens a directory.
    ///
    /// # Errors
    /// It is not there, or is no directory.
    pub fn open(root: &Path) -> Result<Directory, TreeError> {
        let name = root.display().to_string();
        let failed = |source| TreeError::new(name.clone(), source);
        let root = fs::canonicalize(root).map_err(failed)?;
        if !root.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        let devices = root.join("bus/dsa/devices");
        let place = if devices.is_dir() { &devices } else { &root };
        let kind = file_system(place).map_err(failed)?;
        Ok(Directory { root, kind })
    }

    /// Whether someone answers writes: a kernel or a file system in user space. The files of a plain
    /// directory only keep what is written.
    pub fn is_live(&self) -> bool {
        [SYSFS_MAGIC, FUSE_MAGIC].contains(&self.kind)
    }

    /// What distinguishes the tree from others at the same path: `None` for the one of this machine.
    pub fn identity(&self) -> Option<String> {
        match self.kind {
            SYSFS_MAGIC => None,
            // The source of the mount is the session's name.
            FUSE_MAGIC => Some(
                mount_source(&self.root.join("bus/dsa"))
                    .or_else(redirected)
                    .unwrap_or_else(|| "unknown-session".to_owned()),
            ),
            // One that was removed and made anew is another one.
            _ => fs::metadata(&self.root)
                .ok()
                .map(|metadata| metadata.ino().to_string()),
        }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file behind a path, links followed; never one outside of the directory.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, TreeError> {
        let named = self.root.join(path.trim_start_matches('/'));
        let failed = |source| TreeError::new(named.display().to_string(), source);
        let real = fs::canonicalize(&named).map_err(failed)?;
        match real.starts_with(&self.root) {
            true => Ok(real),
            false => Err(failed(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("leads out of {}", self.root.display()),
            ))),
        }
    }
}

/// Kind of the file system that a directory is on, as the C library says: under `dray run
/// --redirect` it is not the kernel's to know.
fn file_system(directory: &Path) -> io::Result<i64> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    let mut answer = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: a text with its end, and room for the answer.
    let result = unsafe { libc::statfs(path.as_ptr(), answer.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written it.
    let answer = unsafe { answer.assume_init() };
    Ok(answer.f_type)
}

/// The source of the mount that a path is on (proc_pid_mountinfo(5)).
fn mount_source(path: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let on = |line: &str| -> Option<(usize, String)> {
        let point = line.split(' ').nth(4)?;
        let (_, behind) = line.split_once(" - ")?;
        let mut behind = behind.split(' ');
        let (kind, source) = (behind.next()?, behind.next()?);
        let fits = path.starts_with(point) && kind.starts_with("fuse");
        fits.then(|| (point.len(), source.to_owned()))
    };
    let found = mounts.lines().filter_map(on);
    found.max_by_key(|(length, _)| *length).map(|found| found.1)
}

/// The directory of a session without mounts, which is named at random.
fn redirected() -> Option<String> {
    let value = std::env::var_os(REDIRECT_VARIABLE)?;
    let redirection = Redirection::parse(value.as_bytes())?;
    let root = String::from_utf8_lossy(redirection.root);
    let name = root.trim_end_matches("/root").rsplit('/').next()?;
    Some(name.to_owned())
}

/// The `/sys` that is meant: what `DRAY_SYSFS_PATH` names, if it is set. The directory of devices in a
/// `/sys` (`bus/dsa/devices`) stands for that `/sys`.
pub fn sysfs_root() -> PathBuf {
    let set = std::env::var_os("DRAY_SYSFS_PATH").filter(|path| !path.is_empty());
    above_devices(set.map_or_else(|| "/sys".into(), PathBuf::from))
}

fn above_devices(path: PathBuf) -> PathBuf {
    match path.ends_with("bus/dsa/devices") {
        true => path.ancestors().nth(3).unwrap_or(&path).to_owned(),
        false => path,
    }
}

/// Where what belongs to the session around this process is kept until it ends; `None` outside of one.
pub fn session_state() -> Option<PathBuf> {
    if let Some(value) = std::env::var_os(REDIRECT_VARIABLE)
        && let Some(redirection) = Redirection::parse(value.as_bytes())
    {
        let root = Path::new(OsStr::from_bytes(redirection.root));
        return Some(root.parent()?.join("state"));
    }
    let directory = Path::new(STATE_DIRECTORY);
    directory.is_dir().then(|| directory.to_owned())
}

impl Tree for Directory {
    fn read(&self, path: &str) -> Result<Vec<u8>, TreeError> {
        let real = self.resolve(path)?;
        let failed = |source| TreeError::new(real.display().to_string(), source);
        // A pipe in the place of an attribute would block.
        if !fs::metadata(&real).map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("is no file")));
        }
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&real)
            .map_err(failed)?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(failed)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(failed(io::Error::other("is too long for an attribute")));
        }
        Ok(bytes)
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), TreeError> {
        let real = self.resolve(path)?;
        let failed = |source| TreeError::new(real.display().to_string(), source);
        if !fs::metadata(&real).map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("is no file")));
        }
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .custom_flags(flags)
            .open(&real)
            .map_err(failed)?;
        // An attribute takes a value in one write or not at all.
        match file.write(bytes) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(failed(io::ErrorKind::WriteZero.into())),
            Err(source) => Err(failed(source)),
        }
    }

    fn names(&self, path: &str) -> Result<Vec<String>, TreeError> {
        let real = self.resolve(path)?;
        let failed = |source| TreeError::new(real.display().to_string(), source);
        let mut names = Vec::new();
        for entry in fs::read_dir(&real).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            names.extend(entry.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_bus_dsa_devices_is_resolved_to_its_sys() {
        for (named, root) in [
            ("/sys", "/sys"),
            ("/tmp/sys/bus/dsa/devices", "/tmp/sys"),
            ("/tmp/sys/bus/dsa/devices/", "/tmp/sys"),
            ("sys/bus/dsa/devices", "sys"),
            ("/tmp/devices", "/tmp/devices"),
        ] {
            assert_eq!(above_devices(named.into()), Path::new(root), "{named}");
        }
    }
}
