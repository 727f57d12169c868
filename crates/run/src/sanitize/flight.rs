//! A descriptor in flight, and what it may race with.

use std::ops::Range;

use dray_device::Accesses;
use dray_spec::Descriptor;

use crate::processes::Pid;
use crate::sites::PlaceId;

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
}

/// Bytes for which it matters which of two is first. Two that do the same leave the same, whichever it is.
pub(super) fn race<K>(one: &Flight<K>, other: &Flight<K>) -> Option<Range<u64>> {
    let operands = |flight: &Flight<K>| {
        let d = &flight.descriptor;
        (d.opcode_byte(), d.address1, d.address2, d.size, d.operation)
    };
    let bytes = one.accesses.conflict(&other.accesses)?;
    let same = operands(one) == operands(other) && one.accesses.repeats();
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
