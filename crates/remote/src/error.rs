//! Why a process's memory cannot be worked on.

use std::io;

use thiserror::Error;

/// Why a process's memory cannot be worked on.
#[derive(Debug, Error)]
pub enum SpaceError {
    /// There is no such process, or it is about to end.
    #[error("there is no process {pid}")]
    Gone {
        /// Its number.
        pid: u32,
    },
    /// Its memory is not for us: another user's, or not dumpable (ptrace(2), access mode checking).
    #[error("the memory of process {pid} is not accessible")]
    Forbidden {
        /// Its number.
        pid: u32,
    },
    /// Something else is wrong with it.
    #[error("the memory of process {pid}")]
    System {
        /// Its number.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// A PASID has 20 bits.
    #[error("{pasid:#x} is not a PASID")]
    Pasid {
        /// The number.
        pasid: u32,
    },
}

impl SpaceError {
    pub(crate) fn of(pid: u32, source: io::Error) -> SpaceError {
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => SpaceError::Gone { pid },
            Some(libc::EACCES | libc::EPERM) => SpaceError::Forbidden { pid },
            _ => SpaceError::System { pid, source },
        }
    }
}
