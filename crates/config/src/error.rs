//! Why a device was not set up.

use std::fmt;

use dray_idxd::ProfileError;
use dray_idxd::driver::{CommandStatus, Errno, When};

use crate::tree::TreeError;

/// A write that the driver refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The file, relative to `/sys`.
    pub path: String,
    /// What was written.
    pub value: String,
    /// What write(2) returns.
    pub errno: Errno,
    /// The driver's rule.
    pub when: Option<When>,
    /// What `cmd_status` holds.
    pub status: Option<CommandStatus>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, value, .. } = self;
        let path = path.strip_prefix("bus/dsa/devices/").unwrap_or(path);
        match path.strip_prefix("bus/dsa/drivers/") {
            Some(driver) => match driver.split_once('/') {
                Some((driver, "unbind")) => write!(f, "{driver} does not let go of {value}")?,
                Some((driver, _)) => write!(f, "{driver} does not take {value}")?,
                None => write!(f, "{driver} does not take {value}")?,
            },
            None => write!(f, "{path} does not take {value:?}")?,
        }
        write!(f, ": {}", self.errno)?;
        if let Some(when) = self.when {
            write!(f, ": {}", when.describe())?;
        }
        match self.status {
            Some(status) if status.0 != 0 => write!(f, ": {status}"),
            _ => Ok(()),
        }
    }
}

/// Why a device was not set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file could not be read or written.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// There is no idxd here.
    #[error("there is no DSA driver: {path} is not there")]
    NoDriver {
        /// What was looked for.
        path: String,
    },
    /// There is no such device, group, engine or queue.
    #[error("there is no {name} here; {there}")]
    NoDevice {
        /// What was named.
        name: String,
        /// What there is.
        there: String,
    },
    /// An attribute holds what it cannot.
    #[error("{path} holds {value:?}; expected {expected}")]
    Garbage {
        /// The attribute.
        path: String,
        /// Its text, shortened.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The profile is wrong.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The device is enabled.
    #[error("{name} is enabled")]
    Enabled {
        /// The device or the queue.
        name: String,
    },
    /// Someone has the queue open.
    #[error("{name} is in use: clients is {clients}")]
    InUse {
        /// The device or the queue.
        name: String,
        /// How many.
        clients: String,
    },
    /// The driver would refuse, or has refused.
    #[error("{0}")]
    Refused(Refused),
    /// The machine refused what its model took; all was put back.
    #[error("{failure}; what was written before was put back")]
    RolledBack {
        /// What failed, and `cmd_status` where that says more.
        failure: String,
    },
    /// The machine refused, and refused again when all was to be put back.
    #[error("{failure}; and putting back failed: {second}")]
    HalfWay {
        /// What failed.
        failure: String,
        /// What failed then.
        second: String,
    },
    /// There is nothing to take back.
    #[error("nothing to take back: {path} is not there")]
    NothingToUndo {
        /// The journal.
        path: String,
    },
}

impl ConfigError {
    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Tree(error) if error.is_denied() => {
                "writing needs root: sudo dray config ...".to_owned()
            }
            Self::NoDriver { .. } => {
                "load it (sudo modprobe idxd), find out why it is not there (dray doctor), or name \
                 another tree in DRAY_SYSFS_PATH (dray config new-tree makes one)"
                    .to_owned()
            }
            Self::NoDevice { .. } => "dray config list -i shows what there is".to_owned(),
            Self::Enabled { name } => {
                let device = name.trim_start_matches("wq").split('.').next();
                let device = device.unwrap_or_default();
                match name.starts_with("wq") {
                    true => format!("dray config disable-wq dsa{device}/{name}"),
                    false => format!("-f disables it first, or: dray config disable-device {name}"),
                }
            }
            Self::InUse { .. } => "end what uses it, or add -f".to_owned(),
            Self::Refused(refused) => return refused.hint(),
            Self::RolledBack { .. } | Self::HalfWay { .. } => "dray doctor".to_owned(),
            Self::Profile(error) => return error.hint(),
            _ => return None,
        })
    }
}

const ENABLE_FIRST: &str = "enable the device first: dray config enable-device";

impl Refused {
    fn hint(&self) -> Option<String> {
        let text = match (self.when, self.status) {
            (Some(When::DeviceEnabled), _) => {
                "disable the device first: dray config disable-device"
            }
            (Some(When::QueueEnabled), _) => "disable the work queue first: dray config disable-wq",
            (Some(When::Dedicated), _) => "make it shared first: -m shared",
            (Some(When::LimitIsZero), _) => "set config-device -l first",
            (_, Some(CommandStatus::WQ_NO_GRP)) => "config-wq -g 0 gives it a group",
            (_, Some(CommandStatus::WQ_NO_NAME)) => "config-wq -n app0 gives it a name",
            (_, Some(CommandStatus::WQ_NO_THRESH)) => "config-wq -t 16 gives it a threshold",
            (_, Some(CommandStatus::WQ_NO_DRV_NAME)) => "config-wq -d user names its driver",
            (_, Some(CommandStatus::WQ_NONE_CONFIGURED)) => {
                "config-wq -g 0 -s 16 puts a work queue into a group"
            }
            (_, Some(CommandStatus::WQ_USER_NO_IOMMU | CommandStatus::WQ_NO_SWQ_SUPPORT)) => {
                "dray doctor says why shared virtual addressing is off"
            }
            (_, Some(CommandStatus(0x15..=0x17))) => {
                "each group in use needs engines (config-engine -g) and work queues with a size"
            }
            (_, Some(CommandStatus(0x23))) => "config-wq -p 10 gives it a priority",
            (_, Some(CommandStatus(0x20))) => ENABLE_FIRST,
            // The driver leaves no status where it refuses before it asks the device.
            (_, Some(CommandStatus(0))) if !self.path.starts_with("bus/dsa/drivers/idxd/") => {
                ENABLE_FIRST
            }
            (_, Some(CommandStatus(0))) => "an engine must be in a group: config-engine -g 0",
            _ => return None,
        };
        Some(text.to_owned())
    }
}
