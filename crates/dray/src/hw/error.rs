//! Why a work queue of this machine cannot be used.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a work queue of this machine cannot be used. Each says what was looked at.
///
/// ```no_run
/// use dray::hw::{HwError, HwOptions};
///
/// match dray::hw::open(None, HwOptions::default()) {
///     Ok(mover) => println!("{}", mover.info().name()),
///     Err(HwError::NoQueues { path }) => println!("no device is set up below {}", path.display()),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Debug, Error)]
pub enum HwError {
    /// There are no work queues for programs.
    #[error("{path} has no work queue: no device is set up for programs (see `dray doctor`)")]
    NoQueues {
        /// Where they would be.
        path: PathBuf,
    },
    /// There are work queues, and none can be used: each with its reason.
    #[error("no work queue can be used: {}", list(refused))]
    NoneUsable {
        /// In the order in which they were tried.
        refused: Vec<RefusedQueue>,
    },
    /// The queue is not enabled.
    #[error("{path} says {state:?}: the work queue is not enabled (see `dray config`)")]
    NotEnabled {
        /// Its attribute `state`.
        path: PathBuf,
        /// What it says.
        state: String,
    },
    /// The queue is the kernel's own, or nobody's.
    #[error("{path} says {kind:?}: programs use work queues of the type \"user\"")]
    WrongType {
        /// Its attribute `type`.
        path: PathBuf,
        /// What it says.
        kind: String,
    },
    /// The queue is enabled for programs, and there is no file to open.
    #[error(
        "{path} is missing, though the work queue is enabled for programs: is the directory mounted here?"
    )]
    NoFile {
        /// The device file.
        path: PathBuf,
    },
    /// No work queue has the name that was asked for.
    #[error("there is no work queue {name}: there are {available}")]
    NoSuchQueue {
        /// What was asked for.
        name: String,
        /// Names of those that there are.
        available: String,
    },
    /// A directory or an attribute cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An attribute says something that the driver never says.
    #[error("{path} says {text:?}, which is no {expected}")]
    Attribute {
        /// Its path.
        path: PathBuf,
        /// What it says.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The device file cannot be opened. EBUSY: another process has the dedicated queue. EACCES, EPERM: this
    /// process has not the right.
    #[error("{path} cannot be opened{}", hint(source))]
    Open {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The portal cannot be mapped, and write(2) was excluded.
    #[error("the portal of {path} cannot be mapped")]
    Map {
        /// The device file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel refuses a descriptor that was written with write(2).
    #[error("{path} refuses a descriptor")]
    Write {
        /// The device file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The queue was disabled, or its device reset, while it was open.
    #[error("the work queue behind {path} was disabled")]
    Disabled {
        /// The device file.
        path: PathBuf,
    },
    /// This process is a child of the one that has opened the queue.
    #[error("the work queue is open in the process that has forked this one")]
    Inherited,
    /// A mover has at least 1 and at most 2^31 - 1 slots.
    #[error("a mover has 1 to {most} slots, not {asked}")]
    Slots {
        /// Slots asked for.
        asked: usize,
        /// Slots that there can be.
        most: u32,
    },
}

/// A work queue by its name (`wq0.1`), with what it gives, or why it cannot be used.
pub type QueueResult<T> = (String, Result<T, HwError>);

/// A work queue that cannot be used.
///
/// ```
/// use dray::hw::{HwError, RefusedQueue};
///
/// let refused = RefusedQueue {
///     queue: "wq0.1".into(),
///     reason: HwError::Disabled { path: "/dev/dsa/wq0.1".into() },
/// };
/// assert_eq!(refused.queue, "wq0.1");
/// ```
#[derive(Debug)]
pub struct RefusedQueue {
    /// Its name: `wq0.1`.
    pub queue: String,
    /// Why.
    pub reason: HwError,
}

impl fmt::Display for RefusedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.queue, self.reason)?;
        let mut cause = self.reason.source();
        while let Some(source) = cause {
            write!(f, ": {source}")?;
            cause = source.source();
        }
        Ok(())
    }
}

/// Each queue with its reason; those that are not enabled, as all of a device are at first, together.
fn list(refused: &[RefusedQueue]) -> String {
    let is_off = |queue: &&RefusedQueue| matches!(queue.reason, HwError::NotEnabled { .. });
    let (off, others): (Vec<&RefusedQueue>, Vec<&RefusedQueue>) = refused.iter().partition(is_off);
    let mut lines: Vec<String> = others.iter().map(|queue| queue.to_string()).collect();
    match &off[..] {
        [] => {}
        [queue] => lines.push(queue.to_string()),
        off => {
            let names: Vec<&str> = off.iter().map(|queue| queue.queue.as_str()).collect();
            lines.push(format!(
                "{}: not enabled (see `dray config`)",
                names.join(", ")
            ));
        }
    }
    lines.join("; ")
}

/// What an errno of open(2) means here.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ResourceBusy => " (another process has the dedicated queue)",
        io::ErrorKind::PermissionDenied => " (this process has no right to it)",
        _ => "",
    }
}
