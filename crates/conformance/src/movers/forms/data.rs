//! Copies, fills, comparisons, checksums, flushes.

use dray_ops::{CrcOptions, Pattern, oracle};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use super::{Form, LEN, area, put, read, success, written};
use crate::movers::trial::at;

const SIZE: u32 = LEN as u32;
const PATTERN: u64 = 0x0123_4567_89ab_cdef;
const LONG: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;
const SEED: u32 = 0xdead_beef;
const SEED_64: u64 = 0x0bad_cafe_dead_beef;
/// The byte that differs, where one does.
const FLAW: usize = 8195;
const BYPASS: Flags = Flags::CRC_BYPASS_INVERSION.union(Flags::CRC_BYPASS_DATA_REFLECTION);

pub(super) fn forms() -> Vec<Form> {
    [plain(), comparisons(), checksums()].concat()
}

fn copy(bytes: &mut [u8], to: usize) -> CompletionRecord {
    let source = area(bytes, 0, LEN).to_vec();
    put(bytes, to, &source);
    success()
}

fn plain() -> Vec<Form> {
    let (from, to) = (read("source", LEN), written("destination", LEN));
    let nothing = |_: &mut [u8]| {};
    vec![
        Form::new(
            "noop",
            "success",
            &[],
            |_| Descriptor::noop(),
            nothing,
            |_| success(),
        ),
        Form::new(
            "drain",
            "success",
            &[],
            |_| Descriptor::drain(),
            nothing,
            |_| success(),
        ),
        Form::new(
            "memmove",
            "success",
            &[from, to],
            |a| Descriptor::memmove(a[0], a[1], SIZE),
            nothing,
            |b| copy(b, 1),
        ),
        Form::new(
            "memmove",
            "overlapping, to a higher address",
            &[],
            |a| Descriptor::memmove(a[0], a[0] + 100, SIZE),
            nothing,
            |b| {
                b.copy_within(at(0)..at(0) + LEN, at(0) + 100);
                success()
            },
        ),
        Form::new(
            "memmove",
            "overlapping, to a lower address",
            &[],
            |a| Descriptor::memmove(a[0] + 100, a[0], SIZE),
            nothing,
            |b| {
                b.copy_within(at(0) + 100..at(0) + 100 + LEN, at(0));
                success()
            },
        ),
        Form::new(
            "fill",
            "8-byte pattern",
            &[written("destination", LEN)],
            |a| Descriptor::fill(PATTERN, a[0], SIZE),
            nothing,
            |b| {
                oracle::fill(
                    &mut b[at(0)..at(0) + LEN],
                    Pattern::Eight(PATTERN.to_le_bytes()),
                );
                success()
            },
        ),
        Form::new(
            "fill",
            "16-byte pattern",
            &[written("destination", LEN)],
            |a| Descriptor::fill_16(LONG, a[0], SIZE),
            nothing,
            |b| {
                oracle::fill(
                    &mut b[at(0)..at(0) + LEN],
                    Pattern::Sixteen(LONG.to_le_bytes()),
                );
                success()
            },
        ),
        Form::new(
            "dualcast",
            "success",
            &[
                from,
                written("first destination", LEN),
                written("second destination", LEN),
            ],
            |a| Descriptor::dualcast(a[0], a[1], a[2], SIZE),
            nothing,
            |b| {
                copy(b, 1);
                copy(b, 2)
            },
        ),
        Form::new(
            "cache_flush",
            "success",
            &[],
            |a| Descriptor::cache_flush(a[0], SIZE),
            nothing,
            |_| success(),
        ),
        Form::new(
            "translation_fetch",
            "success",
            &[],
            |a| Descriptor::translation_fetch(a[0], SIZE),
            nothing,
            |_| success(),
        ),
    ]
}

/// The second source is the first.
fn equal(bytes: &mut [u8]) {
    let source = area(bytes, 0, LEN).to_vec();
    put(bytes, 1, &source);
}

fn flawed(bytes: &mut [u8]) {
    equal(bytes);
    bytes[at(1) + FLAW] ^= 0x10;
}

/// The source is the pattern.
fn patterned(bytes: &mut [u8]) {
    oracle::fill(
        &mut bytes[at(0)..at(0) + LEN],
        Pattern::Eight(PATTERN.to_le_bytes()),
    );
}

fn patterned_with_a_flaw(bytes: &mut [u8]) {
    patterned(bytes);
    bytes[at(0) + FLAW] ^= 0x10;
}

fn differs() -> CompletionRecord {
    let mut record = success();
    record.result = 1;
    record.bytes_completed = FLAW as u32;
    record
}

fn unexpected(mut record: CompletionRecord) -> CompletionRecord {
    record.status = Status::SUCCESS_PREDICATE.0;
    record
}

fn expecting(descriptor: Descriptor, result: u8) -> Descriptor {
    descriptor
        .with_expected_result(result)
        .with_flags(Flags::CHECK_RESULT)
}

fn comparisons() -> Vec<Form> {
    let both = [read("first source", LEN), read("second source", LEN)];
    let one = [read("source", LEN)];
    let compare = |a: [u64; 4]| Descriptor::compare(a[0], a[1], SIZE);
    let pattern = |a: [u64; 4]| Descriptor::compare_pattern(a[0], PATTERN, SIZE);
    vec![
        Form::new("compare", "equal", &both, compare, equal, |_| success()),
        Form::new("compare", "a difference", &[], compare, flawed, |_| {
            differs()
        }),
        Form::new(
            "compare",
            "equal, as expected",
            &[],
            |a| expecting(Descriptor::compare(a[0], a[1], SIZE), 0),
            equal,
            |_| success(),
        ),
        Form::new(
            "compare",
            "a difference, as expected",
            &[],
            |a| expecting(Descriptor::compare(a[0], a[1], SIZE), 1),
            flawed,
            |_| differs(),
        ),
        Form::new(
            "compare",
            "equal, not as expected",
            &[],
            |a| expecting(Descriptor::compare(a[0], a[1], SIZE), 1),
            equal,
            |_| unexpected(success()),
        ),
        Form::new(
            "compare",
            "a difference, not as expected",
            &[],
            |a| expecting(Descriptor::compare(a[0], a[1], SIZE), 0),
            flawed,
            |_| unexpected(differs()),
        ),
        Form::new("compare_pattern", "equal", &one, pattern, patterned, |_| {
            success()
        }),
        Form::new(
            "compare_pattern",
            "a difference",
            &[],
            pattern,
            patterned_with_a_flaw,
            |_| differs(),
        ),
        Form::new(
            "compare_pattern",
            "equal, not as expected",
            &[],
            |a| expecting(Descriptor::compare_pattern(a[0], PATTERN, SIZE), 1),
            patterned,
            |_| unexpected(success()),
        ),
        Form::new(
            "compare_pattern",
            "a difference, not as expected",
            &[],
            |a| expecting(Descriptor::compare_pattern(a[0], PATTERN, SIZE), 0),
            patterned_with_a_flaw,
            |_| unexpected(differs()),
        ),
    ]
}

fn crc32(seed: u32, bytes: &[u8], options: CrcOptions) -> CompletionRecord {
    let mut record = success();
    record.set_crc32(oracle::crc32c(seed, area(bytes, 0, LEN), options));
    record
}

fn crc64(bytes: &[u8]) -> CompletionRecord {
    let mut record = success();
    record.set_crc64(oracle::crc64(
        SEED_64,
        area(bytes, 0, LEN),
        CrcOptions::default(),
    ));
    record
}

const BYPASSED: CrcOptions = CrcOptions {
    bypass_inversion_reflection: true,
    bypass_data_reflection: true,
};

fn checksums() -> Vec<Form> {
    let (from, to, seed) = (
        read("source", LEN),
        written("destination", LEN),
        read("seed", 4),
    );
    let nothing = |_: &mut [u8]| {};
    // The seed is in the area behind source and destination.
    let seeded = |bytes: &mut [u8]| put(bytes, 2, &SEED.to_le_bytes());
    let unused = read("nothing", 0);
    vec![
        Form::new(
            "crc",
            "CRC32C",
            &[from],
            |a| Descriptor::crc(a[0], SIZE, SEED),
            nothing,
            |b| crc32(SEED, b, CrcOptions::default()),
        ),
        Form::new(
            "crc",
            "CRC32C, without reflection and inversion",
            &[],
            |a| Descriptor::crc(a[0], SIZE, SEED).with_flags(BYPASS),
            nothing,
            |b| crc32(SEED, b, BYPASSED),
        ),
        Form::new(
            "crc",
            "CRC32C, seed in memory",
            &[from, unused, seed],
            |a| Descriptor::crc(a[0], SIZE, 0).with_crc_seed_address(a[2]),
            seeded,
            |b| crc32(SEED, b, CrcOptions::default()),
        ),
        Form::new(
            "crc",
            "CRC-64",
            &[from],
            |a| Descriptor::crc64(a[0], SIZE, SEED_64),
            nothing,
            |b| crc64(b),
        ),
        Form::new(
            "copy_crc",
            "CRC32C",
            &[from, to],
            |a| Descriptor::copy_crc(a[0], a[1], SIZE, SEED),
            nothing,
            |b| {
                copy(b, 1);
                crc32(SEED, b, CrcOptions::default())
            },
        ),
        Form::new(
            "copy_crc",
            "CRC32C, without reflection and inversion",
            &[],
            |a| Descriptor::copy_crc(a[0], a[1], SIZE, SEED).with_flags(BYPASS),
            nothing,
            |b| {
                copy(b, 1);
                crc32(SEED, b, BYPASSED)
            },
        ),
        Form::new(
            "copy_crc",
            "CRC32C, seed in memory",
            &[from, to, seed],
            |a| Descriptor::copy_crc(a[0], a[1], SIZE, 0).with_crc_seed_address(a[2]),
            seeded,
            |b| {
                copy(b, 1);
                crc32(SEED, b, CrcOptions::default())
            },
        ),
        Form::new(
            "copy_crc",
            "CRC-64",
            &[from, to],
            |a| Descriptor::copy_crc64(a[0], a[1], SIZE, SEED_64),
            nothing,
            |b| {
                copy(b, 1);
                crc64(b)
            },
        ),
    ]
}
