//! What a mover submits through: how descriptors are submitted, its credits, and whether the queue is still there.

use std::io;
use std::sync::Arc;

use dray_device::{Submission, WorkQueueMode};
use dray_spec::Descriptor;

use super::credits::{Credits, Pool};
use super::state::{Opened, State};
use super::submit_path::{QueuePath, SubmitPath, Submitting};
use super::{HwError, QueueInfo};
use crate::queue::Port;
use crate::{Executor, Home, QueueLost};

/// A work queue that is open.
#[derive(Debug)]
pub(super) struct HwPort {
    path: QueuePath,
    credits: Credits,
    state: State,
    home: Home,
}

/// What several movers of a queue have in common.
#[derive(Debug)]
pub(super) struct SharedPort {
    path: QueuePath,
    opened: Arc<Opened>,
    pool: Arc<Pool>,
}

impl SharedPort {
    /// As [`HwPort::open`].
    pub(super) fn open(
        queue: &QueueInfo,
        how: Option<Submitting>,
        rotates: bool,
    ) -> Result<SharedPort, HwError> {
        Ok(SharedPort {
            path: QueuePath::open(queue, how, rotates)?,
            opened: Opened::new(&queue.state, &queue.path),
            pool: Arc::new(Pool::new(queue.entries.into())),
        })
    }

    /// A port of the queue, number `turn`.
    pub(super) fn port(&self, queue: &QueueInfo, turn: usize) -> HwPort {
        let credits = match queue.mode {
            WorkQueueMode::Dedicated => Credits::of(self.pool.clone()),
            // The device itself answers what it has no room for.
            WorkQueueMode::Shared => Credits::Own(queue.entries.into()),
        };
        let state = State::new(self.opened.clone());
        HwPort::new(self.path.shared(turn), state, credits)
    }
}

impl HwPort {
    /// Opens a queue. `how`: the only method, or the portal and else write(2). `rotates`: each
    /// descriptor goes to another line of the portal.
    pub(super) fn open(
        queue: &QueueInfo,
        how: Option<Submitting>,
        rotates: bool,
    ) -> Result<HwPort, HwError> {
        let path = QueuePath::open(queue, how, rotates)?;
        let state = State::new(Opened::new(&queue.state, &queue.path));
        let credits = Credits::Own(queue.entries.into());
        Ok(HwPort::new(path, state, credits))
    }

    fn new(path: QueuePath, state: State, credits: Credits) -> HwPort {
        HwPort {
            path,
            credits,
            home: state.home(),
            state,
        }
    }

    pub(super) fn submit_path(&self) -> SubmitPath {
        self.path.kind()
    }

    pub(super) fn map_refusal(&self) -> Option<&io::Error> {
        self.path.refusal()
    }

    pub(super) fn retries(&self) -> u64 {
        self.path.retries()
    }

    pub(super) fn failure(&self) -> Option<&HwError> {
        match self.home.is_inherited() {
            true => Some(&HwError::Inherited),
            false => self.path.failure.as_ref().or(self.state.disabled.get()),
        }
    }
}

impl Port for HwPort {
    const EXECUTOR: Executor = Executor::Hardware;

    #[inline]
    fn submit(&mut self, descriptor: &Descriptor) -> Submission {
        if self.home.is_inherited() || self.state.is_disabled() {
            // The portal is not mapped in a child of fork, where it was. The queue may belong to another program by now.
            return Submission::Ignored;
        }
        if !self.credits.take() {
            return Submission::Retry;
        }
        // SAFETY: what the descriptor names is the promise of the caller that enqueued it.
        let submission = unsafe { self.path.submit(descriptor) };
        if submission != Submission::Accepted {
            self.credits.give_back();
        }
        submission
    }

    #[inline]
    fn credits(&self) -> usize {
        self.credits.most()
    }

    #[inline]
    fn ended(&mut self) {
        self.credits.give_back();
    }

    /// A queue is disabled when all that it had has ended.
    #[inline]
    fn has_ended(&self) -> bool {
        self.home.is_inherited() || self.state.after_empty_poll(self.path.file())
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.path.failure.is_some()
    }

    fn lost(&self) -> Option<QueueLost> {
        match self.failure()? {
            HwError::Inherited => Some(QueueLost::Inherited),
            HwError::Write { source, .. } => Some(QueueLost::Refused {
                errno: source.raw_os_error().unwrap_or(0),
            }),
            _ => Some(QueueLost::Disabled),
        }
    }
}
