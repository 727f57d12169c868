//! Memory whose bytes can be borrowed where they are.

use dray_conformance::rules::Pages;
use dray_device::{Access, DescriptorResult, Memory, Payload, execute};
use dray_spec::{Descriptor, Opcode};

/// Executes an operation by chunks and, on a copy of the memory, in place: both end alike.
pub(crate) fn execute_both_ways(
    opcode: Opcode,
    d: &Descriptor,
    memory: &mut Pages,
    payload: Payload,
) -> DescriptorResult {
    let mut in_place = InPlace {
        pages: memory.clone(),
        sources: Vec::new(),
    };
    let outcome = execute(opcode, d, memory, payload);
    let other = execute(opcode, d, &mut in_place, payload);
    assert_eq!(outcome, other, "by chunks, then in place: {d:?}");
    let difference = memory.first_difference(&in_place.pages);
    assert_eq!(difference, None, "by chunks and in place: {d:?}");
    outcome
}

struct InPlace {
    pages: Pages,
    /// Copies of the sources that are borrowed beside a destination.
    sources: Vec<Vec<u8>>,
}

impl Memory for InPlace {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.pages.accessible(addr, len, access)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.pages.read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        self.pages.write(addr, from);
    }

    fn in_place(&self, addr: u64, len: u64) -> Option<&[u8]> {
        assert_eq!(self.accessible(addr, len, Access::Read), len);
        Some(match len {
            0 => &[],
            _ => self.pages.peek(addr, len as usize),
        })
    }

    fn in_place_into<const N: usize>(
        &mut self,
        sources: [(u64, u64); N],
        (addr, len): (u64, u64),
    ) -> Option<([&[u8]; N], &mut [u8])> {
        let overlaps = |&(from, bytes): &(u64, u64)| match from <= addr {
            true => addr - from < bytes,
            false => from - addr < len,
        };
        if sources.iter().any(overlaps) {
            return None;
        }
        let borrowed = |(from, bytes)| Some(self.in_place(from, bytes)?.to_vec());
        self.sources = sources.into_iter().filter_map(borrowed).collect();
        assert_eq!(self.accessible(addr, len, Access::Write), len);
        let destination = match len {
            0 => &mut [],
            _ => self.pages.peek_mut(addr, len as usize),
        };
        Some((std::array::from_fn(|n| &self.sources[n][..]), destination))
    }
}
