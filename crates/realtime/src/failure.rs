//! What can go wrong with a device in real time.

use std::any::Any;
use std::io;

use dray_device::ConfigError;
use thiserror::Error;

use crate::AttachError;

/// Why a device could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// It cannot be enabled like this.
    #[error("the device cannot be enabled")]
    Config(#[from] ConfigError),
    /// The rings cannot be shared.
    #[error("the submission rings cannot be shared with other processes")]
    SharedRegion(#[from] AttachError),
    /// The system gave no thread.
    #[error("no thread for {thread}")]
    Thread {
        /// What it was for.
        thread: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A thread of the device panicked. The device has halted: its portals take nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the device has halted: {thread} panicked: {message}")]
pub struct Failure {
    /// Whose thread.
    pub thread: String,
    /// What the panic said.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(thread: &str, payload: &(dyn Any + Send)) -> Failure {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).into());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Failure {
            thread: thread.into(),
            message: message.unwrap_or_else(|| "(no message)".into()),
        }
    }
}

/// The device has stopped: nothing is left to do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the device has stopped")]
pub struct Stopped;
