//! Children that a program makes while pages are out, by whatever call: they get copies of these pages.
//!
//! The kernel holds the thread that forks until the event is read, and no page moves between the fork and that. So what is
//! out by the books is what the child lacks. The child's memory is registered with a userfaultfd of its own:
//! a child that touches such a page waits, and reads no zeros.

use std::os::fd::RawFd;

use super::engine::Engine;
use super::flight::Stage;
use super::state::State;
use crate::sys::uffd::{Event, Uffd};

/// A page that a child lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lacking {
    address: u64,
    /// Where this process has its content.
    content: u64,
    len: u64,
}

impl Engine {
    /// Gives a child the pages that are out, and leaves its memory alone from then on.
    pub(super) fn forked(&self, state: &State, child: RawFd) {
        let flights = state.flights.iter();
        let out = flights.filter(|flight| flight.stage == Stage::Out);
        let out = out.map(|flight| (flight.address, flight.landing, flight.len()));
        let lacking = out.chain(state.hints.out());
        let lacking = lacking.map(|(address, content, len)| Lacking {
            address,
            content,
            len,
        });
        self.fill_child(child, lacking.collect());
    }

    fn fill_child(&self, child: RawFd, mut lacking: Vec<Lacking>) {
        // SAFETY: the kernel has made it for the reader of the event, which passes it on here.
        let child = unsafe { self.uffd.of_child(child) };
        while let Some(page) = lacking.pop() {
            // It has a page there already, or no such mapping any more: nothing is lacking.
            if let Err((done, libc::EAGAIN)) = child.copy(page.address, page.content, page.len) {
                lacking.push(Lacking {
                    address: page.address + done,
                    content: page.content + done,
                    len: page.len - done,
                });
                self.follow(&child, &mut lacking);
            }
        }
        // Closing it unregisters the child's memory and wakes the child.
    }

    /// The child runs, and changes its layout meanwhile.
    fn follow(&self, child: &Uffd, lacking: &mut Vec<Lacking>) {
        let mut events = Vec::new();
        child.read(&mut events);
        for event in events {
            match event {
                Event::Fork { child } => self.fill_child(child, lacking.clone()),
                Event::Remove { start, end } | Event::Unmap { start, end } => {
                    without(lacking, start, end);
                }
                Event::Remap { from, to, len } => {
                    for page in lacking.iter_mut() {
                        if (from..from + len).contains(&page.address) {
                            page.address = page.address - from + to;
                        }
                    }
                }
                Event::Missing { .. } | Event::Protected { .. } => {}
            }
        }
    }
}

/// Takes a range of addresses out.
fn without(lacking: &mut Vec<Lacking>, start: u64, end: u64) {
    let parts = lacking.iter().flat_map(|page| {
        let last = page.address + page.len;
        let before = (page.address, last.min(start));
        let after = (page.address.max(end), last);
        [before, after].map(|(from, to)| Lacking {
            address: from,
            content: page.content + (from - page.address),
            len: to.saturating_sub(from),
        })
    });
    *lacking = parts.filter(|page| page.len > 0).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copier::Cores;
    use crate::mechanism::Config;
    use crate::sys::uffd::FEATURE_EVENT_FORK;
    use crate::sys::{PAGE, memory};

    #[test]
    fn what_a_child_has_dropped_is_not_lacking() {
        let page = |address, content, len| Lacking {
            address,
            content,
            len,
        };
        let mut lacking = vec![page(0x10, 0x100, 0x10), page(0x30, 0x300, 0x10)];
        without(&mut lacking, 0x14, 0x18);
        without(&mut lacking, 0x30, 0x40);
        assert_eq!(lacking, [page(0x10, 0x100, 4), page(0x18, 0x108, 8)]);
        without(&mut lacking, 0, 0x12);
        without(&mut lacking, 0x1c, 0x40);
        assert_eq!(lacking, [page(0x12, 0x102, 2), page(0x18, 0x108, 4)]);
    }

    /// By the bare system call, which no handler of the C library sees.
    #[test]
    fn a_child_by_the_system_call_has_the_pages_that_are_out() {
        const PAGES: u64 = 32;
        let engine = Engine::new(Config::default(), Box::new(Cores::new(1))).expect("Linux 6.8");
        if engine.uffd.features() & FEATURE_EVENT_FORK == 0 {
            eprintln!("skipped: events of forks need CAP_SYS_PTRACE");
            return;
        }
        let start = memory::reserve(PAGES * PAGE, PAGE).expect("memory");
        memory::advise(start, PAGES * PAGE, libc::MADV_DOFORK).expect("it is ours");
        let word = |page: u64| {
            let at = (start + page * PAGE) as usize;
            std::ptr::with_exposed_provenance_mut::<u64>(at)
        };
        for page in 0..PAGES {
            // SAFETY: this test's memory.
            unsafe { word(page).write_volatile(page + 1) };
        }
        engine
            .register(start, start + PAGES * PAGE)
            .expect("its own memory");
        std::thread::scope(|scope| {
            let server = scope.spawn(|| engine.serve());
            let stops = engine.stops();
            let pages: Vec<u64> = (0..PAGES).map(|page| start + page * PAGE).collect();
            assert_eq!(engine.arm_hints(&pages), PAGES);
            // SAFETY: the child makes system calls alone.
            let child = unsafe { libc::syscall(libc::SYS_fork) };
            if child == 0 {
                // SAFETY: its own copy of this test's memory.
                let wrong =
                    (0..PAGES).filter(|page| unsafe { word(*page).read_volatile() } != page + 1);
                let wrong = wrong.count();
                // SAFETY: it ends the child.
                unsafe { libc::syscall(libc::SYS_exit_group, wrong) };
            }
            let mut status = 0;
            // SAFETY: the child from above.
            let waited = unsafe { libc::waitpid(child as i32, &raw mut status, 0) };
            assert_eq!((i64::from(waited), status), (child, 0));
            drop(stops);
            server.join().expect("the server");
        });
        // SAFETY: this test's, and nothing uses it any more.
        unsafe { memory::unmap(start, PAGES * PAGE) };
    }
}
