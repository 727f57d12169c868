//! poll(2) on work queues: ready from the first error of the device on (`idxd_cdev_poll`).

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::PollNotifier;
use rustix::net::{Shutdown, shutdown};

/// How those who wait by an open node learn of an error.
#[derive(Debug)]
pub(crate) enum Waiters {
    /// They look again. Of one node all have the same notifier.
    Notified(PollNotifier),
    /// The node is a socket, whose other end this is: that it ends makes the node ready.
    Socket(Arc<OwnedFd>),
}

/// Open nodes that someone may wait for, by their cookies, with the devices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pollers(Arc<Mutex<HashMap<u64, (u32, Waiters)>>>);

impl Pollers {
    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, (u32, Waiters)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Someone may wait by an open node.
    pub(crate) fn add(&self, cookie: u64, device: u32, waiters: Waiters) {
        self.waiting().insert(cookie, (device, waiters));
    }

    /// The node is closed.
    pub(crate) fn remove(&self, cookie: u64) {
        self.waiting().remove(&cookie);
    }

    /// An error is in a device's register.
    pub(crate) fn wake(&self, device: u32) {
        let mut waiting = self.waiting();
        let woken = waiting.extract_if(|_, (other, _)| *other == device);
        let woken: Vec<Waiters> = woken.map(|(_, (_, waiters))| waiters).collect();
        drop(waiting);
        for waiters in woken {
            // Both fail where the node is gone, and its waiters with it.
            match waiters {
                Waiters::Notified(notifier) => _ = notifier.notify(),
                Waiters::Socket(end) => _ = shutdown(&end, Shutdown::Write),
            }
        }
    }
}
