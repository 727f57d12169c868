//! Members of batches that were accepted and have not begun.
//!
//! Nothing orders batches of a queue: that one's members had ended when the other's began says nothing about another run. So the
//! list of a batch is read when it is accepted, and its members count from then on, as the batch does.

use std::collections::BTreeMap;

use dray_remote::Spaces;
use dray_spec::{Descriptor, Opcode};
use zerocopy::TryFromBytes;

use super::flight::Flight;
use super::in_flight::InFlight;

/// Members of a batch that are known; of larger ones these.
const MEMBERS: usize = 1024;
/// Bytes of a descriptor.
pub(super) const DESCRIPTOR: usize = 64;

/// The list of a batch as it is in memory; empty for what is no batch, and where not all of it is there.
pub(super) fn list<K>(flight: &Flight<K>, spaces: &Spaces) -> Vec<Descriptor> {
    let d = &flight.descriptor;
    if d.opcode() != Ok(Opcode::Batch) {
        return Vec::new();
    }
    let bytes = (d.size as usize).min(MEMBERS) * DESCRIPTOR;
    let bytes = spaces.read(flight.pasid, d.address1, bytes);
    let bytes = bytes.unwrap_or_default();
    let members = bytes.chunks_exact(DESCRIPTOR);
    let members = members.filter_map(|bytes| Descriptor::try_read_from_bytes(bytes).ok());
    members.collect()
}

/// By batch and place in its list.
#[derive(Debug)]
pub(super) struct Announced<K> {
    pub(super) members: InFlight<(K, usize)>,
    /// Places of each batch in the order of its list.
    places: BTreeMap<K, Vec<(usize, Descriptor)>>,
}

impl<K: Copy + Ord> Announced<K> {
    pub(super) fn new() -> Announced<K> {
        Announced {
            members: InFlight::new(),
            places: BTreeMap::new(),
        }
    }

    /// A batch is accepted with these members.
    pub(super) fn insert(&mut self, batch: K, members: &[Flight<K>]) {
        self.end(batch);
        let mut places = Vec::with_capacity(members.len());
        for (place, member) in members.iter().enumerate().rev() {
            let key = (batch, place);
            self.members.insert(key, member.called(Some(key)));
            places.push((place, member.descriptor));
        }
        self.places.insert(batch, places);
    }

    /// A member begins: its place in the list. `None` if it was not announced.
    pub(super) fn begin(&mut self, batch: K, member: &Descriptor) -> Option<usize> {
        let places = self.places.get_mut(&batch)?;
        // Most begin in the order of the list.
        let index = places.iter().rposition(|(_, known)| known == member)?;
        let (place, _) = places.remove(index);
        self.members.remove((batch, place));
        Some(place)
    }

    /// A batch has ended: what has not begun will not.
    pub(super) fn end(&mut self, batch: K) {
        for (place, _) in self.places.remove(&batch).unwrap_or_default() {
            self.members.remove((batch, place));
        }
    }
}
