//! Carries a descriptor out on memory.

mod compare;
mod copy;
mod crc;
mod delta;
mod dif;
pub(crate) mod domain;
mod fill;
mod touch;
pub(crate) mod untranslated;

use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::extent::{Buffer, Extent, destination, source};
use crate::{DescriptorResult, Memory};

/// Bytes moved through the device at a time.
const CHUNK: usize = 4096;

/// Whether payload bytes are moved. Sweeps that only ask for time leave them where they are;
/// page faults happen all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Payload {
    /// Bytes move and results are computed.
    #[default]
    Moved,
    /// Bytes stay; comparisons report equal, checksums 0.
    Skipped,
}

/// Executes an operation on memory as a core would, with no device: of `d` only the operands and the
/// flags of the operation count. It must have passed [`check_software`](crate::check_software) or the
/// device's checks; how it ends is the outcome. Runners of a device execute [`Task`](crate::Task)s.
///
/// A page fault ends it after the bytes before the fault: status, address and bytes completed as
/// in spec 8.2 and 8.3; the partial result can be resumed from there. A descriptor that blocks on
/// faults, on memory that still cannot be accessed, ends as if the page request had been refused.
///
/// Inter-domain operations end with an error: their handles are a device's.
pub fn execute(
    opcode: Opcode,
    d: &Descriptor,
    memory: &mut impl Memory,
    payload: Payload,
) -> DescriptorResult {
    let mut run = Run {
        d,
        memory,
        moved: payload == Payload::Moved,
    };
    match opcode {
        Opcode::Noop | Opcode::Batch | Opcode::UpdateWindow => {
            DescriptorResult::status(Status::SUCCESS)
        }
        Opcode::Drain => run.read_back(),
        Opcode::Memmove => run.memmove(),
        Opcode::Fill => run.fill(),
        Opcode::Compare => run.compare(),
        Opcode::ComparePattern => run.compare_pattern(),
        Opcode::CreateDelta => run.create_delta(),
        Opcode::ApplyDelta => run.apply_delta(),
        Opcode::Dualcast => run.dualcast(),
        Opcode::TranslationFetch => run.fetch_translations(),
        Opcode::CrcGenerate => run.crc(&[source(d.address1)], None),
        Opcode::CopyCrc => {
            let dst = d.address2;
            run.crc(&[source(d.address1), destination(dst)], Some(dst))
        }
        Opcode::DifCheck
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate => run.dif(opcode),
        Opcode::CacheFlush => run.flush(),
        // Their handles have not been looked up.
        Opcode::InterDomainCopy
        | Opcode::InterDomainFill
        | Opcode::InterDomainCompare
        | Opcode::InterDomainComparePattern => DescriptorResult::status(Status::IDPT_HANDLE),
    }
}

struct Run<'a, M> {
    d: &'a Descriptor,
    memory: &'a mut M,
    moved: bool,
}

impl<M: Memory> Run<'_, M> {
    #[inline]
    fn extent(&self, buffers: &[Buffer]) -> Extent {
        Extent::of(self.memory, buffers, u64::from(self.d.size))
    }

    #[inline]
    fn end(&self, extent: &Extent, record: CompletionRecord) -> DescriptorResult {
        extent.outcome(record, self.d.flags().contains(Flags::BLOCK_ON_FAULT))
    }

    fn each_chunk(&mut self, bytes: u64, mut visit: impl FnMut(&mut M, u64, usize)) {
        let mut offset = 0;
        while offset < bytes {
            let n = (bytes - offset).min(CHUNK as u64);
            visit(self.memory, offset, n as usize);
            offset += n;
        }
    }

    /// Offset of the first difference that `visit` finds in a chunk.
    fn find_chunk(
        &mut self,
        bytes: u64,
        mut visit: impl FnMut(&mut M, u64, usize) -> Option<usize>,
    ) -> Option<u64> {
        let mut offset = 0;
        while offset < bytes {
            let n = (bytes - offset).min(CHUNK as u64);
            if let Some(at) = visit(self.memory, offset, n as usize) {
                return Some(offset + at as u64);
            }
            offset += n;
        }
        None
    }
}

#[inline]
fn success() -> CompletionRecord {
    CompletionRecord::with_status(Status::SUCCESS)
}
