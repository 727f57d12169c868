//! The thread that reads events: it keeps the books on the program's memory and ends its faults.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

use super::due::is_aside;
use super::engine::{Engine, Order};
use super::flight::Stage;
use super::outcome::Outcome;
use super::state::State;
use crate::sys::PAGE;
use crate::sys::uffd::Event;

/// Missing pages that are filled at once where a program goes through memory.
const FILL: u64 = 64;
/// Attempts to put a page back before a copy of it is tried.
pub(crate) const TRIES: u8 = 50;

impl Engine {
    /// Reads events until [`Engine::stop`]. For a thread whose stack and memory are not managed.
    pub fn serve(&self) {
        let mut events = Vec::with_capacity(64);
        while !self.stopped.load(Ordering::Acquire) {
            let waits = {
                let state = self.lock();
                state.deferred.is_empty() && state.due.is_empty()
            };
            let timeout = if waits { -1 } else { 1 };
            poll([self.uffd.as_raw_fd(), self.wake.as_raw_fd()], timeout);
            // No other thread may change the books between the reading of an event, which lets the
            // program go on, and its entry.
            let mut state = self.lock();
            loop {
                events.clear();
                if self.uffd.read(&mut events) == 0 {
                    break;
                }
                // The kernel returns faults first. Reading the event of a layout change lets the program continue,
                // and with it the calls that the change had stopped: the change must be recorded by then.
                let (faults, changes): (Vec<Event>, Vec<Event>) =
                    events.iter().partition(|event| event.is_fault());
                for event in changes.into_iter().chain(faults) {
                    self.handle(&mut state, event);
                }
            }
            self.settle(&mut state);
            for address in std::mem::take(&mut state.deferred) {
                self.missing(&mut state, address);
            }
        }
    }

    /// Events that have not come although no change of layout is under way do not come.
    pub(crate) fn settle(&self, state: &mut State) {
        if !state.due.is_empty() && !self.is_layout_changing() {
            let lost = state.nothing_is_due();
            self.counts.vanished.fetch_add(lost, Ordering::Relaxed);
        }
    }

    fn handle(&self, state: &mut State, event: Event) {
        match event {
            Event::Missing { address } => {
                self.counts.missing.fetch_add(1, Ordering::Relaxed);
                self.missing(state, address / PAGE * PAGE);
            }
            Event::Protected { address } => {
                self.counts.protected.fetch_add(1, Ordering::Relaxed);
                self.writable(state, address / PAGE * PAGE);
            }
            Event::Fork { child } => self.forked(state, child),
            Event::Remap { from, to, len } => {
                self.counts.layout.fetch_add(1, Ordering::Relaxed);
                state.remapped(from, to, len);
            }
            // A `Quiet` has ended.
            Event::Remove { start, .. } if start == self.bell => {}
            Event::Remove { start, end } => {
                self.counts.layout.fetch_add(1, Ordering::Relaxed);
                state.dropping(start, end);
            }
            Event::Unmap { start, end } => {
                self.counts.layout.fetch_add(1, Ordering::Relaxed);
                state.unmapped(start, end);
            }
        }
    }

    /// A thread waits to write to a page. If the page is being copied it stays where it is, and the thread
    /// continues; if it is out already the thread waits until the end of the batch.
    fn writable(&self, state: &mut State, page: u64) {
        let (start, len) = match state.stage_of(page) {
            Some(Stage::In) => state.leave(page, Outcome::Written),
            Some(Stage::Ended(Outcome::Written)) => state.span_at(page),
            Some(_) => return,
            None => None,
        }
        .unwrap_or((page, PAGE));
        match self.uffd.write_protect(start, len, false) {
            Ok(()) => {}
            // The layout changes; the waiting thread retries its access, and faults again if need be.
            Err(_) => self.uffd.wake(page, PAGE),
        }
    }

    /// A thread waits for a page.
    fn missing(&self, state: &mut State, page: u64) {
        if page == self.bell {
            return self.put_all_hints_back(state);
        }
        let stage = state.stage_of(page);
        if stage == Some(Stage::Out) {
            return;
        }
        // It is in the batch and not out. The waiting thread may be the one that migrates, which copies it; and
        // the page is not protected.
        if stage.is_some() && self.config.order == Order::SharedRead {
            state.leave(page, Outcome::Gone);
        }
        // It may be out as a hint as well: only a page that is nowhere is filled with zeros.
        if let Some(hint) = state.hints.at(page) {
            match self.put_hint_back(state, hint) {
                true => state.hints.touched.push(hint),
                false => state.deferred.push(page),
            }
            return;
        }
        // The program has dropped it, or it was never there.
        if stage.is_some() {
            return self.zeros(state, page, page + PAGE);
        }
        self.fill(state, page);
    }

    /// A thread waits until no hint is out.
    fn put_all_hints_back(&self, state: &mut State) {
        for page in state.hints.addresses() {
            self.put_hint_back(state, page);
        }
        if state.hints.first().is_some() {
            state.deferred.push(self.bell);
            return;
        }
        match self.uffd.zero(self.bell, PAGE) {
            Ok(()) => {}
            Err((_, libc::EAGAIN)) => state.deferred.push(self.bell),
            // It is present: the waiting thread retries.
            Err(_) => self.uffd.wake(self.bell, PAGE),
        }
    }

    /// Zeros for a page that was never written, or has been dropped.
    fn fill(&self, state: &mut State, page: u64) {
        let (next, before) = state.filled;
        let pages = match next == page {
            true => (2 * before).min(FILL),
            false => 1,
        };
        let end = state.clear_until(page, pages * PAGE);
        let end = if state.covers(page, end) {
            end
        } else {
            page + PAGE
        };
        self.zeros(state, page, end);
    }

    fn zeros(&self, state: &mut State, page: u64, end: u64) {
        let done = match self.uffd.zero(page, end - page) {
            Ok(()) => end - page,
            // Managed memory in a row may be several mappings, and a call is for one.
            Err((0, libc::ENOENT | libc::EINVAL)) if end - page > PAGE => {
                state.filled = (0, 0);
                return self.fill(state, page);
            }
            Err((done, _)) if done > 0 => done,
            Err((_, libc::EAGAIN)) => {
                state.deferred.push(page);
                return;
            }
            Err((_, error)) => {
                // It is present already, or the mapping is gone: the waiting thread retries.
                if error == libc::EEXIST {
                    state.filled = (0, 0);
                }
                self.uffd.wake(page, PAGE);
                return;
            }
        };
        state.filled = (page + done, done / PAGE);
        state
            .blocks
            .change_range(page, page + done, |block, pages| {
                block.dropping &= !pages;
                block.slow &= !pages;
            });
    }

    /// Puts a hint's frame back under its page; `false` if that is to be tried again.
    pub(crate) fn put_hint_back(&self, state: &mut State, page: u64) -> bool {
        if is_aside(page) {
            return false;
        }
        let Some(hint) = state.hints.get(page) else {
            return true;
        };
        let (slot, len) = (hint.slot, hint.len());
        // SAFETY: the frame was taken from there, and a thread that touches the page waits.
        let ended = match unsafe { self.uffd.move_pages(page, slot, len, true) } {
            Ok(()) => true,
            Err((done, _)) if done > 0 => {
                // It is huge no more; its first base pages are back.
                state.hints.split(page);
                for back in (page..page + done).step_by(PAGE as usize) {
                    state.hints.remove(back);
                }
                state.came_back(page, done);
                return false;
            }
            Err((_, libc::EAGAIN)) => false,
            // The frame has gone in, uncounted: see `Uffd::move_pages`.
            Err((_, libc::EEXIST)) if hint.huge => {
                state.hints.split(page);
                return false;
            }
            Err(_) if !hint.huge && !self.is_there(slot) => {
                self.uffd.wake(page, PAGE);
                true
            }
            Err(_) if hint.tries < TRIES => {
                hint.tries += 1;
                false
            }
            Err(_) if hint.huge => {
                // Its mapping is in parts now.
                state.hints.split(page);
                return false;
            }
            Err(_) => match self.uffd.copy(page, slot, PAGE) {
                Err((_, libc::EAGAIN)) => false,
                copied => {
                    // A copy leaves the frame; so does a page whose mapping is gone.
                    if copied.is_err() {
                        self.counts.vanished.fetch_add(1, Ordering::Relaxed);
                    }
                    state.hints.drop_range(page, page + PAGE);
                    state.came_back(page, PAGE);
                    self.uffd.wake(page, PAGE);
                    return true;
                }
            },
        };
        if ended {
            state.hints.remove(page);
            // Scans for writes leave huge pages out.
            if len == PAGE {
                state.came_back(page, len);
            }
        }
        ended
    }
}

/// Waits until one of the files can be read, or for some milliseconds; -1 waits for ever.
fn poll(files: [RawFd; 2], timeout: i32) {
    let mut polled = files.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: there are two.
    unsafe { libc::poll(polled.as_mut_ptr(), 2, timeout) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copier::Cores;
    use crate::mechanism::Config;
    use crate::mechanism::flight::Flight;
    use crate::sys::memory;

    #[test]
    fn a_page_of_the_batch_that_is_also_a_hint_is_put_back() {
        for (order, stage) in [
            (Order::Strict, Stage::In),
            (Order::SharedRead, Stage::Ended(Outcome::Gone)),
        ] {
            let config = Config {
                order,
                ..Config::default()
            };
            let engine = Engine::new(config, Box::new(Cores::new(1))).expect("root on Linux 6.8");
            let page = memory::reserve(PAGE, PAGE).expect("memory");
            let word = || std::ptr::with_exposed_provenance_mut::<u64>(page as usize);
            // SAFETY: this test's memory.
            unsafe { word().write_volatile(7) };
            engine.register(page, page + PAGE).expect("its own memory");
            assert_eq!(engine.arm_hints(&[page]), 1);
            let mut state = engine.lock();
            state.flights.push(Flight {
                origin: page,
                address: page,
                huge: false,
                landing: 0,
                made: 0,
                stage: Stage::In,
                tries: 0,
            });
            std::thread::scope(|scope| {
                // SAFETY: as above.
                let reader = scope.spawn(|| unsafe { word().read_volatile() });
                let mut events = Vec::new();
                while engine.uffd.read(&mut events) == 0 {
                    poll([engine.uffd.as_raw_fd(), engine.wake.as_raw_fd()], -1);
                }
                for event in events {
                    engine.handle(&mut state, event);
                }
                assert_eq!(reader.join().expect("a reader"), 7);
            });
            assert_eq!(state.flights[0].stage, stage);
            state.flights.clear();
            drop(state);
            engine.unregister(page, page + PAGE);
            // SAFETY: this test's, and nothing uses it any more.
            unsafe { memory::unmap(page, PAGE) };
        }
    }
}
