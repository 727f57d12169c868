//! Panics of this process's threads: each of them is the device, or serves it. Without it programs would wait for
//! ever, so the first panic ends the session.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};

use crate::RunError;
use crate::error::system;

/// Watches the threads of this process.
#[derive(Debug)]
pub(crate) struct Panics {
    /// Can be read once there was one.
    bell: Arc<OwnedFd>,
    first: Arc<OnceLock<Panicked>>,
}

/// A panic.
#[derive(Debug, Clone)]
struct Panicked {
    thread: String,
    message: String,
}

impl Panics {
    /// From now on, whether it is caught or not. After the last fork.
    ///
    /// # Errors
    /// No more descriptors.
    pub(crate) fn watch() -> Result<Panics, RunError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = Arc::new(eventfd(0, flags).map_err(system("eventfd"))?);
        let first = Arc::<OnceLock<Panicked>>::default();
        let (rung, set, before) = (bell.clone(), first.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| {
            before(info);
            let payload = info.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let message = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            // The first one counts.
            let _ = set.set(Panicked {
                thread: thread::current().name().unwrap_or("a thread").into(),
                message: message.unwrap_or("(no message)").into(),
            });
            // It cannot be full: so many panics are not possible.
            let _ = rustix::io::write(&*rung, &1_u64.to_ne_bytes());
        }));
        Ok(Panics { bell, first })
    }

    /// What ends the session, if a thread has panicked.
    pub(crate) fn error(&self) -> Option<RunError> {
        let Panicked { thread, message } = self.first.get()?.clone();
        Some(RunError::Panicked { thread, message })
    }
}

impl AsFd for Panics {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
