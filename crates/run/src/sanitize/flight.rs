//! A descriptor in flight, and what it may race with.

use std::ops::Range;

use dray_spec::Accesses;
use dray_spec::{Descriptor, Flags};

use crate::processes::Pid;
use crate::sites::PlaceId;

/// What a descriptor does: operation, addresses, size, and the fields of the operation.
pub(super) type Operands = (u8, u64, u64, u32, [u8; 24]);

/// A descriptor in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight<K> {
    pub(super) pid: Option<Pid>,
    pub(super) device: u32,
    pub(super) wq: u16,
    pub(super) descriptor: Descriptor,
    pub(super) accesses: Accesses,
    pub(super) batch: Option<K>,
    /// Its address space; 0 where there are none.
    pub(super) pasid: u32,
    /// Where in the program it was submitted.
    pub(super) place: Option<PlaceId>,
    /// Calls that had taken memory away from programs before it was accepted.
    pub(super) calls: u64,
    /// That it was in flight at the end has been said.
    pub(super) closed: bool,
}

/// One of those that a finding is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Party {
    pub(super) descriptor: Descriptor,
    pub(super) place: Option<PlaceId>,
}

impl<K> Flight<K> {
    pub(super) fn party(&self) -> Party {
        Party {
            descriptor: self.descriptor,
            place: self.place,
        }
    }

    pub(super) fn operands(&self) -> Operands {
        let d = &self.descriptor;
        (d.opcode_byte(), d.address1, d.address2, d.size, d.operation)
    }

    /// Whether its record is written in any case, and not for an error alone.
    pub(super) fn wants_record(&self) -> bool {
        let flags = self.descriptor.flags();
        flags.contains(Flags::REQUEST_COMPLETION_RECORD)
    }

    /// Whether it waits for the members of its batch before it.
    pub(super) fn is_fenced(&self) -> bool {
        self.descriptor.flags().contains(Flags::FENCE)
    }

    /// It, where batches are called otherwise.
    pub(super) fn called<O>(&self, batch: Option<O>) -> Flight<O> {
        Flight {
            pid: self.pid,
            device: self.device,
            wq: self.wq,
            descriptor: self.descriptor,
            accesses: self.accesses,
            batch,
            pasid: self.pasid,
            place: self.place,
            calls: self.calls,
            closed: self.closed,
        }
    }
}

impl<K: Copy> Flight<K> {
    /// A member of it, which is a batch called `key`.
    pub(super) fn member(&self, key: K, descriptor: &Descriptor) -> Flight<K> {
        Flight {
            descriptor: *descriptor,
            accesses: Accesses::of(descriptor),
            batch: Some(key),
            ..*self
        }
    }
}

/// Bytes for which it matters which of two is first. Two that do the same leave the same, whichever it is.
pub(super) fn race<K, O>(one: &Flight<K>, other: &Flight<O>) -> Option<Range<u64>> {
    let bytes = one.accesses.conflict(&other.accesses)?;
    let same = one.operands() == other.operands() && one.accesses.repeats();
    (!same).then_some(bytes)
}

pub(super) fn flight<K>(
    pid: Option<Pid>,
    place: (u32, u16),
    descriptor: &Descriptor,
    batch: Option<K>,
) -> Flight<K> {
    Flight {
        pid,
        device: place.0,
        wq: place.1,
        descriptor: *descriptor,
        accesses: Accesses::of(descriptor),
        batch,
        pasid: 0,
        place: None,
        calls: 0,
        closed: false,
    }
}
