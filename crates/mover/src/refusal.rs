//! What software refuses to carry out: the same as a device would, for the same reason.

use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

/// The record of an operation that is refused (spec 5.4 to 5.6, in the device's order).
pub(crate) fn refusal(d: &Descriptor) -> Option<CompletionRecord> {
    let refuse = |status| Some(CompletionRecord::with_status(status));
    let size = u64::from(d.size);
    let overlap = |a: u64, b: u64| a.abs_diff(b) < size;
    let flags = d.flags();
    match d.opcode() {
        Ok(Opcode::Noop) => return None,
        Ok(
            Opcode::Memmove
            | Opcode::Fill
            | Opcode::Compare
            | Opcode::ComparePattern
            | Opcode::Dualcast,
        ) => {}
        Ok(Opcode::CrcGenerate | Opcode::CopyCrc) if flags.contains(Flags::CRC_64) => {
            let mut record = CompletionRecord::with_status(Status::INVALID_FLAGS);
            record.set_invalid_flags(Flags::CRC_64);
            return Some(record);
        }
        Ok(Opcode::CrcGenerate | Opcode::CopyCrc) => {}
        _ => return refuse(Status::BAD_OPCODE),
    }
    if size == 0 {
        return refuse(Status::TRANSFER_SIZE);
    }
    match d.opcode() {
        Ok(Opcode::CrcGenerate | Opcode::CopyCrc)
            if flags.contains(Flags::CRC_READ_SEED) && !d.crc_seed_address().is_multiple_of(4) =>
        {
            refuse(Status::ADDRESS_ALIGNMENT)
        }
        Ok(Opcode::CopyCrc) if overlap(d.address1, d.address2) => refuse(Status::OVERLAP),
        Ok(Opcode::Dualcast) => {
            let (src, dst, dst2) = (d.address1, d.address2, d.destination2());
            if (dst ^ dst2) & 0xfff != 0 {
                return refuse(Status::DUALCAST_ALIGNMENT);
            }
            let any = overlap(src, dst) || overlap(src, dst2) || overlap(dst, dst2);
            any.then(|| CompletionRecord::with_status(Status::OVERLAP))
        }
        _ => None,
    }
}
