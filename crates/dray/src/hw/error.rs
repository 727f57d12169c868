//! Why a work queue of this machine cannot be used.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a work queue of this machine cannot be used. Each says what was looked at.
#[derive(Debug, Error)]
pub enum HwError {
    /// There are no work queues for programs.
    #[error("{path} has no work queue: no device is set up for programs (see `dray doctor`)")]
    NoQueues {
        /// Where they would be.
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
    /// The device file cannot be opened. EBUSY: another process has the dedicated queue.
    #[error("{path} cannot be opened")]
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
    /// A mover has at least 1 and at most 2^31 - 1 slots.
    #[error("a mover has 1 to {most} slots, not {asked}")]
    Slots {
        /// Slots asked for.
        asked: usize,
        /// Slots that there can be.
        most: u32,
    },
}
