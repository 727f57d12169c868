//! What is left of an operation after a page fault (spec 8.3.4 to 8.3.18).

use dray_ops::BlockSize;
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode};

/// The rest of a descriptor whose record reports a page fault. Nothing is left out of a delta record
/// that is made: its offsets count from where its part starts, so that is made as a whole again.
pub(crate) fn rest(d: &Descriptor, record: &CompletionRecord) -> Descriptor {
    let done = record.bytes_completed;
    let mut rest = *d;
    let opcode = d.opcode().expect("an operation");
    if done == 0 || opcode == Opcode::CreateDelta {
        return rest;
    }
    let distance = u64::from(done);
    if opcode == Opcode::ApplyDelta {
        rest.address1 += distance;
        let left = d.delta_record_size() - done;
        rest.operation[..4].copy_from_slice(&left.to_le_bytes());
        return rest;
    }
    rest.size -= done;
    match opcode {
        Opcode::Fill => {
            rest.address2 += distance;
            let long = d.flags().contains(Flags::FILL_PATTERN_16);
            let mut pattern = d.address1.to_le_bytes().to_vec();
            if long {
                pattern.extend(d.pattern_high().to_le_bytes());
            }
            let turn = done as usize % pattern.len();
            pattern.rotate_left(turn);
            rest.address1 = word(&pattern[..8]);
            rest.operation[..pattern.len() - 8].copy_from_slice(&pattern[8..]);
        }
        Opcode::ComparePattern => {
            rest.address1 += distance;
            rest.address2 = rest.address2.rotate_right(done % 8 * 8);
        }
        Opcode::CacheFlush => rest.address2 += distance,
        Opcode::Memmove | Opcode::Compare => {
            rest.address1 += distance;
            rest.address2 += distance;
        }
        Opcode::Dualcast => {
            rest.address1 += distance;
            rest.address2 += distance;
            let second = d.destination2() + distance;
            rest.operation[..8].copy_from_slice(&second.to_le_bytes());
        }
        Opcode::CrcGenerate | Opcode::CopyCrc => {
            rest.address1 += distance;
            if opcode == Opcode::CopyCrc {
                rest.address2 += distance;
            }
            rest.flags_opcode &= !Flags::CRC_READ_SEED.bits();
            rest.operation[..16].fill(0);
            rest.operation[..8].copy_from_slice(&record.operation[..8]);
            if !d.flags().contains(Flags::CRC_64) {
                rest.operation[4..8].fill(0);
            }
        }
        _ => advance_dif(&mut rest, opcode, done, record),
    }
    rest
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// The tags of the next block are in the record.
fn advance_dif(rest: &mut Descriptor, opcode: Opcode, done: u32, record: &CompletionRecord) {
    let block = BlockSize::from_bits(rest.dif_flags());
    let (data, protected) = (block.bytes() as u32, block.protected_bytes() as u32);
    let (from, to) = match opcode {
        Opcode::DifCheck => (protected, 0),
        Opcode::DifInsert => (data, protected),
        Opcode::DifStrip => (protected, data),
        Opcode::DifUpdate => (protected, protected),
        _ => (data, dray_ops::DIF_BYTES as u32),
    };
    rest.address1 += u64::from(done);
    rest.address2 += u64::from(done / from * to);
    if !matches!(opcode, Opcode::DifInsert | Opcode::DixGenerate) {
        rest.operation[8..16].copy_from_slice(&record.operation[..8]);
    }
    if !matches!(opcode, Opcode::DifCheck | Opcode::DifStrip) {
        rest.operation[16..].copy_from_slice(&record.operation[8..]);
    }
}

/// The record of the whole: that of its rest, whose offsets count from where it starts.
pub(crate) fn whole(
    d: &Descriptor,
    faulted: &CompletionRecord,
    last: CompletionRecord,
) -> CompletionRecord {
    let mut whole = last;
    let compares = matches!(d.opcode(), Ok(Opcode::Compare | Opcode::ComparePattern));
    if compares && last.result != 0 {
        whole.bytes_completed += faulted.bytes_completed;
    }
    whole
}
