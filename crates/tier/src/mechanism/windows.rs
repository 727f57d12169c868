//! Frames that are under no program's page: windows of dray's own memory.
//!
//! Pages that move out land in a window that is registered with the userfaultfd, as the destination
//! of `UFFDIO_MOVE` must be. Frames to move in are made in windows that are not, bound to their
//! tier's NUMA node. No forked child gets any of them: its frames would count as shared.

use super::engine::Tier;
use crate::TierError;
use crate::error::system;
use crate::sys::uffd::{REGISTER_MISSING, Uffd};
use crate::sys::{HUGE, PAGE, memory};

/// Base pages of a batch.
pub const BASE_SLOTS: u64 = 1024;
/// Huge pages of a batch.
pub const HUGE_SLOTS: u64 = 24;

/// A row of slots of one size.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) base: u64,
    pub(crate) slot: u64,
    pub(crate) slots: u64,
    /// Slots from the first on that hold frames to be used again.
    pub(crate) kept: u64,
    /// Emptying it has failed: pages that nobody wants may be in it.
    unsure: bool,
    node: Option<u32>,
    thp: bool,
}

impl Window {
    fn new(slot: u64, slots: u64, tier: &Tier, thp: bool) -> Result<Window, TierError> {
        let len = slot * slots;
        let base = memory::reserve(len, HUGE).map_err(system("mmap"))?;
        let window = Window {
            base,
            slot,
            slots,
            kept: 0,
            unsure: false,
            node: tier.node,
            thp,
        };
        window.advise()?;
        Ok(window)
    }

    fn advise(&self) -> Result<(), TierError> {
        if let Some(node) = self.node {
            memory::bind(self.base, self.len(), node).map_err(|_| TierError::NoNode { node })?;
        }
        // Without huge pages in the kernel there are none to move either.
        let advice = match self.thp {
            true => libc::MADV_HUGEPAGE,
            false => libc::MADV_NOHUGEPAGE,
        };
        let _ = memory::advise(self.base, self.len(), advice);
        Ok(())
    }

    /// Maps the whole window anew: a slot that has held base pages keeps their page table, and a
    /// huge page can neither be made nor land there.
    ///
    /// # Errors
    /// It is of no use; [`Window::ready`] tries again.
    pub(crate) fn renew(&mut self, uffd: Option<&Uffd>) -> Result<(), TierError> {
        self.unsure = true;
        self.kept = 0;
        if let Some(uffd) = uffd {
            uffd.unregister(self.base, self.len())
                .map_err(system("UFFDIO_UNREGISTER"))?;
        }
        // SAFETY: the window is ours, and between batches nobody uses it.
        unsafe { memory::renew(self.base, self.len()) }.map_err(system("mmap"))?;
        self.advise()?;
        if let Some(uffd) = uffd {
            uffd.register(self.base, self.len(), REGISTER_MISSING)
                .map_err(system("UFFDIO_REGISTER"))?;
        }
        self.unsure = false;
        Ok(())
    }

    /// Before it is used: slots that could not be emptied are mapped anew.
    ///
    /// # Errors
    /// It is of no use.
    pub(crate) fn ready(&mut self, uffd: Option<&Uffd>) -> Result<(), TierError> {
        match self.unsure {
            true => self.renew(uffd),
            false => Ok(()),
        }
    }

    /// Bytes.
    pub(crate) fn len(&self) -> u64 {
        self.slot * self.slots
    }

    /// Where a slot is.
    pub(crate) fn at(&self, slot: u64) -> u64 {
        self.base + slot * self.slot
    }

    /// Empties slots; the window is not registered.
    ///
    /// # Errors
    /// Pages may be left; [`Window::ready`] removes them.
    pub(crate) fn drop_frames(&mut self, first: u64, count: u64) -> Result<(), TierError> {
        let emptied = memory::empty(self.at(first), count * self.slot);
        self.unsure |= emptied.is_err();
        emptied.map_err(system("MADV_DONTNEED"))
    }

    /// Empties slots of a registered window. It is unregistered meanwhile: the kernel would report it
    /// to the thread that reads events and wait.
    ///
    /// # Errors
    /// Pages may be left; [`Window::ready`] removes them.
    pub(crate) fn drop_landed(
        &mut self,
        uffd: &Uffd,
        first: u64,
        count: u64,
    ) -> Result<(), TierError> {
        if count == 0 {
            return Ok(());
        }
        let unsure = std::mem::replace(&mut self.unsure, true);
        uffd.unregister(self.base, self.len())
            .map_err(system("UFFDIO_UNREGISTER"))?;
        self.drop_frames(first, count)?;
        uffd.register(self.base, self.len(), REGISTER_MISSING)
            .map_err(system("UFFDIO_REGISTER"))?;
        self.unsure = unsure;
        Ok(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the window is ours, and who drops it uses it no more.
        unsafe { memory::unmap(self.base, self.len()) };
    }
}

/// The windows of one tier.
#[derive(Debug)]
pub(crate) struct TierWindows {
    /// Where pages of this tier land.
    pub(crate) landing: [Window; 2],
    /// Where new frames of this tier are made.
    pub(crate) making: [Window; 2],
}

impl TierWindows {
    pub(crate) fn new(tier: &Tier, uffd: &Uffd) -> Result<TierWindows, TierError> {
        let pair = || -> Result<[Window; 2], TierError> {
            Ok([
                Window::new(PAGE, BASE_SLOTS, tier, false)?,
                Window::new(HUGE, HUGE_SLOTS, tier, true)?,
            ])
        };
        let windows = TierWindows {
            landing: pair()?,
            making: pair()?,
        };
        for window in &windows.landing {
            uffd.register(window.base, window.len(), REGISTER_MISSING)
                .map_err(system("UFFDIO_REGISTER"))?;
        }
        Ok(windows)
    }

    /// Ranges of all of them.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.landing
            .iter()
            .chain(&self.making)
            .map(|window| (window.base, window.base + window.len()))
    }
}
