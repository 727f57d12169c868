//! In whose name memory is accessed.

use dray_spec::{Descriptor, Flags};

/// In whose name memory is accessed, and whether page faults are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    /// The address space; 0 where PASIDs are not in use, and for what is the device's own.
    pub pasid: u32,
    /// The device asks the system to bring in pages that are not there (spec 3.13).
    pub blocks: bool,
}

impl View {
    /// Of what a descriptor names.
    #[inline]
    pub(crate) fn of(descriptor: &Descriptor, pasid: u32) -> View {
        View {
            pasid,
            blocks: descriptor.flags().contains(Flags::BLOCK_ON_FAULT),
        }
    }

    /// Of a completion record, a list of descriptors, what a drain reads back: pages are brought in
    /// whatever the flag says, if the device `requests` any (spec 8.1.3, Block On Fault).
    #[inline]
    pub(crate) fn of_its_own(pasid: u32, requests: bool) -> View {
        View {
            pasid,
            blocks: requests,
        }
    }
}
