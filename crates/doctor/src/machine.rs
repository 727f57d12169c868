//! What can be asked of a machine, live or captured.

pub(crate) mod archive;
mod captured;
mod kernel_log;
mod live;
mod reader;
mod recorder;
mod relevant;
mod said;

use serde::{Deserialize, Serialize};

pub use archive::{ArchiveError, MAX_ARCHIVE_BYTES};
pub use captured::{Captured, CapturedError};
pub use live::Live;
pub use recorder::Recorder;
pub use said::WithMessages;

/// Path under which [`Machine::read`] gives the kernel's messages that concern DMA remapping,
/// idxd and the CPU, as dmesg prints them.
pub const KERNEL_LOG: &str = "@kernel-log";
/// Path under which [`Machine::read`] gives the options of the running kernel that matter here,
/// as in its `.config`.
pub const KERNEL_CONFIG: &str = "@kernel-config";
/// Path under which [`Machine::read`] gives CPUID leaf 7, subleaf 0, as `eax ebx ecx edx` in
/// hexadecimal.
pub const CPUID_7: &str = "@cpuid-7.0";
/// Path under which [`Machine::read`] gives what the user's programs said, if it was given.
pub const MESSAGES: &str = "@messages";

/// Path under which [`Machine::read`] says that the device is virtual: [`SESSION`] or [`TREE`].
pub const VIRTUAL: &str = "@virtual-device";
/// The programs around this one run on it (`dray run`).
pub const SESSION: &str = "session";
/// A directory stands for `/sys` (`DRAY_SYSFS_PATH`).
pub const TREE: &str = "tree";

/// Why something could not be read; evidence like everything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "text")]
#[non_exhaustive]
pub enum Unreadable {
    /// There is no such file.
    #[error("does not exist")]
    Missing,
    /// It may not be read by this user.
    #[error("permission denied")]
    Denied,
    /// It did not answer in time.
    #[error("did not answer within {0} ms")]
    Blocked(u64),
    /// It is longer than any such file is.
    #[error("longer than {0} bytes")]
    TooLong(u64),
    /// It is something else than what was asked for, such as a directory in place of a file.
    #[error("is not {0}")]
    FileKind(String),
    /// What stands there makes no sense.
    #[error("holds {0:?}, which makes no sense there")]
    Garbage(String),
    /// The capture was made by a version that did not look there.
    #[error("is not part of the capture")]
    NotCaptured,
    /// What the system said.
    #[error("{0}")]
    Other(String),
}

/// What a machine answers.
pub type Reading<T> = Result<T, Unreadable>;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A regular file; sysfs attributes are such.
    File,
    /// A directory.
    Directory,
    /// A character device.
    CharacterDevice,
    /// Anything else.
    Other,
}

/// FileKind, owner and permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// FileKind, after following links.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A machine that can be looked at, and not changed.
///
/// Paths are absolute and are not normalised. A machine gives the same answer to the same question.
pub trait Machine {
    /// The content of a file, or of one of the paths above that begin with `@`.
    ///
    /// # Errors
    /// [`Unreadable`] says why there is none.
    fn read(&self, path: &str) -> Reading<Vec<u8>>;

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// [`Unreadable`] says why there are none.
    fn list(&self, path: &str) -> Reading<Vec<String>>;

    /// Where a symbolic link points, as it stands there.
    ///
    /// # Errors
    /// [`Unreadable`] says why it is not known.
    fn link(&self, path: &str) -> Reading<String>;

    /// FileKind, owner and permissions, after following links.
    ///
    /// # Errors
    /// [`Unreadable`] says why they are not known.
    fn stat(&self, path: &str) -> Reading<Stat>;
}
