//! Why a session cannot be.

use std::io;
use std::path::PathBuf;

use dray_config::ConfigError;
use dray_idxd::ProfileError;
use dray_output::OutputError;
use dray_realtime::StartError;
use thiserror::Error;

/// Why a command could not be started on a virtual device.
#[derive(Debug, Error)]
pub enum RunError {
    /// The profile cannot be.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The driver refuses what the profile says.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system allows no private view of its files and processes.
    #[error("{what} cannot be had here: {source}")]
    Forbidden {
        /// What of it.
        what: Facility,
        /// What the system said.
        source: io::Error,
    },
    /// A session around this one leads paths elsewhere, and where they lead nothing can be mounted.
    #[error("a session with --redirect is around this one")]
    Redirected,
    /// There is no preload library for this system, and without it nothing is redirected.
    #[error("paths can be redirected on x86-64 Linux with glibc alone")]
    NoLibrary,
    /// No directory can hold the files of a session.
    #[error("there is no place for the session's files{}", list(.tried))]
    NoPlace {
        /// Where one was sought, and what is wrong there.
        tried: Vec<(PathBuf, io::Error)>,
    },
    /// The files of a session cannot be written.
    #[error("{} cannot be written: {source}", .path.display())]
    Files {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file system could not be put where it is to be seen.
    #[error("{} cannot be mounted: {source}", .target.display())]
    Mount {
        /// Where.
        target: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A device cannot run.
    #[error("the device cannot be started")]
    Start(#[from] StartError),
    /// A trace cannot be written there.
    #[error("the trace {} cannot be written: {}", .0.path.display(), .0.source)]
    Trace(OutputError),
    /// Requests cannot be recorded there.
    #[error("requests cannot be recorded in {}: {}", .0.path.display(), .0.source)]
    Requests(OutputError),
    /// The name of a trace says no format.
    #[error("the trace {} has no format", .path.display())]
    TraceFormat {
        /// The file.
        path: PathBuf,
    },
    /// A command is to have ThreadSanitizer, and has not.
    #[error("{} does not call ThreadSanitizer in a shared object", .program.display())]
    NoThreadSanitizer {
        /// The command's first word.
        program: PathBuf,
    },
    /// A system call that has no reason to fail.
    #[error("{call} fails: {source}")]
    System {
        /// Which.
        call: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A thread of the device, or one that serves it, has panicked.
    #[error("the virtual device has ended: {thread} panicked: {message}; its programs are killed")]
    Panicked {
        /// Name of the thread.
        thread: String,
        /// What the panic said.
        message: String,
    },
    /// The first process of the session is gone without a word.
    #[error("the session's first process was killed, and all its programs with it")]
    InitDied,
}

/// What a session needs of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facility {
    /// Namespaces of users, mounts and processes.
    Namespaces,
    /// `/dev/fuse`, or its file system.
    Fuse,
    /// `/proc` of a namespace of processes.
    Proc,
}

impl std::fmt::Display for Facility {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "private namespaces of mounts and processes",
            Self::Fuse => "FUSE",
            Self::Proc => "a private /proc",
        })
    }
}

impl RunError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Profile(error) => return error.hint(),
            Self::Config(error) => return error.hint(),
            Self::Forbidden {
                what: Facility::Namespaces,
                source,
            } => match source.raw_os_error() {
                Some(libc::ENOSPC) => {
                    "sysctl user.max_user_namespaces is too low: raise it as root"
                }
                _ => {
                    "run as root, or allow it to users: sysctl kernel.unprivileged_userns_clone=1 \
                     (Debian), kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a \
                     container --cap-add SYS_ADMIN and a seccomp profile with unshare and mount; \
                     or do without: --redirect"
                }
            },
            Self::Forbidden {
                what: Facility::Fuse,
                source,
            } => match source.raw_os_error() {
                Some(libc::ENOENT) => {
                    "modprobe fuse; in a container --device /dev/fuse; or do without: --redirect"
                }
                Some(libc::EACCES) => {
                    "chmod 0666 /dev/fuse, as distributions have it; or do without: --redirect"
                }
                _ => {
                    "in a container --device /dev/fuse --cap-add SYS_ADMIN; or do without: --redirect"
                }
            },
            Self::Forbidden {
                what: Facility::Proc,
                source,
            } if source.kind() == std::io::ErrorKind::NotFound => {
                "there is no /proc here, as in a bare chroot: mount -t proc proc /proc"
            }
            Self::Forbidden {
                what: Facility::Proc,
                ..
            } => {
                "parts of /proc are masked here, as in a container: podman and docker leave them \
                 with --security-opt unmask=ALL or systempaths=unconfined; or do without: --redirect"
            }
            Self::NoPlace { .. } => {
                "name a directory that can be written and is not mounted noexec: TMPDIR=DIRECTORY"
            }
            Self::Redirected => "dray run --redirect here, too",
            Self::Panicked { .. } => {
                "this is a defect of dray: report what the panic says above, and the command"
            }
            Self::NoThreadSanitizer { .. } => {
                "build it with -fsanitize=thread (gcc, without -static-libtsan), or with -fsanitize=thread \
                 -shared-libsan (clang), and name the program in the command: not in a script"
            }
            Self::TraceFormat { .. } => "name it FILE.json for Perfetto, or FILE.csv",
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// Whether what was asked for is wrong, and not the machine.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Profile(_)
                | Self::Config(_)
                | Self::Trace(_)
                | Self::Requests(_)
                | Self::TraceFormat { .. }
                | Self::NoThreadSanitizer { .. }
        )
    }
}

/// Directories, and what is wrong with each.
fn list(tried: &[(PathBuf, io::Error)]) -> String {
    let each = tried
        .iter()
        .map(|(path, error)| format!("; {}: {error}", path.display()));
    each.collect()
}

/// A failed system call, by its name.
pub(crate) fn system<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> RunError {
    move |source| RunError::System {
        call,
        source: source.into(),
    }
}

/// What the system does not allow.
pub(crate) fn forbidden<E: Into<io::Error>>(what: Facility) -> impl FnOnce(E) -> RunError {
    move |source| RunError::Forbidden {
        what,
        source: source.into(),
    }
}
