//! What software refuses to carry out: the same as a device would, for the same reason.

use dray_ops::{BlockSize, DELTA_ENTRY_BYTES, DELTA_MAX_BYTES};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::cpu::dif_written;

/// Deltas that one cache line can give, in bytes: the smallest record to create (spec 8.3.8).
const SMALLEST_DELTA_RECORD: u32 = 8 * DELTA_ENTRY_BYTES as u32;

/// The record of an operation that is refused (spec 5.4 to 5.6, in the device's order).
pub(crate) fn refusal(d: &Descriptor) -> Option<CompletionRecord> {
    reason(d).err().map(CompletionRecord::with_status)
}

fn reason(d: &Descriptor) -> Result<(), Status> {
    let size = u64::from(d.size);
    let opcode = d.opcode().map_err(|_| Status::BAD_OPCODE)?;
    match opcode {
        Opcode::Noop => return Ok(()),
        Opcode::Memmove
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
        | Opcode::CacheFlush => {}
        _ => return Err(Status::BAD_OPCODE),
    }
    refuse_if(size == 0, Status::TRANSFER_SIZE)?;
    let (src, dst) = ((d.address1, size), (d.address2, size));
    match opcode {
        Opcode::CreateDelta | Opcode::ApplyDelta => delta(opcode, d),
        Opcode::CrcGenerate => seed(d),
        Opcode::CopyCrc => {
            seed(d)?;
            refuse_overlap(src, dst)
        }
        Opcode::Dualcast => {
            let second = (d.destination2(), size);
            let differ = (dst.0 ^ second.0) & 0xfff != 0;
            refuse_if(differ, Status::DUALCAST_ALIGNMENT)?;
            refuse_overlap(src, dst)?;
            refuse_overlap(src, second)?;
            refuse_overlap(dst, second)
        }
        Opcode::DifCheck
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate => dif(opcode, d),
        _ => Ok(()),
    }
}

/// A seed in memory is aligned to its size (spec 5.4).
fn seed(d: &Descriptor) -> Result<(), Status> {
    let align = match d.flags().contains(Flags::CRC_64) {
        true => 8,
        false => 4,
    };
    let aligned = d.crc_seed_address().is_multiple_of(align);
    let read = d.flags().contains(Flags::CRC_READ_SEED);
    refuse_if(read && !aligned, Status::ADDRESS_ALIGNMENT)
}

fn delta(opcode: Opcode, d: &Descriptor) -> Result<(), Status> {
    let size = u64::from(d.size);
    refuse_if(size > DELTA_MAX_BYTES as u64, Status::TRANSFER_SIZE)?;
    let create = opcode == Opcode::CreateDelta;
    // The address of the record need not be aligned (spec Table 5-6).
    let source = if create { d.address1 } else { 0 };
    let aligned = (source | d.address2 | size).is_multiple_of(8);
    refuse_if(!aligned, Status::ADDRESS_ALIGNMENT)?;
    let (at, bytes, least) = match create {
        true => (d.delta_record(), d.max_delta_size(), SMALLEST_DELTA_RECORD),
        false => (d.address1, d.delta_record_size(), DELTA_ENTRY_BYTES as u32),
    };
    refuse_if(bytes < least, Status::DELTA_RECORD_SIZE)?;
    let record = (at, u64::from(bytes));
    if create {
        refuse_overlap((d.address1, size), record)?;
    }
    refuse_overlap((d.address2, size), record)
}

fn dif(opcode: Opcode, d: &Descriptor) -> Result<(), Status> {
    // Flag bytes that the operation does not have are reserved as a whole (spec 8.3.17.1, .3).
    let reserved = d.dif_flags() & 0xf0 != 0 || d.destination_dif_flags() & 0x07 != 0;
    refuse_if(reserved, Status::NONZERO_RESERVED)?;
    let block = BlockSize::from_bits(d.dif_flags());
    let step = match opcode {
        Opcode::DifInsert | Opcode::DixGenerate => block.bytes(),
        _ => block.protected_bytes(),
    };
    let size = u64::from(d.size);
    let whole = size.is_multiple_of(step as u64);
    refuse_if(!whole, Status::TRANSFER_SIZE)?;
    let unaligned = opcode == Opcode::DixGenerate && !d.address2.is_multiple_of(8);
    refuse_if(unaligned, Status::ADDRESS_ALIGNMENT)?;
    let place = (d.address2, dif_written(opcode, d, size));
    refuse_overlap((d.address1, size), place)
}

fn refuse_if(refuse: bool, status: Status) -> Result<(), Status> {
    match refuse {
        true => Err(status),
        false => Ok(()),
    }
}

fn refuse_overlap(a: (u64, u64), b: (u64, u64)) -> Result<(), Status> {
    let (low, high) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    let overlap = high.0 - low.0 < low.1 && high.1 > 0;
    refuse_if(overlap, Status::OVERLAP)
}
