//! Inter-domain copy, fill, compare and compare pattern (spec 8.3.28 to 8.3.31).

use dray_spec::{CompletionRecord, Descriptor, FaultInfo, Flags, Opcode, Status};

use super::compare::found;
use super::fill::pattern;
use super::untranslated::write_unnoticed;
use super::{CHUNK, success};
use crate::effect::Operand;
use crate::extent::accessible;
use crate::idpt::{AddressSpace, Domain, Domains};
use crate::{Access, DescriptorResult, Memory, Payload};

/// Executes an inter-domain descriptor whose entries have been looked up.
///
/// `memory` is the descriptor's own address space, which reaches the others through
/// [`alternate`](Memory::alternate). Faults are reported as by [`execute`](crate::execute), with the
/// handle of the entry; of a window in offset mode the address is not reported (spec 3.14.4).
pub(crate) fn execute_between(
    opcode: Opcode,
    d: &Descriptor,
    domains: &Domains,
    memory: &mut impl Memory,
    payload: Payload,
) -> DescriptorResult {
    between(opcode, d, domains, memory, payload, false)
}

/// The same; with `untranslated`, writes that fault are lost and not noticed (spec 3.13.1).
pub(super) fn between(
    opcode: Opcode,
    d: &Descriptor,
    domains: &Domains,
    memory: &mut impl Memory,
    payload: Payload,
    untranslated: bool,
) -> DescriptorResult {
    let operand = |address, domain: Option<Domain>, access, operand| OperandAddress {
        address: domain.map_or(address, |domain| domain.address),
        domain,
        access,
        operand,
    };
    let first = operand(d.address1, domains.first, Access::Read, Operand::First);
    let second = match opcode {
        Opcode::InterDomainCompare => (Access::Read, Operand::Second),
        _ => (Access::Write, Operand::Destination),
    };
    let second = operand(d.address2, domains.second, second.0, second.1);
    let mut run = Between {
        d,
        memory,
        moved: payload == Payload::Moved,
        untranslated,
    };
    if let Err(handle) = run.admitted(domains) {
        return refusal(Status::IDPT_HANDLE, handle);
    }
    match opcode {
        Opcode::InterDomainCopy => run.copy(first, second),
        Opcode::InterDomainFill => run.fill(second),
        Opcode::InterDomainCompare => run.compare(first, second),
        Opcode::InterDomainComparePattern => run.compare_pattern(first),
        _ => DescriptorResult::status(Status::BAD_OPCODE),
    }
}

/// A descriptor that its entry stops; the record has the handle (spec 3.14.4).
pub(crate) fn refusal(status: Status, handle: u16) -> DescriptorResult {
    let mut outcome = DescriptorResult::status(status);
    outcome.record.set_idpt_handle(handle);
    outcome
}

/// One operand, in whichever address space.
#[derive(Clone, Copy)]
struct OperandAddress {
    address: u64,
    domain: Option<Domain>,
    access: Access,
    operand: Operand,
}

impl OperandAddress {
    fn space(&self) -> Option<AddressSpace> {
        self.domain.map(|domain| domain.space)
    }
}

struct Between<'a, M> {
    d: &'a Descriptor,
    memory: &'a mut M,
    moved: bool,
    untranslated: bool,
}

impl<M: Memory> Between<'_, M> {
    /// The submitter's bit is 1 in every bitmap that is asked (spec 3.14.2).
    fn admitted(&mut self, domains: &Domains) -> Result<(), u16> {
        for domain in [domains.first, domains.second].into_iter().flatten() {
            let Some((space, address, mask)) = domain.submitter_bit else {
                continue;
            };
            let mut byte = [0];
            let there = self.within(Some(space), |memory| {
                let there = memory.accessible(address, 1, Access::Read) == 1;
                if there {
                    memory.read(address, &mut byte);
                }
                there
            });
            if there != Some(true) || byte[0] & mask == 0 {
                return Err(domain.handle);
            }
        }
        Ok(())
    }

    /// `None` if there is no such address space.
    fn within<R>(
        &mut self,
        space: Option<AddressSpace>,
        visit: impl FnOnce(&mut dyn Memory) -> R,
    ) -> Option<R> {
        match space {
            None => Some(visit(self.memory)),
            Some(space) => self.memory.alternate(space).map(visit),
        }
    }

    fn read(&mut self, from: OperandAddress, offset: u64, into: &mut [u8]) {
        self.within(from.space(), |memory| {
            memory.read(from.address + offset, into)
        });
    }

    fn write(&mut self, to: OperandAddress, offset: u64, from: &[u8]) {
        // What is behind the end of the address space faults; that of a translated operand is not written at all.
        let Some(address) = to.address.checked_add(offset) else {
            return;
        };
        let untranslated = self.untranslated;
        self.within(to.space(), |memory| match untranslated {
            false => memory.write(address, from),
            true => write_unnoticed(memory, address, from),
        });
    }

    /// Bytes that all operands have, and the first that has no more.
    fn extent<const N: usize>(
        &mut self,
        operands: [OperandAddress; N],
    ) -> (u64, Option<OperandAddress>) {
        let size = u64::from(self.d.size);
        let (mut least, mut fault) = (size, None);
        for operand in operands {
            if self.untranslated && operand.access == Access::Write {
                continue;
            }
            let bytes = self.within(operand.space(), |memory| {
                accessible(memory, operand.address, size, operand.access)
            });
            let bytes = bytes.unwrap_or(0);
            if bytes < least {
                least = bytes;
                fault = Some(operand);
            }
        }
        (least, fault)
    }

    fn end(
        &self,
        bytes: u64,
        fault: Option<OperandAddress>,
        record: CompletionRecord,
    ) -> DescriptorResult {
        let Some(operand) = fault else {
            return DescriptorResult::of(record);
        };
        let blocked = self.d.flags().contains(Flags::BLOCK_ON_FAULT);
        let status = match blocked {
            true => Status::PAGE_FAULT_INVALID_RESPONSE,
            false => Status::PAGE_FAULT,
        };
        let mut record = CompletionRecord::with_status(match operand.access {
            Access::Write => status.with_write_fault(),
            Access::Read => status,
        });
        record.bytes_completed = bytes as u32;
        let hidden = operand.domain.is_some_and(|domain| domain.hidden);
        if !hidden {
            record.fault_address = operand.address.wrapping_add(bytes);
        }
        let info = FaultInfo::from_bits(crate::effect::fault_info(operand.operand));
        record.fault_info = info.with_address_masked(hidden).into_bits();
        if let Some(domain) = operand.domain {
            record.set_idpt_handle(domain.handle);
        }
        DescriptorResult::of(record)
    }

    fn copy(&mut self, from: OperandAddress, to: OperandAddress) -> DescriptorResult {
        let (bytes, fault) = self.extent([from, to]);
        let mut buffer = [0; CHUNK];
        self.each_chunk(bytes, |run, offset, n| {
            run.read(from, offset, &mut buffer[..n]);
            run.write(to, offset, &buffer[..n]);
            None
        });
        self.end(bytes, fault, success())
    }

    fn fill(&mut self, to: OperandAddress) -> DescriptorResult {
        let (bytes, fault) = self.extent([to]);
        let mut buffer = [0; CHUNK];
        dray_ops::fill(&mut buffer, pattern(self.d));
        self.each_chunk(bytes, |run, offset, n| {
            run.write(to, offset, &buffer[..n]);
            None
        });
        self.end(bytes, fault, success())
    }

    fn compare(&mut self, a: OperandAddress, b: OperandAddress) -> DescriptorResult {
        let (bytes, fault) = self.extent([a, b]);
        let (mut left, mut right) = ([0; CHUNK], [0; CHUNK]);
        let difference = self.each_chunk(bytes, |run, offset, n| {
            run.read(a, offset, &mut left[..n]);
            run.read(b, offset, &mut right[..n]);
            dray_ops::compare(&left[..n], &right[..n])
        });
        self.compared(bytes, fault, difference)
    }

    fn compare_pattern(&mut self, from: OperandAddress) -> DescriptorResult {
        let (bytes, fault) = self.extent([from]);
        let pattern = self.d.address2.to_le_bytes();
        let mut buffer = [0; CHUNK];
        let difference = self.each_chunk(bytes, |run, offset, n| {
            run.read(from, offset, &mut buffer[..n]);
            dray_ops::compare_pattern(&buffer[..n], pattern)
        });
        self.compared(bytes, fault, difference)
    }

    fn compared(
        &self,
        bytes: u64,
        fault: Option<OperandAddress>,
        difference: Option<u64>,
    ) -> DescriptorResult {
        match difference.is_none() && fault.is_some() {
            true => self.end(bytes, fault, success()),
            false => DescriptorResult::of(found(self.d, difference)),
        }
    }

    /// Visits chunks until one has something to say; where in it, from the start.
    fn each_chunk(
        &mut self,
        bytes: u64,
        mut visit: impl FnMut(&mut Self, u64, usize) -> Option<usize>,
    ) -> Option<u64> {
        let mut offset = 0;
        while self.moved && offset < bytes {
            let n = (bytes - offset).min(CHUNK as u64);
            if let Some(at) = visit(self, offset, n as usize) {
                return Some(offset + at as u64);
            }
            offset += n;
        }
        None
    }
}
