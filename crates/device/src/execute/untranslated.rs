//! Descriptors of queues without ATS: the device learns of faults on reads alone (spec 3.13.1).

use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use super::dif::destination_bytes;
use super::domain::between;
use super::execute;
use crate::idpt::Domains;
use crate::{Access, AddressSpace, DescriptorResult, Memory, Payload};

/// Bytes of a page: what one fault takes with it.
const PAGE: u64 = 4096;

/// As [`execute`], for a descriptor whose accesses are not
/// [translated](crate::Task::translates) by the device.
///
/// A write that faults is lost, and the descriptor goes on; a read that faults ends it with 0x20,
/// whose record has neither address nor progress (spec 8.2.4, 8.2.5). A destination readback that
/// faults ends it with 0x21 (spec 3.13.1, Table 5-6).
#[cold]
pub(crate) fn execute_untranslated(
    opcode: Opcode,
    d: &Descriptor,
    domains: Option<&Domains>,
    memory: &mut impl Memory,
    payload: Payload,
) -> DescriptorResult {
    let outcome = match domains {
        None => execute(opcode, d, &mut Untranslated(&mut *memory), payload),
        Some(domains) => between(opcode, d, domains, &mut *memory, payload, true),
    };
    let record = &outcome.record;
    if matches!(record.status().code(), 0x03 | 0x04 | 0x1f) {
        return DescriptorResult::status(Status::HARDWARE_ERROR_READ);
    }
    let reads_back = d.flags().contains(Flags::DESTINATION_READBACK);
    if reads_back && record.status().is_success() && !readable(opcode, d, domains, memory, record) {
        return DescriptorResult::status(Status::HARDWARE_ERROR_WRITE);
    }
    outcome
}

/// Whether the last bytes of the destinations can be read back (spec 8.1.3.1).
fn readable(
    opcode: Opcode,
    d: &Descriptor,
    domains: Option<&Domains>,
    memory: &mut impl Memory,
    record: &CompletionRecord,
) -> bool {
    // The last byte of an operand; `None` of one without bytes. One that does not fit in the address space has no
    // last byte that is there.
    let last = |address: u64, bytes: u64| bytes.checked_sub(1).map(|n| address.checked_add(n));
    let there = |memory: &dyn Memory, address: Option<u64>| {
        address.is_some_and(|address| memory.accessible(address, 1, Access::Read) == 1)
    };
    let size = u64::from(d.size);
    if let Some(domain) = domains.and_then(|domains| domains.second) {
        let last = last(domain.address, size);
        let other = memory.alternate(domain.space);
        return other.is_some_and(|other| last.is_none_or(|address| there(other, address)));
    }
    let ends = match opcode {
        Opcode::CreateDelta => [
            last(d.delta_record(), record.delta_record_size().into()),
            None,
        ],
        Opcode::Dualcast => [last(d.address2, size), last(d.destination2(), size)],
        Opcode::DifInsert | Opcode::DifStrip | Opcode::DifUpdate | Opcode::DixGenerate => {
            [last(d.address2, destination_bytes(opcode, d)), None]
        }
        _ => [last(d.address2, size), None],
    };
    ends.into_iter()
        .flatten()
        .all(|address| there(memory, address))
}

/// Memory that says nothing of writes that fault.
struct Untranslated<'a, M>(&'a mut M);

impl<M: Memory> Memory for Untranslated<'_, M> {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        match access {
            Access::Read => self.0.accessible(addr, len, access),
            Access::Write => len,
        }
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.0.read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        write_unnoticed(self.0, addr, from);
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        self.0.alternate(space)
    }
}

/// Writes the pages that can be written. What would lie behind the end of the address space is lost, as every
/// write that faults: the specification knows no address that follows it.
pub(super) fn write_unnoticed(memory: &mut (impl Memory + ?Sized), addr: u64, from: &[u8]) {
    let mut rest = from;
    let mut address = addr;
    while !rest.is_empty() {
        let room = (PAGE - address % PAGE) as usize;
        let (page, behind) = rest.split_at(room.min(rest.len()));
        let there = memory.accessible(address, page.len() as u64, Access::Write);
        if there > 0 {
            memory.write(address, &page[..there as usize]);
        }
        let Some(next) = address.checked_add(page.len() as u64) else {
            return;
        };
        address = next;
        rest = behind;
    }
}
