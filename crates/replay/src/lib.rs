//! Recorded programs on a modelled machine.
//!
//! Each thread of a [recording](dray_recording::Recording) is a closed loop in modelled time, on a core of its own: it
//! uses its core for as long as it was recorded to, waits for the end that it could have seen, and goes on ([`Program`],
//! [`Way`]). What the device does, and when, is the model's ([`dray_model::World`]).

mod interval;
mod latency;
mod machine;
mod operation;
mod program;
mod replay;
mod thread;
mod way;

pub use interval::{Compared, compare};
pub use latency::{Latency, SizeClass};
pub use program::{LeftOut, Program, ProgramOptions};
pub use replay::{Replayed, ThreadTimes, replay};
pub use way::{Order, Placement, Think, Way};

use dray_figures::FiguresError;
use thiserror::Error;

/// Why a recording cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The machine, or its configuration.
    #[error(transparent)]
    Machine(#[from] FiguresError),
    /// Nothing in it can be.
    #[error("the recording has no request that can be replayed")]
    Empty,
    /// Each thread needs an entry of its dedicated queue: what is written to a full one is lost.
    #[error(
        "{threads} threads share the dedicated work queue {queue}, which has fewer entries; a shared one takes them all"
    )]
    Crowded {
        /// The queue.
        queue: String,
        /// Threads that are replayed on it.
        threads: usize,
    },
    /// A batch is larger than a work queue takes.
    #[error("a batch of {members} is above the work queue's limit of {limit}")]
    Batch {
        /// Members of the batch.
        members: u32,
        /// What the queue takes.
        limit: u32,
    },
}

impl From<dray_model::Stalled> for ReplayError {
    fn from(stalled: dray_model::Stalled) -> ReplayError {
        ReplayError::Machine(stalled.into())
    }
}
