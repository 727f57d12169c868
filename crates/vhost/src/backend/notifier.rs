//! Descriptors that a front end sends to be notified or to notify.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;

/// Makes sure that a write to a front end's eventfd never blocks this process. None if it cannot be
/// made sure: the queue then does without.
pub(super) fn non_blocking(descriptor: Option<OwnedFd>) -> Option<OwnedFd> {
    let descriptor = descriptor?;
    let flags = rustix::fs::fcntl_getfl(&descriptor).ok()?;
    rustix::fs::fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK).ok()?;
    Some(descriptor)
}
