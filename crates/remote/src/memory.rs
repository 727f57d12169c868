//! The memory of whichever process a descriptor comes from.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use dray_device::{Access, AddressSpace, Memory, copy_in_parts};
use dray_realtime::{SharedMemory, View};
use dray_spec::CompletionRecord;
use zerocopy::transmute;

use crate::Spaces;
use crate::pagemap::PAGE;
use crate::process::{Known, Process};
use crate::transfer;
use crate::windows::{Fault, Windows};

/// Accesses that may fail while a descriptor is executed again and again; then all of them do.
const MOST_FAILURES: usize = 4;

/// What a device finds on a page that its process may access and that is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// A page fault, unless the descriptor blocks on faults: as on hardware.
    #[default]
    Strict,
    /// The page, as a processor would: the kernel brings it in.
    Touch,
}

/// The memory of the processes of some [`Spaces`], for one thread of a device.
///
/// Permissions are checked when the descriptor begins. A process may unmap or protect pages while
/// they are being accessed: an access that fails although it was permitted is recorded, and
/// the descriptor is executed again and ends with a page fault there. What it had written over its own
/// sources is put back before, so that nothing is computed from its own output.
///
/// Pages are as present as `/proc/PID/pagemap` says: that a page is shared until it is written (the
/// zero page, a copy after fork) cannot be seen there, so a write to it succeeds where hardware would
/// have a page fault.
pub struct RemoteMemory {
    spaces: Arc<Spaces>,
    presence: Presence,
    view: View,
    process: Option<Arc<Process>>,
    /// State of `spaces` from which `process` is.
    seen: u64,
    state: RefCell<State>,
    /// Other address spaces of the same descriptor.
    others: Vec<RemoteMemory>,
    /// Nothing is kept between accesses.
    direct: bool,
}

/// What is known of the memory while a descriptor is at it.
#[derive(Debug, Default)]
struct State {
    windows: Windows,
    /// Pages that could not be accessed.
    bad: Vec<(u64, Access)>,
    /// An access has failed since the descriptor began.
    failed: bool,
    known: Known,
}

impl RemoteMemory {
    /// Of the processes in `spaces`.
    pub fn new(spaces: Arc<Spaces>, presence: Presence) -> RemoteMemory {
        let mut memory = RemoteMemory {
            seen: 0,
            view: View::default(),
            process: None,
            state: RefCell::default(),
            others: Vec::new(),
            direct: false,
            spaces,
            presence,
        };
        memory.look_up();
        memory
    }

    fn look_up(&mut self) {
        self.seen = self.spaces.changes();
        self.process = self.spaces.get(self.view.pasid);
    }

    /// Does something with the process, unless an access has failed before: then the descriptor is
    /// executed again in any case.
    fn attempt(&self, access: impl FnOnce(&Process, &mut Windows) -> Result<(), Fault>) {
        let state = &mut *self.state.borrow_mut();
        let Some(process) = &self.process else {
            state.failed = true;
            return;
        };
        if state.failed {
            return;
        }
        if let Err(fault) = access(process, &mut state.windows) {
            state.failed = true;
            state.bad.push((fault.address / PAGE * PAGE, fault.access));
            // Where that fails the old ones stay, and the page is remembered.
            let _ = process.look_again();
            state.windows.put_back(&process.target);
        }
    }
}

impl fmt::Debug for RemoteMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteMemory")
            .field("presence", &self.presence)
            .field("view", &self.view)
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

impl Clone for RemoteMemory {
    /// The same processes, for another thread.
    fn clone(&self) -> RemoteMemory {
        RemoteMemory::new(self.spaces.clone(), self.presence)
    }
}

impl Memory for RemoteMemory {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let Some(process) = &self.process else {
            return 0;
        };
        let state = &mut *self.state.borrow_mut();
        if len == 0 || state.bad.len() > MOST_FAILURES {
            return 0;
        }
        let mut bytes = process.permitted(addr, len, access, &mut state.known);
        if self.presence == Presence::Strict && !self.view.blocks {
            bytes = process.pages.present(addr, bytes);
        } else if bytes > 0 && !state.known.there {
            // Once for a descriptor: of what ends meanwhile the number is not given again so soon.
            state.known.there = process.pages.is_there(addr);
            bytes = if state.known.there { bytes } else { 0 };
        }
        for (page, of) in &state.bad {
            if *of == access && addr < page + PAGE && *page < addr + bytes {
                bytes = page.saturating_sub(addr);
            }
        }
        if access == Access::Read && !self.direct {
            state.windows.allow(addr, bytes);
        }
        bytes
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        into.fill(0);
        self.attempt(|process, windows| match self.direct {
            true => transfer::read(&process.target, addr, into).map_err(|short| Fault {
                address: addr + short.done as u64,
                access: Access::Read,
            }),
            false => windows.read(&process.target, addr, into),
        });
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        self.attempt(|process, windows| {
            windows.write(&process.target, addr, from)?;
            match self.direct {
                true => windows.flush(&process.target),
                false => Ok(()),
            }
        });
    }

    /// Without a copy in between where the places do not overlap: then nothing is written that is yet to be read.
    fn copy(&mut self, from: u64, to: u64, len: u64) {
        if from.abs_diff(to) < len || self.direct {
            return copy_in_parts(self, from, to, len);
        }
        self.attempt(|process, windows| windows.copy(&process.target, from, to, len));
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        let pasid = space.pasid?;
        // It may be the same process.
        self.attempt(|process, windows| {
            let flushed = windows.flush(&process.target);
            windows.forget();
            flushed
        });
        let found = self.others.iter().position(|o| o.view.pasid == pasid);
        let index = found.unwrap_or_else(|| {
            let mut other = self.clone();
            other.direct = true;
            other.enter(View { pasid, ..self.view });
            self.others.push(other);
            self.others.len() - 1
        });
        Some(&mut self.others[index])
    }
}

impl SharedMemory for RemoteMemory {
    /// A page that is brought in may be a program's own to bring in (userfaultfd(2)).
    #[inline]
    fn may_wait(&self, blocks: bool) -> bool {
        blocks || self.presence == Presence::Touch
    }

    fn enter(&mut self, view: View) {
        let same = view.pasid == self.view.pasid && self.seen == self.spaces.changes();
        self.view = view;
        if !same {
            self.look_up();
        }
        let state = self.state.get_mut();
        state.windows.forget();
        state.bad.clear();
        state.failed = false;
        state.known = Known::default();
        self.others.clear();
    }

    fn settle(&mut self) -> bool {
        if self.process.is_some() {
            self.attempt(|process, windows| windows.flush(&process.target));
        }
        let state = self.state.get_mut();
        state.windows.forget();
        let mut reached = !std::mem::take(&mut state.failed);
        for other in &mut self.others {
            reached &= other.settle();
        }
        reached
    }

    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool {
        let Some(process) = &self.process else {
            return false;
        };
        transfer::publish(&process.target, address, &transmute!(*record)).is_ok()
    }
}
