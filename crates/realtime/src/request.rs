//! What handles of a device ask its dispatcher for.

use std::time::Instant;

use dray_device::{Effect, Function};

/// When something is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Between two descriptors.
    Now,
    /// Once no command is in progress.
    CommandEnded,
    /// Once no engine's thread holds anything.
    EnginesIdle,
    /// At this time.
    At(Instant),
}

/// Something to do with the device.
pub(crate) struct Request {
    pub(crate) when: When,
    pub(crate) action: Action,
}

/// Something to read of the device. It answers whoever waits.
pub(crate) type Inspection = Box<dyn FnOnce(&Function) + Send>;

/// Comes to an end, or says when it is to be called again.
pub(crate) type Action =
    Box<dyn FnMut(&mut Function, &mut Vec<Effect>) -> Result<Answer, When> + Send>;

/// Lets the waiting thread go on. For when the rings are as the action has left their queues, and its
/// effects have been carried out.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;
