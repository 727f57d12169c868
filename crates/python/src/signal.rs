//! A file descriptor that tells an event loop that operations have ended.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};

/// An eventfd. It stays open as long as an operation may still write to it.
#[pyclass(frozen, module = "dray")]
#[derive(Debug)]
pub(crate) struct Signal {
    fd: Arc<OwnedFd>,
}

fn failed(error: rustix::io::Errno) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), error.to_string()))
}

#[pymethods]
impl Signal {
    #[new]
    fn new() -> PyResult<Signal> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(failed)?;
        Ok(Signal { fd: Arc::new(fd) })
    }

    /// The descriptor, readable once an operation has ended.
    fn fileno(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Makes it unreadable again.
    fn clear(&self) -> PyResult<()> {
        let mut count = [0; 8];
        match rustix::io::read(&*self.fd, &mut count) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

impl Signal {
    pub(crate) fn fd(&self) -> Arc<OwnedFd> {
        self.fd.clone()
    }
}

/// Makes the descriptor readable.
pub(crate) fn tell(fd: &OwnedFd) {
    // It fails if the counter is at its highest: then it is readable.
    let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
}
