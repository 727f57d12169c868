//! The client's memory as the device's engines see it: without PASID through what is mapped, with a
//! PASID through the guest's tables as well.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use dray_device::{Access, AddressSpace, Memory};
use dray_realtime::{SharedMemory, View};
use dray_spec::CompletionRecord;
use zerocopy::IntoBytes;

use crate::counts::SharedCounts;
use crate::dma::{DmaTable, Failed};
use crate::inject::Faults;
use crate::pasid::{PAGE_BYTES, Page, Root, translate};

/// Of the longest completion record.
const RECORD_BYTES: u64 = 64;

/// One thread's handle.
#[derive(Debug)]
pub(crate) struct GuestMemory {
    dma: Arc<DmaTable>,
    root: Arc<Root>,
    counts: SharedCounts,
    faults: Faults,
    pasid: u32,
    /// Pages that have been translated in this view: as a device's translation cache, it forgets with
    /// the descriptor.
    pages: RefCell<HashMap<u64, Option<Page>>>,
    failed: Cell<bool>,
    /// The other side of an inter-domain operation.
    other: Option<Box<GuestMemory>>,
}

impl GuestMemory {
    pub(crate) fn new(
        dma: Arc<DmaTable>,
        root: Arc<Root>,
        counts: SharedCounts,
        faults: Faults,
    ) -> GuestMemory {
        GuestMemory {
            dma,
            root,
            counts,
            faults,
            pasid: 0,
            pages: RefCell::default(),
            failed: Cell::new(false),
            other: None,
        }
    }

    fn page(&self, addr: u64) -> Option<Page> {
        let number = addr / PAGE_BYTES;
        let mut pages = self.pages.borrow_mut();
        *pages.entry(number).or_insert_with(|| {
            if !self.root.is_known() {
                self.counts
                    .unmodelled("PASID without the guest's root table");
            }
            translate(&self.dma, &self.root, self.pasid, addr)
        })
    }

    /// Calls `access` with the guest physical address of each part, and which of the bytes it is.
    fn each(
        &self,
        addr: u64,
        len: usize,
        kind: Access,
        mut access: impl FnMut(u64, usize, usize) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        if self.pasid == 0 {
            return access(addr, 0, len);
        }
        let mut done = 0;
        while done < len {
            let at = addr.checked_add(done as u64).ok_or(Failed)?;
            let page = self
                .page(at)
                .filter(|page| page.allows(kind))
                .ok_or(Failed)?;
            let inside = at % PAGE_BYTES;
            let to = len.min(done + (PAGE_BYTES - inside) as usize);
            access(page.address + inside, done, to)?;
            done = to;
        }
        Ok(())
    }
}

impl Clone for GuestMemory {
    fn clone(&self) -> GuestMemory {
        GuestMemory::new(
            self.dma.clone(),
            self.root.clone(),
            self.counts.clone(),
            self.faults.clone(),
        )
    }
}

impl Memory for GuestMemory {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        // A completion record is no operation's result.
        if access == Access::Write && len > RECORD_BYTES && self.faults.next() {
            return 0;
        }
        if self.pasid == 0 {
            return self.dma.accessible(addr, len, access);
        }
        let end = addr.saturating_add(len);
        let mut reached = addr;
        while reached < end {
            let page = self.page(reached).filter(|page| page.allows(access));
            let Some(page) = page else {
                break;
            };
            let inside = reached % PAGE_BYTES;
            let wanted = (end - reached).min(PAGE_BYTES - inside);
            let there = self.dma.accessible(page.address + inside, wanted, access);
            reached += there;
            if there < wanted {
                break;
            }
        }
        reached - addr
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        let read = self.each(addr, into.len(), Access::Read, |at, from, to| {
            self.dma.read(at, &mut into[from..to])
        });
        if read.is_err() {
            self.failed.set(true);
        }
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        let written = self.each(addr, from.len(), Access::Write, |at, start, to| {
            self.dma.write(at, &from[start..to])
        });
        if written.is_err() {
            self.failed.set(true);
        }
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        let pasid = space.pasid.unwrap_or(0);
        if self.other.as_ref().is_none_or(|other| other.pasid != pasid) {
            let lost = self.other.take().is_some_and(|other| other.failed.get());
            self.failed.set(self.failed.get() | lost);
            let mut other = Box::new(self.clone());
            other.pasid = pasid;
            self.other = Some(other);
        }
        self.other
            .as_deref_mut()
            .map(|other| other as &mut dyn Memory)
    }
}

impl SharedMemory for GuestMemory {
    fn enter(&mut self, view: View) {
        self.pasid = view.pasid;
        self.pages.borrow_mut().clear();
        self.failed.set(false);
        self.other = None;
    }

    fn settle(&mut self) -> bool {
        // What could not be reached is looked up again.
        self.pages.borrow_mut().clear();
        let other = self.other.take().is_some_and(|other| other.failed.get());
        !(self.failed.replace(false) | other)
    }

    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool {
        let bytes = record.as_bytes();
        self.write(address + 1, &bytes[1..]);
        self.write(address, &bytes[..1]);
        self.settle()
    }
}
