//! Integrity fields and delta records: each operation on sound data and on data with a flaw, against the
//! oracle.

use dray::{Capabilities, Operation};
use dray_ops::{DIF_BYTES, DestinationDifFlags, DifFlags, SourceDifFlags, Tags, oracle};
use dray_spec::{CompletionRecord, DifTags, Opcode, Status};

use super::door::PAGE;

/// Blocks of each operation.
const BLOCKS: usize = 3;
/// Bytes of a block, and of one with its field.
const BLOCK: usize = 512;
const PROTECTED: usize = BLOCK + DIF_BYTES;
/// Pages of each operation: its source, its destination, its record.
const PAGES: u64 = 3;
/// The block with a flaw, where there is one.
const FLAW: usize = 1;

/// An operation with what it must leave behind.
pub(crate) struct Expected {
    pub(crate) operation: Operation,
    pub(crate) record: CompletionRecord,
}

fn tags(reference: u32) -> Tags {
    Tags {
        reference,
        app_mask: 0,
        app: 0x5a,
    }
}

fn bits(tags: Tags) -> DifTags {
    DifTags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

/// Bytes that all of them need.
pub(crate) const BYTES: usize = 11 * PAGES as usize * PAGE as usize;

/// The operations at `base` whose opcodes are there, with memory as it must be before each; `bytes` is
/// what the memory holds before, and afterwards, `after`.
pub(crate) fn operations(
    base: u64,
    capabilities: &Capabilities,
    bytes: &mut [u8],
) -> (Vec<Expected>, Vec<u8>) {
    let mut all = Vec::new();
    let mut after = bytes.to_vec();
    let flags = DifFlags::from_bits(0);
    let (source, made) = (
        SourceDifFlags::from_bits(0),
        DestinationDifFlags::from_bits(0),
    );
    let opcodes = [
        Opcode::DifCheck,
        Opcode::DifInsert,
        Opcode::DifStrip,
        Opcode::DifUpdate,
    ];
    let mut area = 0;
    let mut next = || {
        area += 1;
        (area - 1) * PAGES * PAGE
    };
    for opcode in opcodes {
        for flawed in [false, true] {
            // An insertion checks nothing.
            if !capabilities.has(opcode) || flawed && opcode == Opcode::DifInsert {
                continue;
            }
            let at = next();
            let (src, dst) = (at as usize, (at + PAGE) as usize);
            let data: Vec<u8> = bytes[src..src + BLOCKS * BLOCK].to_vec();
            let mut fields = vec![0; BLOCKS * PROTECTED];
            let sound = oracle::dif_insert(&data, &mut fields, flags, made, tags(7));
            sound.expect("whole blocks");
            if flawed {
                fields[FLAW * PROTECTED + 5] ^= 1;
            }
            let read = if opcode == Opcode::DifInsert {
                &data
            } else {
                &fields
            };
            for memory in [&mut *bytes, &mut after[..]] {
                memory[src..src + read.len()].copy_from_slice(read);
            }
            let (from, to, len) = (base + at, base + at + PAGE, read.len() as u32);
            let (checks, makes) = ((source, bits(tags(7))), (made, bits(tags(7))));
            let operation = match opcode {
                Opcode::DifCheck => Operation::dif_check(from, len, flags, checks),
                Opcode::DifInsert => Operation::dif_insert(from, to, len, flags, makes),
                Opcode::DifStrip => Operation::dif_strip(from, to, len, flags, checks),
                _ => Operation::dif_update(from, to, len, flags, checks, makes),
            };
            let good = if flawed { FLAW } else { BLOCKS };
            let mut record = CompletionRecord::with_status(Status::SUCCESS);
            if flawed {
                record.status = Status::DIF_ERROR.0;
                record.result = 1;
                record.bytes_completed = (good * PROTECTED) as u32;
            }
            if opcode != Opcode::DifInsert {
                record.set_source_tags(bits(tags(7 + good as u32)));
            }
            if matches!(opcode, Opcode::DifInsert | Opcode::DifUpdate) {
                record.set_destination_tags(bits(tags(7 + good as u32)));
            }
            let written = match opcode {
                Opcode::DifCheck => &[][..],
                Opcode::DifStrip => &data[..good * BLOCK],
                _ => &fields[..good * PROTECTED],
            };
            after[dst..dst + written.len()].copy_from_slice(written);
            all.push(Expected { operation, record });
        }
    }
    delta(base, capabilities, bytes, &mut after, &mut next, &mut all);
    (all, after)
}

/// A record that is made, one that is full, one that is applied, and one whose offsets do not rise.
fn delta(
    base: u64,
    capabilities: &Capabilities,
    bytes: &mut [u8],
    after: &mut [u8],
    next: &mut impl FnMut() -> u64,
    all: &mut Vec<Expected>,
) {
    const LEN: usize = 1024;
    let words = [3_usize, 40, 41];
    let record_of = |new: &[u8]| {
        let entry = |word: &usize| {
            let index = (*word as u16).to_le_bytes();
            [&index[..], &new[word * 8..word * 8 + 8]].concat()
        };
        words.iter().flat_map(entry).collect::<Vec<u8>>()
    };
    if capabilities.has(Opcode::CreateDelta) {
        for every in [false, true] {
            let at = next();
            let (old, new) = (at as usize, (at + PAGE) as usize);
            let changed: Vec<usize> = match every {
                false => words.to_vec(),
                true => (0..LEN / 8).collect(),
            };
            for memory in [&mut *bytes, &mut *after] {
                memory.copy_within(old..old + LEN, new);
                for word in &changed {
                    memory[new + word * 8] ^= 0xff;
                }
            }
            let room = 80;
            let (a, b, to) = (base + at, base + at + PAGE, base + at + 2 * PAGE);
            let operation = Operation::create_delta(a, b, LEN as u32, to, room);
            let mut record = CompletionRecord::with_status(Status::SUCCESS);
            let made = match every {
                false => record_of(&bytes[new..new + LEN]),
                true => {
                    let entry = |word: usize| {
                        let index = (word as u16).to_le_bytes();
                        let at = new + word * 8;
                        [&index[..], &bytes[at..at + 8]].concat()
                    };
                    record.bytes_completed = 64;
                    (0..8).flat_map(entry).collect()
                }
            };
            record.result = if every { 2 } else { 1 };
            record.set_delta_record_size(made.len() as u32);
            let to = (at + 2 * PAGE) as usize;
            after[to..to + made.len()].copy_from_slice(&made);
            all.push(Expected { operation, record });
        }
    }
    if capabilities.has(Opcode::ApplyDelta) {
        for disordered in [false, true] {
            let at = next();
            let (from, to) = (at as usize, (at + PAGE) as usize);
            let new: Vec<u8> = bytes[to..to + LEN].iter().map(|byte| byte ^ 0x3c).collect();
            let mut delta = record_of(&new);
            if disordered {
                // The last entry names a word before the others.
                delta[20..22].copy_from_slice(&2_u16.to_le_bytes());
            }
            for memory in [&mut *bytes, &mut *after] {
                memory[from..from + delta.len()].copy_from_slice(&delta);
            }
            let size = delta.len() as u32;
            let operation = Operation::apply_delta(base + at, base + at + PAGE, LEN as u32, size);
            let mut record = CompletionRecord::with_status(Status::SUCCESS);
            let applied = if disordered { 2 } else { 3 };
            if disordered {
                record.status = Status::DELTA_OFFSET_ORDER.0;
                record.bytes_completed = 20;
            }
            for word in &words[..applied] {
                let here = word * 8..word * 8 + 8;
                after[to + here.start..to + here.end].copy_from_slice(&new[here]);
            }
            all.push(Expected { operation, record });
        }
    }
}
