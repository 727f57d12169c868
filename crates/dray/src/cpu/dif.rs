//! Data integrity fields on the calling core (spec 8.3.14 to 8.3.18).

use std::slice;

use dray_ops::{
    BlockSize, DIF_BYTES, DestinationDifFlags, DifError, DifFlags, SourceDifFlags, Tags, UpdateTags,
};
use dray_spec::{CompletionRecord, Descriptor, DifTags, Opcode, Status};

/// Bytes that an operation writes for `len` bytes of source.
fn written(opcode: Opcode, d: &Descriptor, len: u64) -> u64 {
    let block = BlockSize::from_bits(d.dif_flags());
    let (data, protected) = (block.bytes() as u64, block.protected_bytes() as u64);
    match opcode {
        Opcode::DifCheck => 0,
        Opcode::DifInsert => len / data * protected,
        Opcode::DifStrip => len / protected * data,
        Opcode::DixGenerate => len / data * DIF_BYTES as u64,
        _ => len,
    }
}

/// Carries out any of the five operations, block after block, up to a bad one.
///
/// # Safety
/// The source must be readable, the destination writable; sizes and overlaps have been checked.
pub(super) unsafe fn execute(opcode: Opcode, d: &Descriptor, record: &mut CompletionRecord) {
    // SAFETY: the source is readable and not written.
    let src = unsafe { slice::from_raw_parts(d.address1 as *const u8, d.size as usize) };
    let dst: &mut [u8] = match written(opcode, d, d.size.into()) {
        0 => &mut [],
        bytes => {
            let start = d.address2 as *mut u8;
            // SAFETY: the destination is writable and does not overlap the source.
            unsafe { slice::from_raw_parts_mut(start, bytes as usize) }
        }
    };
    let flags = DifFlags::from_bits(d.dif_flags());
    let source = SourceDifFlags::from_bits(d.source_dif_flags());
    let destination = DestinationDifFlags::from_bits(d.destination_dif_flags());
    let before = UpdateTags {
        source: tags(d.source_tags()),
        destination: tags(d.destination_tags()),
    };
    let checked = |source| UpdateTags { source, ..before };
    let made = |destination| UpdateTags {
        destination,
        ..before
    };
    let (from, to) = (before.source, before.destination);
    let result: Result<UpdateTags, DifError> = match opcode {
        Opcode::DifCheck => dray_ops::dif_check(src, flags, source, from).map(checked),
        Opcode::DifStrip => dray_ops::dif_strip(src, dst, flags, source, from).map(checked),
        Opcode::DifUpdate => dray_ops::dif_update(src, dst, flags, source, destination, before),
        Opcode::DifInsert => dray_ops::dif_insert(src, dst, flags, destination, to)
            .map(made)
            .map_err(DifError::from),
        _ => dray_ops::dix_generate(src, dst, flags, destination, to)
            .map(made)
            .map_err(DifError::from),
    };
    let after = match result {
        Ok(after) => after,
        Err(DifError::Block(bad)) => {
            record.status = Status::DIF_ERROR.0;
            record.result = bad.status;
            record.bytes_completed = bad.bytes_completed as u32;
            let good = bad.bytes_completed / flags.block_size().protected_bytes();
            UpdateTags {
                source: source.advance(from, good),
                destination: destination.advance(to, good),
            }
        }
        Err(DifError::Size(_)) => {
            // A size that passed no check.
            *record = CompletionRecord::with_status(Status::TRANSFER_SIZE);
            return;
        }
    };
    // The tags of the block to come (spec 8.3.17), of the sides that the operation has.
    if matches!(
        opcode,
        Opcode::DifCheck | Opcode::DifStrip | Opcode::DifUpdate
    ) {
        record.set_source_tags(bits(after.source));
    }
    if matches!(
        opcode,
        Opcode::DifInsert | Opcode::DifUpdate | Opcode::DixGenerate
    ) {
        record.set_destination_tags(bits(after.destination));
    }
}

fn tags(tags: DifTags) -> Tags {
    Tags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

fn bits(tags: Tags) -> DifTags {
    DifTags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}
