//! Devices whose engines hold what they have.

use std::sync::{Arc, Condvar, Mutex};

use dray::virt::Translation;
use dray_device::Access;

/// Translations that stay unanswered until it is opened: engines hold their descriptors.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Translation for Gate {
    fn accessible(&self, _: u64, len: u64, _: Access) -> u64 {
        let (open, opened) = &*self.0;
        let held = open.lock().expect("no thread panics in it");
        drop(opened.wait_while(held, |open| !*open).expect("as above"));
        len
    }
}

/// Opens a gate when it goes, so that a test that fails ends.
pub(crate) struct Opener(pub(crate) Gate);

impl Opener {
    pub(crate) fn open(&self) {
        let (open, opened) = &*self.0.0;
        *open.lock().expect("no thread panics in it") = true;
        opened.notify_all();
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.open();
    }
}
