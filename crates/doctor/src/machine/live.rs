//! This machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use flate2::read::GzDecoder;
use rustix::fs::OFlags;

use super::reader::Reader;
use super::{
    CPUID_7, FileKind, KERNEL_CONFIG, KERNEL_LOG, MESSAGES, Machine, Reading, SESSION, Stat, TREE,
    Unreadable, VIRTUAL, kernel_log, relevant,
};

/// Longest accepted file. An attribute of sysfs has at most a page; /proc/cpuinfo of the largest
/// machines a few hundred kilobytes, of which the first processor is kept.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Longest accepted kernel configuration, unpacked; Debian's has 280 kB.
const MAX_CONFIG_BYTES: u64 = 4 << 20;
/// Longest record of /dev/kmsg (`CONSOLE_EXT_LOG_MAX` of kernel/printk).
const MAX_RECORD_BYTES: usize = 8192;
/// More records than the largest log buffer holds.
const MAX_RECORDS: usize = 1 << 20;
/// More entries than any directory that is asked for has.
const MAX_NAMES: usize = 1 << 16;

/// This machine, read and never written.
pub struct Live {
    reader: Reader,
    messages: Option<String>,
    /// A directory in the place of `/sys`.
    sysfs: Option<PathBuf>,
    /// The device is one of `dray run`.
    in_session: bool,
}

impl Live {
    /// This machine; a file that does not answer within `deadline` is given up.
    #[must_use]
    pub fn new(deadline: Duration) -> Self {
        Self {
            reader: Reader::new(deadline),
            messages: None,
            sysfs: None,
            in_session: false,
        }
    }

    /// With a directory in the place of `/sys`, as `DRAY_SYSFS_PATH` names one.
    #[must_use]
    pub fn with_sysfs(self, directory: PathBuf) -> Self {
        Self {
            sysfs: Some(directory),
            ..self
        }
    }

    /// Says that the device is the one of a session of `dray run` around this process.
    #[must_use]
    pub fn in_session(self) -> Self {
        Self {
            in_session: true,
            ..self
        }
    }

    /// Where a path is found.
    fn place(&self, path: &str) -> String {
        match (&self.sysfs, path.strip_prefix("/sys/")) {
            (Some(directory), Some(below)) => directory.join(below).display().to_string(),
            _ => path.to_owned(),
        }
    }

    /// Adds what the user's programs said.
    #[must_use]
    pub fn with_messages(self, messages: String) -> Self {
        Self {
            messages: Some(messages),
            ..self
        }
    }
}

impl Machine for Live {
    fn read(&self, path: &str) -> Reading<Vec<u8>> {
        let own = self.place(path);
        match path {
            VIRTUAL if self.sysfs.is_some() => Ok(TREE.into()),
            VIRTUAL if self.in_session => Ok(SESSION.into()),
            VIRTUAL => Err(Unreadable::Missing),
            MESSAGES => match &self.messages {
                Some(messages) => Ok(messages.clone().into_bytes()),
                None => Err(Unreadable::Missing),
            },
            CPUID_7 => cpuid_7().map(String::into_bytes),
            KERNEL_LOG => self.reader.run(|| kmsg().map(String::into_bytes)),
            KERNEL_CONFIG => self.reader.run(|| kernel_config().map(String::into_bytes)),
            _ => self.reader.run(move || file(&own)),
        }
    }

    fn list(&self, path: &str) -> Reading<Vec<String>> {
        let path = self.place(path);
        self.reader.run(move || {
            let mut names = Vec::new();
            for entry in fs::read_dir(&path).map_err(unreadable)?.take(MAX_NAMES) {
                let name = entry.map_err(unreadable)?.file_name();
                names.push(name.to_string_lossy().into_owned());
            }
            names.sort_unstable();
            Ok(names)
        })
    }

    fn link(&self, path: &str) -> Reading<String> {
        let path = self.place(path);
        self.reader.run(move || {
            let target = fs::read_link(&path).map_err(unreadable)?;
            Ok(target.to_string_lossy().into_owned())
        })
    }

    fn stat(&self, path: &str) -> Reading<Stat> {
        let path = self.place(path);
        self.reader.run(move || stat(&path))
    }
}

fn stat(path: &str) -> Reading<Stat> {
    let metadata = fs::metadata(path).map_err(unreadable)?;
    let kind = match metadata.file_type() {
        kind if kind.is_file() => FileKind::File,
        kind if kind.is_dir() => FileKind::Directory,
        kind if kind.is_char_device() => FileKind::CharacterDevice,
        _ => FileKind::Other,
    };
    Ok(Stat {
        kind,
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
    })
}

/// A regular file, and of some only what matters.
///
/// Devices and pipes are not opened at all: opening alone may act.
fn file(path: &str) -> Reading<Vec<u8>> {
    if stat(path)?.kind != FileKind::File {
        return Err(Unreadable::FileKind("a regular file".to_owned()));
    }
    let bytes = limited(open(path)?, MAX_FILE_BYTES)?;
    let keep: fn(&str) -> String = match path {
        "/proc/cmdline" => relevant::command_line,
        "/proc/cpuinfo" => relevant::processors,
        "/proc/self/status" => relevant::status,
        "/proc/self/mounts" => relevant::mounts,
        "/proc/meminfo" => relevant::memory,
        _ if path.contains("/modprobe.d/") => relevant::modprobe,
        _ => return Ok(bytes),
    };
    Ok(keep(&String::from_utf8_lossy(&bytes)).into_bytes())
}

fn open(path: &str) -> Reading<File> {
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(nonblocking);
    options.open(path).map_err(unreadable)
}

fn limited(from: impl Read, limit: u64) -> Reading<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    match bytes.len() as u64 > limit {
        true => Err(Unreadable::TooLong(limit)),
        false => Ok(bytes),
    }
}

fn kmsg() -> Reading<String> {
    let mut log = open("/dev/kmsg")?;
    let mut record = vec![0; MAX_RECORD_BYTES];
    let mut lines = String::new();
    for _ in 0..MAX_RECORDS {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(bytes) => {
                let line = kernel_log::line(&record[..bytes]);
                if let Some(line) = line.filter(|line| relevant::message(line)) {
                    lines.push_str(&line);
                    lines.push('\n');
                }
            }
            // The end of what there is.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // The buffer wrapped meanwhile (EPIPE), and the next read goes on after the gap.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    Ok(lines)
}

/// Where distributions keep the configuration of the running kernel.
fn kernel_config() -> Reading<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").map_err(unreadable)?;
    let release = release.trim();
    let plain = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/usr/lib/modules/{release}/config"),
    ];
    let mut first = match open("/proc/config.gz") {
        Ok(packed) => {
            let config = limited(GzDecoder::new(packed), MAX_CONFIG_BYTES)?;
            return Ok(relevant::options(&String::from_utf8_lossy(&config)));
        }
        Err(error) => error,
    };
    for path in plain {
        match open(&path).and_then(|file| limited(file, MAX_CONFIG_BYTES)) {
            Ok(config) => return Ok(relevant::options(&String::from_utf8_lossy(&config))),
            Err(Unreadable::Missing) => {}
            Err(error) => first = error,
        }
    }
    Err(first)
}

#[cfg(target_arch = "x86_64")]
fn cpuid_7() -> Reading<String> {
    use std::arch::x86_64::__cpuid_count;
    #[allow(unused_unsafe, reason = "a safe function in later versions of Rust")]
    // SAFETY: every x86_64 CPU has CPUID, and leaf 0 says how many leaves there are.
    let last = unsafe { __cpuid_count(0, 0) }.eax;
    if last < 7 {
        return Err(Unreadable::Missing);
    }
    #[allow(unused_unsafe, reason = "a safe function in later versions of Rust")]
    // SAFETY: as above, and leaf 7 exists.
    let leaf = unsafe { __cpuid_count(7, 0) };
    Ok(format!(
        "{:08x} {:08x} {:08x} {:08x}\n",
        leaf.eax, leaf.ebx, leaf.ecx, leaf.edx
    ))
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_7() -> Reading<String> {
    Err(Unreadable::Missing)
}

fn unreadable(error: io::Error) -> Unreadable {
    match error.kind() {
        io::ErrorKind::NotFound => Unreadable::Missing,
        io::ErrorKind::PermissionDenied => Unreadable::Denied,
        io::ErrorKind::WouldBlock => Unreadable::Blocked(0),
        io::ErrorKind::NotADirectory => Unreadable::FileKind("a directory".to_owned()),
        // The errno's own text, without Rust's "(os error 5)".
        _ => {
            let text = error.to_string();
            let plain = text.split(" (os error").next().unwrap_or(&text);
            Unreadable::Other(plain.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> Live {
        Live::new(Duration::from_secs(60))
    }

    #[test]
    fn files_directories_and_links_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        fs::write(path("b"), "text").unwrap();
        fs::create_dir(path("a")).unwrap();
        std::os::unix::fs::symlink("b", path("c")).unwrap();
        let live = live();
        assert_eq!(live.read(&path("b")), Ok(b"text".to_vec()));
        assert_eq!(live.read(&path("c")), Ok(b"text".to_vec()));
        let file = Unreadable::FileKind("a regular file".to_owned());
        assert_eq!(live.read(&path("a")), Err(file.clone()));
        assert_eq!(live.read("/dev/null"), Err(file));
        assert_eq!(live.read(&path("d")), Err(Unreadable::Missing));
        let names = live.list(dir.path().to_str().unwrap()).unwrap();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(live.link(&path("c")), Ok("b".to_owned()));
        assert_eq!(live.stat(&path("c")).unwrap().kind, FileKind::File);
        assert_eq!(
            live.stat("/dev/null").unwrap().kind,
            FileKind::CharacterDevice
        );
    }

    #[test]
    fn a_file_above_the_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        let file = File::create(&path).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        let read = live().read(path.to_str().unwrap());
        assert_eq!(read, Err(Unreadable::TooLong(MAX_FILE_BYTES)));
    }

    #[test]
    fn the_command_line_is_read_without_private_parts() {
        let line = live().read("/proc/cmdline").unwrap();
        let line = String::from_utf8(line).unwrap();
        assert!(!line.contains("BOOT_IMAGE"), "{line}");
    }
}
