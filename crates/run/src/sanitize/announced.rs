//! Members of batches that were accepted and have not begun, and those whose end no program can know before its batch's.
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

/// The list of a batch.
#[derive(Debug)]
struct List {
    /// Those that have not begun, the last of the list first.
    waiting: Vec<(usize, Descriptor)>,
    members: usize,
    /// The record of a member behind a fence says that those before it have ended.
    is_fenced: bool,
}

/// By batch and place in its list.
#[derive(Debug)]
pub(super) struct Announced<K> {
    pub(super) members: InFlight<(K, usize)>,
    lists: BTreeMap<K, List>,
}

impl<K: Copy + Ord> Announced<K> {
    pub(super) fn new() -> Announced<K> {
        Announced {
            members: InFlight::new(),
            lists: BTreeMap::new(),
        }
    }

    /// A batch is accepted with these members.
    pub(super) fn insert(&mut self, batch: K, members: &[Flight<K>]) {
        self.end(batch);
        for (place, member) in members.iter().enumerate() {
            let key = (batch, place);
            self.members.insert(key, member.called(Some(key)));
        }
        let waiting = members.iter().enumerate().rev();
        let waiting = waiting.map(|(place, member)| (place, member.descriptor));
        let list = List {
            waiting: waiting.collect(),
            members: members.len(),
            is_fenced: members.iter().any(Flight::is_fenced),
        };
        self.lists.insert(batch, list);
    }

    /// A member begins: its place in the list. `None` if it was not announced.
    pub(super) fn begin(&mut self, batch: K, member: &Flight<K>) -> Option<usize> {
        let list = self.lists.get_mut(&batch)?;
        // Most begin in the order of the list.
        let mut waiting = list.waiting.iter();
        let index = waiting.rposition(|(_, known)| *known == member.descriptor)?;
        let (place, _) = list.waiting.remove(index);
        if list.is_fenced || member.accesses.record().is_some() {
            self.members.remove((batch, place));
        }
        Some(place)
    }

    /// A batch has ended: what has not begun will not.
    pub(super) fn end(&mut self, batch: K) {
        let members = self.lists.remove(&batch).map_or(0, |list| list.members);
        for place in 0..members {
            self.members.remove((batch, place));
        }
    }
}
