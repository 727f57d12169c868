//! Which kernel, as far as its idxd driver differs.

use std::fmt;
use std::str::FromStr;

/// A class of kernels whose idxd driver decides alike.
///
/// The differences are those of `Documentation/ABI/stable/sysfs-driver-dma-idxd` and of
/// `drivers/dma/idxd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Personality {
    /// 5.18, the first with shared queues for users; as distributions of 2022 have it.
    Linux5_18,
    /// 6.4: event log, operations per queue, limits of work in progress.
    Linux6_4,
    /// 6.8: as 6.4, with `driver_name`; the portal can be mapped by anyone.
    Linux6_8,
    /// 7.2: as 6.8, with write(2) instead of mapping for users without `CAP_SYS_RAWIO`.
    Linux7_2,
}

impl Personality {
    /// All of them, oldest first.
    pub const ALL: [Personality; 4] = [
        Self::Linux5_18,
        Self::Linux6_4,
        Self::Linux6_8,
        Self::Linux7_2,
    ];

    /// The newest of them.
    pub const NEWEST: Personality = Self::Linux7_2;

    /// The class of a kernel version; `None` before 5.17, whose attributes have other names.
    pub fn of_kernel(major: u32, minor: u32) -> Option<Personality> {
        match (major, minor) {
            (0..=4, _) | (5, 0..=16) => None,
            (5, _) | (6, 0..=1) => Some(Self::Linux5_18),
            (6, 2..=6) => Some(Self::Linux6_4),
            (6, 7..=9) => Some(Self::Linux6_8),
            _ => Some(Self::Linux7_2),
        }
    }

    /// `wq/driver_name`, which a queue must have to be bound: 6.7.
    pub const fn has_driver_name(self) -> bool {
        !matches!(self, Self::Linux5_18 | Self::Linux6_4)
    }

    /// `wq/op_config`, `wq/prs_disable`, the event log and the limits of work in progress: 6.2 to
    /// 6.4.
    pub const fn has_version_2_attributes(self) -> bool {
        !matches!(self, Self::Linux5_18)
    }

    /// A queue of type user needs shared virtual addressing: 6.1.
    pub(crate) const fn user_needs_sva(self) -> bool {
        !matches!(self, Self::Linux5_18)
    }

    /// The driver looks at `driver_name` before it looks at shared virtual addressing: 6.10.
    pub(crate) const fn matches_name_first(self) -> bool {
        matches!(self, Self::Linux7_2)
    }

    /// `wq/ats_disable` is there on a device that cannot do without translation, too: until 6.2.
    pub(crate) const fn shows_ats_disable_always(self) -> bool {
        matches!(self, Self::Linux5_18)
    }

    /// A queue of a type, in a group and of size 0 gets 16 entries: 5.19.
    pub(crate) const fn has_default_size(self) -> bool {
        !matches!(self, Self::Linux5_18)
    }

    /// `read_buffers_allowed` of a fresh group is what the device has, and not 0: 6.2.
    pub(crate) const fn allows_all_buffers(self) -> bool {
        !matches!(self, Self::Linux5_18)
    }

    /// A queue of type kernel cannot be named where PASIDs are on: until 6.3.
    pub(crate) const fn refuses_kernel_names(self) -> bool {
        matches!(self, Self::Linux5_18)
    }

    /// The highest version of a device whose traffic classes are the driver's alone.
    pub(crate) const fn fixed_traffic_classes(self) -> u32 {
        match self {
            // `hw.version < DEVICE_VERSION_2` became `<=` with 6.4.
            Self::Linux5_18 => 0x1ff,
            Self::Linux6_4 | Self::Linux6_8 | Self::Linux7_2 => 0x200,
        }
    }

    /// Whether a process needs `CAP_SYS_RAWIO` to map a portal, and has write(2) without: 6.10,
    /// INTEL-SA-01084.
    pub const fn restricts_mapping(self) -> bool {
        matches!(self, Self::Linux7_2)
    }
}

impl fmt::Display for Personality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linux5_18 => "5.18",
            Self::Linux6_4 => "6.4",
            Self::Linux6_8 => "6.8",
            Self::Linux7_2 => "7.2",
        })
    }
}

/// A text that names no class of kernels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no rules are known for kernel {0:?}; 5.17 and later have them")]
pub struct UnknownKernel(pub String);

impl FromStr for Personality {
    type Err = UnknownKernel;

    /// Reads a release such as `6.8` or `6.4.16-200.fc38.x86_64`.
    fn from_str(text: &str) -> Result<Personality, UnknownKernel> {
        let mut parts = text.split('.').map(|part| {
            let end = part.find(|c: char| !c.is_ascii_digit());
            part[..end.unwrap_or(part.len())].parse().ok()
        });
        let version = match (parts.next().flatten(), parts.next().flatten()) {
            (Some(major), Some(minor)) => Personality::of_kernel(major, minor),
            _ => None,
        };
        version.ok_or_else(|| UnknownKernel(text.to_owned()))
    }
}
