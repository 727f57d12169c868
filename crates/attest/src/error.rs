//! Why a device could not be attested.

use std::io;

use dray::hw::HwError;
use dray_figures::FiguresError;
use dray_idxd::ProfileError;
use dray_realtime::StartError;
use thiserror::Error;

/// Why a device could not be attested.
#[derive(Debug, Error)]
pub enum AttestError {
    /// No memory.
    #[error("memory for descriptors cannot be mapped")]
    Memory {
        /// The system's error.
        source: io::Error,
    },
    /// The addresses of the table of rules are in use.
    #[error("{address:#x}, where the table of rules has its pages, cannot be mapped")]
    Ground {
        /// The first of them.
        address: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The work queue cannot be used.
    #[error(transparent)]
    Hardware(#[from] HwError),
    /// What the driver says of the work queue is not a configuration.
    #[error("{queue} cannot be described")]
    Configuration {
        /// The queue.
        queue: String,
        /// What is wrong with it.
        source: Box<ProfileError>,
    },
    /// The virtual device cannot be started.
    #[error("the virtual device cannot be started")]
    Start(#[from] StartError),
    /// The device does not even complete a NOOP.
    #[error("{queue} did not complete a {operation} within {seconds} s: nothing else was tried")]
    Dead {
        /// The queue.
        queue: String,
        /// What was submitted.
        operation: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// A shared queue has not accepted a descriptor.
    #[error("{queue} was full for {seconds} s: does another program use it?")]
    Full {
        /// The queue.
        queue: String,
        /// How long was tried.
        seconds: u64,
    },
    /// Samples cannot be kept.
    #[error("there is no room for samples in the directory for temporary files")]
    Samples {
        /// The system's error.
        source: io::Error,
    },
    /// Points cannot be measured or modelled.
    #[error(transparent)]
    Figures(Box<FiguresError>),
    /// A document describes a queue that no device has.
    #[error("the document describes a queue that no device can have")]
    Described,
    /// The program was interrupted.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl From<FiguresError> for AttestError {
    fn from(error: FiguresError) -> AttestError {
        AttestError::Figures(Box::new(error))
    }
}
