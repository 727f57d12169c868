//! poll(2) on work queues: ready from the first error of the device on (`idxd_cdev_poll`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::PollNotifier;

/// Open nodes that someone waits for, by their cookies, with the devices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pollers(Arc<Mutex<HashMap<u64, (u32, PollNotifier)>>>);

impl Pollers {
    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, (u32, PollNotifier)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Someone waits by an open node. Of one node all have the same notifier.
    pub(crate) fn add(&self, cookie: u64, device: u32, notifier: PollNotifier) {
        self.waiting().insert(cookie, (device, notifier));
    }

    /// The node is closed.
    pub(crate) fn remove(&self, cookie: u64) {
        self.waiting().remove(&cookie);
    }

    /// An error is in a device's register: those who wait look again.
    pub(crate) fn wake(&self, device: u32) {
        let mut waiting = self.waiting();
        let woken = waiting.extract_if(|_, (other, _)| *other == device);
        let woken: Vec<PollNotifier> = woken.map(|(_, (_, notifier))| notifier).collect();
        drop(waiting);
        for notifier in woken {
            // It fails where the file system is gone, and its waiters with it.
            let _ = notifier.notify();
        }
    }
}
