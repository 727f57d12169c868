//! The portals in an address space.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use dray_device::Submission;
use dray_realtime::{MappedPortal, Origin};
use dray_spec::Descriptor;

use crate::clients::{Clients, Mapping};
use crate::serial_executor::SerialExecutor;

pub(super) const PAGE: u64 = 4096;

/// A portal that a program has mapped. With the last of it the mapping ends.
#[derive(Debug)]
pub(super) struct Portal {
    portal: MappedPortal,
    pasid: u32,
    mapping: Option<Mapping>,
    clients: Arc<Clients>,
    executor: SerialExecutor,
}

impl Portal {
    pub(super) fn new(
        portal: MappedPortal,
        pasid: u32,
        mapping: Mapping,
        clients: Arc<Clients>,
        executor: SerialExecutor,
    ) -> Portal {
        Portal {
            portal,
            pasid,
            mapping: Some(mapping),
            clients,
            executor,
        }
    }

    /// A posted write (MOVDIR64B).
    pub(super) fn post(&self, descriptor: &Descriptor, origin: &Origin) {
        // MOVDIR64B returns no status, as on hardware.
        let _ = self.portal.write_posted_from(descriptor, origin);
    }

    /// A deferrable write (ENQCMD); whether it was accepted.
    pub(super) fn enqueue(&self, mut descriptor: Descriptor, origin: &Origin) -> bool {
        // Where the processor takes it from IA32_PASID, without privilege (SDM, ENQCMD).
        descriptor.pasid_priv = self.pasid;
        self.portal.enqueue_from(&descriptor, origin) == Submission::Accepted
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        if let Some(mapping) = self.mapping.take() {
            let clients = self.clients.clone();
            self.executor
                .submit(Some(mapping.device), move || clients.unmap(mapping));
        }
    }
}

/// What is at a page.
#[derive(Debug, Clone)]
pub(super) enum Page {
    /// A portal, and whether the program may write to it.
    Portal {
        /// It.
        portal: Rc<Portal>,
        /// The program's protection; the page's is none.
        writable: bool,
    },
    /// What was a portal for the parent: the driver maps with `VM_DONTCOPY`
    /// (`drivers/dma/idxd/cdev.c`), so nothing is there.
    Parents,
}

/// Pages by their addresses.
#[derive(Debug, Default)]
pub(super) struct Space {
    pages: BTreeMap<u64, Page>,
    /// There has been a portal, here or for the parent.
    used: bool,
}

impl Space {
    /// Whether there has been a portal, so that instructions which the processor lacks are the
    /// device's.
    pub(super) fn is_used(&self) -> bool {
        self.used
    }

    /// What a child has of it.
    pub(super) fn forked(&self) -> Space {
        let pages = self.pages.keys().map(|page| (*page, Page::Parents));
        Space {
            pages: pages.collect(),
            used: self.used,
        }
    }

    /// The page of an address.
    pub(super) fn find(&self, address: u64) -> Option<&Page> {
        self.pages.get(&(address & !(PAGE - 1)))
    }

    /// Enters a page.
    pub(super) fn insert(&mut self, address: u64, page: Page) {
        self.pages.insert(address, page);
        self.used = true;
    }

    /// Removes the pages in these bytes.
    pub(super) fn forget(&mut self, address: u64, bytes: u64) {
        let gone: Vec<u64> = self
            .pages
            .range(within(address, bytes))
            .map(|p| *p.0)
            .collect();
        for page in gone {
            self.pages.remove(&page);
        }
    }

    /// Changes the protection of portals in these bytes; how many there are.
    pub(super) fn protect(&mut self, address: u64, bytes: u64, may_write: bool) -> u64 {
        let mut count = 0;
        for (_, page) in self.pages.range_mut(within(address, bytes)) {
            if let Page::Portal { writable, .. } = page {
                *writable = may_write;
                count += 1;
            }
        }
        count
    }
}

fn within(address: u64, bytes: u64) -> Range<u64> {
    // The kernel counts whole pages.
    let end = address.saturating_add(bytes.saturating_add(PAGE - 1) & !(PAGE - 1));
    address..end.max(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_until_they_are_forgotten() {
        let mut space = Space::default();
        assert!(!space.is_used());
        for page in [0x1000, 0x2000, 0x5000] {
            space.insert(page, Page::Parents);
        }
        assert!(space.find(0x2fff).is_some());
        assert!(space.find(0x3000).is_none());
        space.forget(0x2000, 1);
        assert!(space.find(0x2000).is_none());
        space.forget(0x1000, u64::MAX);
        assert!(space.find(0x1000).is_none() && space.find(0x5000).is_none());
        assert!(space.is_used());
        space.insert(0x1000, Page::Parents);
        assert_eq!(
            space.protect(0, u64::MAX, true),
            0,
            "a parent's belongs to no child"
        );
        assert!(space.forked().find(0x1000).is_some());
    }
}
