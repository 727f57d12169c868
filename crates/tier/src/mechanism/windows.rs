//! Frames that are under no program's page: windows of dray's own memory.
//!
//! Pages that move out land in a window that is registered with the userfaultfd, as the destination
//! of `UFFDIO_MOVE` must be. Frames to move in are made in windows that are not, bound to their
//! tier's NUMA node. No forked child gets any of them: its frames would count as shared.

use super::engine::{Release, Tier};
use crate::TierError;
use crate::error::system;
use crate::sys::pagemap::PageMap;
use crate::sys::references::{CHECKABLE, unreferenced};
use crate::sys::uffd::{REGISTER_MISSING, Uffd};
use crate::sys::{HUGE, PAGE, memory};

/// Base pages of a batch.
pub const BASE_SLOTS: u64 = 1024;
/// Huge pages of a batch.
pub const HUGE_SLOTS: u64 = 24;

/// Slots of a window where base pages land, and their frames are kept: at least a batch.
const LANDING_SLOTS: u64 = BASE_SLOTS.div_ceil(CHECKABLE) * CHECKABLE;

/// What its memory is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advice {
    /// Huge pages.
    Huge,
    /// None.
    Base,
    /// Neither: base pages are moved there, and the kernel checks references to them.
    Checked,
}

/// A row of slots of one size.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) base: u64,
    pub(crate) slot: u64,
    pub(crate) slots: u64,
    /// Slots in 2 MiB. Where frames can be checked the last page is none: see [`crate::sys::references`].
    in_huge: u64,
    /// Slots from the first on that hold frames to be used again.
    pub(crate) kept: u64,
    /// Emptying it has failed: unwanted pages may be in it.
    unsure: bool,
    node: Option<u32>,
    advice: Advice,
}

impl Window {
    fn new(
        slot: u64,
        slots: u64,
        in_huge: u64,
        tier: &Tier,
        advice: Advice,
    ) -> Result<Window, TierError> {
        let mut window = Window {
            base: 0,
            slot,
            slots,
            in_huge,
            kept: 0,
            unsure: false,
            node: tier.node,
            advice,
        };
        window.base = memory::reserve(window.len(), HUGE).map_err(system("mmap"))?;
        window.advise()?;
        Ok(window)
    }

    fn advise(&self) -> Result<(), TierError> {
        if let Some(node) = self.node {
            memory::bind(self.base, self.len(), node).map_err(|_| TierError::NoNode { node })?;
        }
        // Without huge pages in the kernel there are none to move either.
        let advice = match self.advice {
            Advice::Huge => libc::MADV_HUGEPAGE,
            Advice::Base => libc::MADV_NOHUGEPAGE,
            Advice::Checked => return Ok(()),
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
        // SAFETY: the window is ours, and between batches nothing uses it.
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
        self.slots.div_ceil(self.in_huge) * HUGE
    }

    /// Where a slot is.
    pub(crate) fn at(&self, slot: u64) -> u64 {
        self.base + slot / self.in_huge * HUGE + slot % self.in_huge * self.slot
    }

    /// Whether nothing but this window refers to the frames of `count` slots behind those that are kept.
    pub(crate) fn are_free(&self, pagemap: &mut PageMap, count: u64) -> bool {
        let (first, end) = (self.kept, self.kept + count);
        if self.advice != Advice::Checked || self.unsure || end > self.slots {
            return false;
        }
        (first / self.in_huge..end.div_ceil(self.in_huge)).all(|huge| {
            let from = huge * self.in_huge;
            unreferenced(pagemap, self.at(from), (end - from).min(self.in_huge))
        })
    }

    /// Empties slots; the window is not registered.
    ///
    /// # Errors
    /// Pages may be left; [`Window::ready`] removes them.
    pub(crate) fn drop_frames(&mut self, first: u64, count: u64) -> Result<(), TierError> {
        if count == 0 {
            return Ok(());
        }
        let (start, last) = (self.at(first), self.at(first + count - 1));
        // SAFETY: the window's own memory; its owner says that these slots hold nothing any more.
        let emptied = unsafe { memory::empty(start, last + self.slot - start) };
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
        // SAFETY: the window belongs to the engine and is not used after its drop.
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
    pub(crate) fn new(
        tier: &Tier,
        release: Release,
        uffd: &Uffd,
    ) -> Result<TierWindows, TierError> {
        let advice = match release {
            Release::Checked => Advice::Checked,
            Release::Kernel | Release::Reuse => Advice::Base,
        };
        let huge = || Window::new(HUGE, HUGE_SLOTS, 1, tier, Advice::Huge);
        let windows = TierWindows {
            landing: [
                Window::new(PAGE, LANDING_SLOTS, CHECKABLE, tier, advice)?,
                huge()?,
            ],
            making: [
                Window::new(PAGE, BASE_SLOTS, HUGE / PAGE, tier, Advice::Base)?,
                huge()?,
            ],
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
