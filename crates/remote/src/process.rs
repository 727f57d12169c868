//! One process whose memory a device works on.

use std::fs::File;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use dray_device::Access;
use libc::pid_t;

use crate::SpaceError;
use crate::maps::Maps;
use crate::pagemap::Pagemap;
use crate::query::{Mapping, mapping};
use crate::threads::{Target, living_thread};

/// What is known of an address space since a descriptor began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    /// It was still there.
    pub(crate) there: bool,
    /// The permissions were read.
    fresh: bool,
}

/// A process, by the files that show its address space.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) target: Target,
    pub(crate) pages: Pagemap,
    maps_file: File,
    /// For a kernel without PROCMAP_QUERY: the mappings as they were last read. A lookup does not wait for a
    /// thread that reads them.
    maps: ArcSwap<Maps>,
}

impl Process {
    pub(crate) fn open(pid: u32) -> Result<Process, SpaceError> {
        let failed = |source| SpaceError::of(pid, source);
        let number = pid_t::try_from(pid).map_err(|_| SpaceError::Gone { pid })?;
        let thread = living_thread(pid);
        let open = |name| File::open(format!("/proc/{thread}/{name}"));
        let maps_file = open("maps").map_err(failed)?;
        let pages = Pagemap::new(open("pagemap").map_err(failed)?);
        let maps = Maps::read(&maps_file).map_err(failed)?;
        // A zombie has the files, and they are empty.
        if maps == Maps::default() {
            return Err(SpaceError::Gone { pid });
        }
        Ok(Process {
            target: Target::new(number),
            pages,
            maps_file,
            maps: ArcSwap::from_pointee(maps),
        })
    }

    /// Bytes from `addr` on, at most `len`, that the process itself could access so, now.
    ///
    /// Where the kernel has no PROCMAP_QUERY the permissions are read once for each descriptor, and again before an access is refused: a
    /// program may have changed them since.
    pub(crate) fn permitted(&self, addr: u64, len: u64, access: Access, known: &mut Known) -> u64 {
        if let Some(permitted) = self.ask(addr, len, access) {
            // Of an address space that is gone it permits nothing.
            known.there |= permitted > 0;
            return permitted;
        }
        if !known.fresh {
            known.fresh = self.look_again().is_ok();
        }
        let permitted = self.maps.load().permitted(addr, len, access);
        if permitted == len || self.look_again().is_err() {
            return permitted;
        }
        self.maps.load().permitted(addr, len, access)
    }

    /// By PROCMAP_QUERY; `None` where the kernel does not have it.
    fn ask(&self, addr: u64, len: u64, access: Access) -> Option<u64> {
        let end = addr.saturating_add(len);
        let mut reached = addr;
        while reached < end {
            let found = mapping(&self.maps_file, reached).ok()?;
            let permits = |found: &Mapping| match access {
                Access::Read => found.readable,
                Access::Write => found.writable,
            };
            match found.filter(permits) {
                Some(found) => reached = found.end,
                None => break,
            }
        }
        Some(reached.min(end) - addr)
    }

    /// Whether the address space is still there: the process has neither ended nor executed another
    /// program.
    pub(crate) fn is_there(&self) -> bool {
        self.pages.is_there(0)
    }

    /// Reads the permissions again.
    pub(crate) fn look_again(&self) -> io::Result<()> {
        let maps = Maps::read(&self.maps_file)?;
        self.maps.store(Arc::new(maps));
        Ok(())
    }
}
