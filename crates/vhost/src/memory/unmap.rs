//! The thread that unmaps.
//!
//! What unmapping costs is the front end's choice: the kernel frees the page tables of what was mapped, and the pages
//! of a file that nobody else has any more, seconds for some gigabytes. Ports share a thread, so another one does it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use crate::affinity::unbound;

/// How many things of one front end wait to be unmapped. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    /// Whether there is any.
    pub(super) fn any(&self) -> bool {
        self.count() > 0
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Counts one more until it is dropped.
    pub(super) fn one(&self) -> Counted {
        self.0.fetch_add(1, Ordering::AcqRel);
        Counted(self.clone())
    }
}

/// A thing that waits.
pub(super) struct Counted(Waiting);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Something to drop, and its count: in this order.
type Gone = (Box<dyn Send>, Counted);

/// Drops something on the thread that unmaps, and counts it as waiting until then.
pub(super) fn later(gone: Box<dyn Send>, waiting: &Waiting) {
    static THREAD: OnceLock<Option<Sender<Gone>>> = OnceLock::new();
    if let Some(thread) = THREAD.get_or_init(start) {
        // The thread ends with the process. What it does not take is dropped here, with the error.
        let _ = thread.send((gone, waiting.one()));
    }
}

/// None if there can be no thread: what is to be dropped is dropped at once.
fn start() -> Option<Sender<Gone>> {
    let (sender, receiver) = channel::<Gone>();
    let thread = std::thread::Builder::new().name("dray-unmap".into());
    let drop_all = move || receiver.into_iter().for_each(drop);
    let thread = unbound(|| thread.spawn(drop_all)).flatten();
    thread.ok().map(|_| sender)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Says where it was dropped, once it may be.
    struct Slow(mpsc::Receiver<()>, mpsc::Sender<Option<String>>);

    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = self.0.recv();
            let _ = self
                .1
                .send(std::thread::current().name().map(str::to_owned));
        }
    }

    #[test]
    fn what_is_dropped_later_counts_until_another_thread_has_dropped_it() {
        let (go, may_go) = mpsc::channel();
        let (told, tell) = mpsc::channel();
        let waiting = Waiting::default();
        assert!(!waiting.any());
        later(Box::new(Slow(may_go, told)), &waiting);
        assert!(waiting.any());
        go.send(()).expect("it waits");
        let name = tell.recv().expect("it is dropped");
        assert_eq!(name.as_deref(), Some("dray-unmap"));
        while waiting.any() {
            std::thread::yield_now();
        }
    }
}
