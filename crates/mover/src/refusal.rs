//! What software refuses to carry out: the same as a device would, for the same reason.

use dray_device::check_operands;
use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};

/// The record of an operation that is refused.
pub(crate) fn refusal(d: &Descriptor) -> Option<CompletionRecord> {
    reason(d).err().map(CompletionRecord::with_status)
}

fn reason(d: &Descriptor) -> Result<(), Status> {
    let opcode = d.opcode().map_err(|_| Status::BAD_OPCODE)?;
    match opcode {
        Opcode::Noop
        | Opcode::Memmove
        | Opcode::Fill
        | Opcode::Compare
        | Opcode::ComparePattern
        | Opcode::CreateDelta
        | Opcode::ApplyDelta
        | Opcode::Dualcast
        | Opcode::CrcGenerate
        | Opcode::CopyCrc
        | Opcode::DifCheck
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate
        | Opcode::CacheFlush => check_operands(opcode, d),
        _ => Err(Status::BAD_OPCODE),
    }
}
