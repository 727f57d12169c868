//! Delta records.

use dray_ops::{DeltaCreated, DeltaError, oracle};
use dray_spec::{CompletionRecord, Descriptor, Status};

use super::{Form, LEN, area, put, read, success, written};
use crate::movers::trial::at;

const SIZE: u32 = LEN as u32;
/// Bytes between words that differ: some on each page.
const STEP: usize = 256;
const WORDS: usize = LEN / STEP;
/// Room for all differences, and for some.
const ROOM: usize = 10 * WORDS;
const LITTLE_ROOM: usize = 80;

pub(super) fn forms() -> Vec<Form> {
    let sources = [read("first source", LEN), read("second source", LEN)];
    let created = [&sources[..], &[written("record", ROOM)]].concat();
    let applied = [read("record", ROOM), written("destination", LEN)];
    let apply = |a: [u64; 4]| Descriptor::apply_delta(a[0], a[1], SIZE, ROOM as u32);
    vec![
        Form::new("create_delta", "equal", &[], whole, equal, |b| {
            create(b, ROOM)
        }),
        Form::new(
            "create_delta",
            "differences",
            &created,
            whole,
            differing,
            |b| create(b, ROOM),
        ),
        Form::new(
            "create_delta",
            "overflow",
            &[],
            |a| Descriptor::create_delta(a[0], a[1], SIZE, a[2], LITTLE_ROOM as u32),
            differing,
            |b| create(b, LITTLE_ROOM),
        ),
        Form::new("apply_delta", "success", &applied, apply, record, execute),
        Form::new(
            "apply_delta",
            "offsets that do not ascend",
            &[],
            apply,
            |b| misplace(b, 2),
            execute,
        ),
        Form::new(
            "apply_delta",
            "an offset beyond the destination",
            &[],
            apply,
            |b| misplace(b, SIZE as usize / 8),
            execute,
        ),
    ]
}

fn whole(a: [u64; 4]) -> Descriptor {
    Descriptor::create_delta(a[0], a[1], SIZE, a[2], ROOM as u32)
}

fn equal(bytes: &mut [u8]) {
    let source = area(bytes, 0, LEN).to_vec();
    put(bytes, 1, &source);
}

fn differing(bytes: &mut [u8]) {
    equal(bytes);
    for word in 0..WORDS {
        bytes[at(1) + word * STEP] ^= 0xff;
    }
}

fn create(bytes: &mut [u8], room: usize) -> CompletionRecord {
    let (a, b) = (area(bytes, 0, LEN).to_vec(), area(bytes, 1, LEN).to_vec());
    let mut record = success();
    let into = &mut bytes[at(2)..at(2) + room];
    let (result, size) = match oracle::create_delta(&a, &b, into).expect("whole words") {
        DeltaCreated::Equal => (0, 0),
        DeltaCreated::Complete { record_bytes } => (1, record_bytes),
        DeltaCreated::Overflow {
            record_bytes,
            compared_bytes,
        } => {
            record.bytes_completed = compared_bytes as u32;
            (2, record_bytes)
        }
    };
    record.result = result;
    record.set_delta_record_size(size as u32);
    record
}

/// A delta record in area 0 that changes words of area 1.
fn record(bytes: &mut [u8]) {
    let entry = |word: usize| {
        let offset = (word * STEP / 8) as u16;
        [&offset.to_le_bytes()[..], &[word as u8; 8]].concat()
    };
    let record: Vec<u8> = (0..WORDS).flat_map(entry).collect();
    put(bytes, 0, &record);
}

/// The same, but entry 20 has another offset.
fn misplace(bytes: &mut [u8], offset: usize) {
    record(bytes);
    let entry = at(0) + 20 * 10;
    bytes[entry..entry + 2].copy_from_slice(&(offset as u16).to_le_bytes());
}

fn execute(bytes: &mut [u8]) -> CompletionRecord {
    let delta = area(bytes, 0, ROOM).to_vec();
    let mut record = success();
    if let Err(error) = oracle::apply_delta(&delta, &mut bytes[at(1)..at(1) + LEN]) {
        record.status = match error {
            DeltaError::OffsetOrder { .. } => Status::DELTA_OFFSET_ORDER.0,
            DeltaError::OffsetRange { .. } => Status::DELTA_OFFSET_RANGE.0,
        };
        record.bytes_completed = error.applied_bytes() as u32;
    }
    record
}
