//! Operations on blocks and words against the oracle of `dray_ops`, on memory with holes.
//!
//! What is there is found byte by byte and given to the oracle as a whole; the device goes chunk by
//! chunk.

use crate::common::cases;
use crate::common::in_place::execute_both_ways;
use dray_conformance::rules::{PAGE, Page, Pages};
use dray_device::{Access, Payload};
use dray_ops::{
    DeltaCreated, DestinationDifFlags, DifError, DifFlags, SourceDifFlags, Tags, UpdateTags, oracle,
};
use dray_spec::{CompletionRecord, Descriptor, DifTags, Opcode, Status};
use proptest::collection::vec;
use proptest::prelude::*;

const BASE: u64 = 0x10_0000;
const SRC: u64 = BASE;
const SRC2: u64 = BASE + 8 * PAGE;
const DST: u64 = BASE + 16 * PAGE;
const PAGES: usize = 24;

fn memory() -> impl Strategy<Value = Pages> {
    let page =
        prop_oneof![1 => Just(Page::Hole), 1 => Just(Page::ReadOnly), 12 => Just(Page::ReadWrite)];
    vec(page, PAGES).prop_map(|pages| Pages::new(BASE, pages))
}

/// Bytes that can be accessed before the first that cannot.
fn there(memory: &Pages, start: u64, size: usize, access: Access) -> usize {
    let all = start..start + size as u64;
    let missing = all.clone().position(|at| !memory.allows(at, access));
    missing.unwrap_or(size)
}

fn success() -> CompletionRecord {
    CompletionRecord::with_status(Status::SUCCESS)
}

fn fault(mut record: CompletionRecord, done: usize, at: u64, access: Access) -> CompletionRecord {
    let (status, operand) = match access {
        Access::Read => (Status::PAGE_FAULT, 1),
        Access::Write => (Status::PAGE_FAULT.with_write_fault(), 3),
    };
    record.status = status.0;
    record.bytes_completed = done as u32;
    record.fault_address = at;
    record.fault_info = operand << 1;
    record
}

fn tags(bits: u64) -> Tags {
    let DifTags {
        reference,
        app_mask,
        app,
    } = DifTags::from_bits(bits);
    Tags {
        reference,
        app_mask,
        app,
    }
}

fn bits(tags: Tags) -> DifTags {
    DifTags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

/// Which operation, on how many blocks of which size, with which flags and tags.
#[derive(Debug, Clone)]
struct Fields {
    opcode: Opcode,
    flags: u8,
    source: u8,
    destination: u8,
    tags: (u64, u64),
    blocks: usize,
    offsets: (u64, u64),
    /// A byte of the source that is changed after its fields were made.
    spoiled: Option<usize>,
}

fn fields() -> impl Strategy<Value = Fields> {
    let opcode = prop::sample::select(vec![
        Opcode::DifCheck,
        Opcode::DifInsert,
        Opcode::DifStrip,
        Opcode::DifUpdate,
        Opcode::DixGenerate,
    ]);
    let bytes = (0..16_u8, any::<u8>(), any::<u8>());
    let seeds = (any::<u64>(), any::<u64>());
    let spoiled = prop::option::weighted(0.4, 0..24_000_usize);
    (
        opcode,
        bytes,
        seeds,
        1..40_usize,
        (0..PAGE, 0..PAGE / 8),
        spoiled,
    )
        .prop_map(
            |(opcode, (flags, source, destination), tags, blocks, offsets, spoiled)| Fields {
                opcode,
                flags,
                source,
                destination: destination & 0xf8,
                tags,
                blocks,
                offsets: (offsets.0, offsets.1 * 8),
                spoiled,
            },
        )
}

fn descriptor(f: &Fields, src: u64, dst: u64, size: u32) -> Descriptor {
    let (source, destination) = (DifTags::from_bits(f.tags.0), DifTags::from_bits(f.tags.1));
    match f.opcode {
        Opcode::DifCheck => Descriptor::dif_check(src, size, f.flags, f.source, source),
        Opcode::DifInsert => {
            Descriptor::dif_insert(src, dst, size, f.flags, f.destination, destination)
        }
        Opcode::DifStrip => Descriptor::dif_strip(src, dst, size, f.flags, f.source, source),
        Opcode::DifUpdate => {
            let both = ((f.source, source), (f.destination, destination));
            Descriptor::dif_update(src, dst, size, f.flags, both.0, both.1)
        }
        _ => Descriptor::dix_generate(src, dst, size, f.flags, f.destination, destination),
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn fields_are_what_the_oracle_makes_and_finds(memory in memory(), f in fields()) {
        let flags = DifFlags::from_bits(f.flags);
        let block = flags.block_size();
        let (data, protected) = (block.bytes(), block.protected_bytes());
        let (from, to) = match f.opcode {
            Opcode::DifCheck => (protected, 0),
            Opcode::DifInsert => (data, protected),
            Opcode::DifStrip => (protected, data),
            Opcode::DifUpdate => (protected, protected),
            _ => (data, 8),
        };
        let all = f.blocks.min(6 * PAGE as usize / protected).max(1);
        let (src, dst) = (SRC + f.offsets.0, DST + f.offsets.1);
        let source = SourceDifFlags::from_bits(f.source);
        let destination = DestinationDifFlags::from_bits(f.destination);
        let mut memory = memory;
        if from == protected {
            // Fields that pass, so that errors are where they were put.
            let plain = memory.peek(SRC2, all * data).to_vec();
            let mut made = vec![0; all * protected];
            let like = DestinationDifFlags::from_bits(f.source & 0x90);
            oracle::dif_insert(&plain, &mut made, flags, like, tags(f.tags.0)).expect("whole blocks");
            if let Some(at) = f.spoiled {
                let at = at % made.len();
                made[at] ^= 0x11;
            }
            memory.poke(src, &made);
        }
        let d = descriptor(&f, src, dst, (all * from) as u32);

        let readable = there(&memory, src, all * from, Access::Read);
        let writable = there(&memory, dst, all * to, Access::Write);
        let blocks = (readable / from).min(writable.checked_div(to).unwrap_or(all));
        let mut expected = memory.clone();
        let input = memory.peek(src, blocks * from).to_vec();
        let mut output = vec![0; blocks * to];
        let mut seeds = UpdateTags { source: tags(f.tags.0), destination: tags(f.tags.1) };
        let ended = match f.opcode {
            Opcode::DifCheck => oracle::dif_check(&input, flags, source, seeds.source)
                .map(|tags| seeds.source = tags),
            Opcode::DifInsert => oracle::dif_insert(&input, &mut output, flags, destination, seeds.destination)
                .map(|tags| seeds.destination = tags)
                .map_err(DifError::from),
            Opcode::DifStrip => oracle::dif_strip(&input, &mut output, flags, source, seeds.source)
                .map(|tags| seeds.source = tags),
            Opcode::DifUpdate => oracle::dif_update(&input, &mut output, flags, source, destination, seeds)
                .map(|tags| seeds = tags),
            _ => oracle::dix_generate(&input, &mut output, flags, destination, seeds.destination)
                .map(|tags| seeds.destination = tags)
                .map_err(DifError::from),
        };
        let mut record = success();
        let mut written = output.len();
        match ended {
            Err(DifError::Block(bad)) => {
                record.status = Status::DIF_ERROR.0;
                record.result = bad.status;
                record.bytes_completed = bad.bytes_completed as u32;
                let good = bad.bytes_completed / from;
                written = good * to;
                seeds.source = source.advance(seeds.source, good);
                seeds.destination = destination.advance(seeds.destination, good);
            }
            Err(DifError::Size(size)) => panic!("{size}"),
            Ok(()) if blocks == all => {}
            Ok(()) => {
                let (at, access) = match readable / from == blocks {
                    true => (src + readable as u64, Access::Read),
                    false => (dst + writable as u64, Access::Write),
                };
                record = fault(record, blocks * from, at, access);
            }
        }
        if !matches!(f.opcode, Opcode::DifInsert | Opcode::DixGenerate) {
            record.set_source_tags(bits(seeds.source));
        }
        if !matches!(f.opcode, Opcode::DifCheck | Opcode::DifStrip) {
            record.set_destination_tags(bits(seeds.destination));
        }
        expected.poke(dst, &output[..written]);

        let outcome = execute_both_ways(f.opcode, &d, &mut memory, Payload::Moved);
        prop_assert_eq!(outcome.record, record);
        prop_assert_eq!(memory.first_difference(&expected), None);
    }

    #[test]
    fn deltas_are_what_the_oracle_finds(
        memory in memory(),
        size in 1..3000_u32,
        max in 80..12_000_u32,
        words in vec(0..3000_u64, 0..60),
        offset in 0..PAGE,
    ) {
        let mut memory = memory;
        let size = size as usize * 8;
        let same = memory.peek(SRC, size).to_vec();
        memory.poke(SRC2, &same);
        for word in words {
            memory.poke(SRC2 + word * 8, &[word as u8, !word as u8]);
        }
        let to = DST + offset;
        let d = Descriptor::create_delta(SRC, SRC2, size as u32, to, max);
        let (first, second) = (
            there(&memory, SRC, size, Access::Read),
            there(&memory, SRC2, size, Access::Read),
        );
        let compared = first.min(second);
        let max = max as usize / 10 * 10;
        let writable = there(&memory, to, max, Access::Write);
        let mut entries = vec![0; writable / 10 * 10];
        let (a, b) = (memory.peek(SRC, compared), memory.peek(SRC2, compared));
        let created = oracle::create_delta(a, b, &mut entries).expect("sizes that fit");
        let mut record = success();
        record.result = created.result();
        record.set_delta_record_size(created.record_bytes() as u32);
        let partial = u8::from(created.record_bytes() > 0);
        match created {
            DeltaCreated::Overflow { compared_bytes, .. } if writable < max => {
                record.result = partial;
                let at = to + writable as u64;
                record = fault(record, compared_bytes, at, Access::Write);
            }
            DeltaCreated::Overflow { compared_bytes, .. } => {
                record.bytes_completed = compared_bytes as u32;
            }
            _ if compared < size => {
                record.result = partial;
                let (from, operand) = if first <= second { (SRC, 1) } else { (SRC2, 2) };
                record = fault(record, compared, from + compared as u64, Access::Read);
                record.fault_info = operand << 1;
            }
            _ => {}
        }
        let mut expected = memory.clone();
        expected.poke(to, &entries[..created.record_bytes()]);

        let outcome = execute_both_ways(Opcode::CreateDelta, &d, &mut memory, Payload::Moved);
        prop_assert_eq!(outcome.record, record);
        prop_assert_eq!(memory.first_difference(&expected), None);
    }
}
