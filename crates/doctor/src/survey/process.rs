//! What this process may do, and whether it stands in a container.

use super::look::Look;
use crate::machine::Reading;

pub(crate) const STATUS: &str = "/proc/self/status";
pub(crate) const MOUNTS: &str = "/proc/self/mounts";
/// Files that container engines leave inside.
pub(crate) const CONTAINER_FILES: &[&str] = &["/.dockerenv", "/run/.containerenv"];
const SYSTEMD_CONTAINER: &str = "/run/systemd/container";

/// `CAP_SYS_RAWIO` of linux/capability.h.
const SYS_RAWIO: u32 = 17;

/// The process that looks.
pub(crate) struct Process {
    pub(crate) uid: Option<u32>,
    groups: Vec<u32>,
    capabilities: Option<u64>,
    /// What shows that this is a container: the path, what stands there.
    pub(crate) container: Option<(String, String)>,
    pub(crate) mounts: Reading<String>,
}

impl Process {
    pub(super) fn of(look: Look<'_>) -> Self {
        let status = look.lines(STATUS).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().split_whitespace()
        };
        // Real, effective, saved, of the file system.
        let effective = |name| field(name).nth(1).and_then(|id| id.parse().ok());
        let gid: Option<u32> = effective("Gid:");
        let groups = field("Groups:").filter_map(|id| id.parse().ok());
        let mounts = look.lines(MOUNTS);
        Self {
            uid: effective("Uid:"),
            groups: groups.chain(gid).collect(),
            capabilities: field("CapEff:")
                .next()
                .and_then(|bits| u64::from_str_radix(bits, 16).ok()),
            container: container(look),
            mounts,
        }
    }

    /// Whether the process has CAP_SYS_RAWIO, if that is known.
    pub(crate) fn has_raw_io(&self) -> Option<bool> {
        Some(self.capabilities? >> SYS_RAWIO & 1 == 1)
    }

    /// Whether a file with these permissions can be opened for reading and writing.
    pub(crate) fn may_open(&self, mode: u32, uid: u32, gid: u32) -> Option<bool> {
        /// `CAP_DAC_OVERRIDE` of linux/capability.h.
        const DAC_OVERRIDE: u32 = 1;
        if self.capabilities? >> DAC_OVERRIDE & 1 == 1 {
            return Some(true);
        }
        let bits = if self.uid? == uid {
            mode >> 6
        } else if self.groups.contains(&gid) {
            mode >> 3
        } else {
            mode
        };
        Some(bits & 0o6 == 0o6)
    }

    /// Whether the file system at a mount point may be written, if it is one.
    pub(crate) fn is_writable(&self, point: &str) -> Option<bool> {
        let mounts = self.mounts.as_ref().ok()?;
        let mut fields = mounts.lines().map(|line| line.split(' '));
        // The last mount of a point covers the ones before.
        let options = fields
            .rfind(|fields| fields.clone().nth(1) == Some(point))?
            .nth(3)?;
        Some(!options.split(',').any(|option| option == "ro"))
    }
}

fn container(look: Look<'_>) -> Option<(String, String)> {
    for path in CONTAINER_FILES {
        if look.exists(path) == Ok(true) {
            return Some(((*path).to_owned(), "exists".to_owned()));
        }
    }
    let text = look.text(SYSTEMD_CONTAINER).ok()?;
    Some((SYSTEMD_CONTAINER.to_owned(), text))
}
