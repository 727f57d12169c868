//! Why memory cannot be tiered.

use thiserror::Error;

use crate::sys::damon::DamonError;
use crate::sys::uffd::Permission;

/// Why memory cannot be tiered.
#[derive(Debug, Error)]
pub enum TierError {
    /// userfaultfd(2) is not allowed to this process.
    #[error("userfaultfd is forbidden here ({}){}", std::io::Error::from_raw_os_error(*.errno), by_what(.permission))]
    Forbidden {
        /// What the kernel said.
        errno: i32,
        /// What decides.
        permission: Permission,
    },
    /// The kernel lacks a feature.
    #[error("this kernel has no {feature}")]
    OldKernel {
        /// Which.
        feature: &'static str,
    },
    /// There is no such NUMA node.
    #[error("there is no NUMA node {node} with memory")]
    NoNode {
        /// The node asked for.
        node: u32,
    },
    /// A control group's cpuset excludes a node.
    #[error("the process may not have memory on NUMA node {node}")]
    NotAllowed {
        /// The node.
        node: u32,
    },
    /// A system call that has no reason to fail.
    #[error("{call} fails: {}", std::io::Error::from_raw_os_error(*.errno))]
    System {
        /// Which.
        call: &'static str,
        /// What the kernel said.
        errno: i32,
    },
    /// Files or processes of a session.
    #[error("{what} fails: {source}")]
    Io {
        /// What was done.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process cannot be looked into.
    #[error("process {pid} cannot be looked into: {source}")]
    Process {
        /// Its number.
        pid: i32,
        /// What the system said.
        source: std::io::Error,
    },
    /// The order cannot be had with this copier.
    #[error(
        "shared-read copies from pages that the program may unmap meanwhile, and only a core can do that safely: not {copier}"
    )]
    Order {
        /// The copier asked for.
        copier: &'static str,
    },
    /// DAMON was asked for.
    #[error("accesses cannot be tracked with DAMON: {cause}")]
    Damon {
        /// Why.
        cause: DamonError,
    },
    /// Hints were asked for, from outside.
    #[error("hints work inside of a program alone")]
    Hints,
    /// The policy needs accesses, and there is no way to see any.
    #[error("--policy {policy} needs accesses, and none can be tracked: {why}")]
    Untracked {
        /// Its name.
        policy: &'static str,
        /// Why each way is closed.
        why: String,
    },
    /// The program ended well, and that it was not tiered is what went wrong.
    #[error("the program ended with 0, and {processes} of its processes could not be tiered")]
    Untiered {
        /// How many.
        processes: usize,
        /// What to do about it, of the first.
        hint: String,
    },
    /// A copier failed.
    #[error(transparent)]
    Copy(#[from] crate::copier::CopyError),
    /// The mover cannot be started.
    #[error("the mover `{mover}` cannot be started: {source}")]
    Mover {
        /// Its name.
        mover: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn by_what(permission: &Permission) -> &'static str {
    match permission.by_sysctl() {
        true => ": vm.unprivileged_userfaultfd is 0, and this process has no CAP_SYS_PTRACE",
        false if permission.filtered => ": a seccomp filter is in force, as in containers",
        false => "",
    }
}

impl TierError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Forbidden { permission, .. } if permission.by_sysctl() => {
                "run as root, or allow it to users: sysctl vm.unprivileged_userfaultfd=1, or \
                 chmod 0666 /dev/userfaultfd; in a container --cap-add SYS_PTRACE, or --device \
                 /dev/userfaultfd"
            }
            Self::Forbidden { .. } => {
                "in a container: --device /dev/userfaultfd, or a seccomp profile that allows \
                 userfaultfd(2) (--security-opt seccomp=FILE) and --cap-add SYS_PTRACE"
            }
            Self::OldKernel { .. } => "page migration needs Linux 6.8 or later (uname -r)",
            Self::NoNode { .. } => "numactl --hardware lists nodes; give a size instead of a node",
            Self::NotAllowed { .. } => {
                "its cpuset names the nodes: cat /proc/PID/status shows them in Mems_allowed_list, cpuset.mems of its \
                 control group allows more"
            }
            Self::Process { source, .. } => match source.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => {
                    "another user's process, or one that may not be traced, needs CAP_SYS_PTRACE and \
                     CAP_SYS_NICE: run as root"
                }
                _ => "pgrep -a NAME names processes by number",
            },
            Self::System {
                call: "move_pages",
                errno: libc::EPERM,
            } => "pages of another user's process move with CAP_SYS_NICE alone: run as root",
            Self::Damon {
                cause: DamonError::InUse,
            } => {
                "--tracking best takes what else there is; cat \
                 /sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/targets/0/pid_target names the \
                 process that is monitored"
            }
            Self::Damon {
                cause: DamonError::Stat,
            } => {
                "--tracking best takes what else there is; or, until the next boot: echo N \
                 > /sys/module/damon_stat/parameters/enabled"
            }
            Self::Damon { .. } => {
                "--tracking best takes what else there is; DAMON needs root, CONFIG_DAMON_SYSFS and \
                 CONFIG_DAMON_VADDR, and no other user of it"
            }
            Self::Untiered { hint, .. } if !hint.is_empty() => hint,
            Self::Hints => {
                "--tracking best takes the best that there is; hints are of --back-end uffd"
            }
            Self::Untracked { .. } => {
                "run as root, on a kernel with CONFIG_DAMON_VADDR, CONFIG_IDLE_PAGE_TRACKING or CONFIG_MEM_SOFT_DIRTY; \
                 --policy rotate and none need no accesses"
            }
            Self::Order { .. } => "take --order strict, or --mover cpu",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

pub(crate) fn system(call: &'static str) -> impl FnOnce(i32) -> TierError {
    move |errno| TierError::System { call, errno }
}
