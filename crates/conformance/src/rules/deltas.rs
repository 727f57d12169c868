//! Status 0x07, 0x08, and what create and apply delta record do (spec 8.3.8, 8.3.9).

use dray_spec::{CompletionRecord, Descriptor, Status};

use super::case::{Case, Reported};
use super::layout::{DELTA, DELTA_WORD, DST, DST2, HOLE, READ_ONLY, RECORD, SRC};
use super::rule::Rule;

pub(super) fn rules() -> Vec<Rule> {
    [
        created(),
        masks(),
        create_faults(),
        applied(),
        apply_faults(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What create delta reports.
fn created_record(status: Status, result: u8, record: u32, bytes: u32) -> CompletionRecord {
    let mut reported = CompletionRecord::with_status(status);
    reported.result = result;
    reported.bytes_completed = bytes;
    reported.set_delta_record_size(record);
    reported
}

/// Word `n` of the second source.
fn word(n: u16) -> [u8; 8] {
    [(n % 251) as u8 + 1, 2, 3, 4, 5, 6, 7, 8]
}

/// Entries for these words, as a record has them.
fn entries(words: &[u16]) -> Vec<u8> {
    let entry = |n: &u16| [n.to_le_bytes().as_slice(), &word(*n)].concat();
    words.iter().flat_map(entry).collect()
}

/// Two sources of zeros that differ in these words.
fn differing(case: Case, a: u64, b: u64, size: usize, words: &[u16]) -> Case {
    let zeros = vec![0; size];
    let case = case.with_bytes(a, &zeros).with_bytes(b, &zeros);
    words.iter().fold(case, |case, n| {
        case.with_bytes(b + 8 * u64::from(*n), &word(*n))
    })
}

fn create(size: u32, max: u32) -> Descriptor {
    Descriptor::create_delta(SRC, DST, size, DST2, max).with_completion(RECORD)
}

fn created() -> Vec<Rule> {
    let case = |words: &[u16], max, result, record: &[u16], bytes| {
        let size = 10 * record.len() as u32;
        let reported = Reported::Record(created_record(Status::SUCCESS, result, size, bytes));
        let case = Case::new(create(8192, max), reported).writing(DST2, &entries(record));
        differing(case, SRC, DST, 8192, words)
    };
    let nine = [0, 1, 2, 3, 500, 511, 512, 513, 1023];
    vec![
        Rule::new("8.3.8", "a delta record lists what differs")
            .kept_by(case(&[], 80, 0, &[], 0))
            .kept_by(case(&[1023], 80, 1, &[1023], 0))
            .kept_by(case(&nine[..8], 80, 1, &nine[..8], 0))
            .kept_by(case(&nine, 90, 1, &nine, 0))
            .broken_by(case(&nine, 80, 2, &nine[..8], 8 * 1023)),
        Rule::new("8.3.8", "a full delta record ends with a whole entry")
            .broken_by(case(&nine, 89, 2, &nine[..8], 8 * 1023))
            .kept_by(case(&nine, 99, 1, &nine, 0)),
    ]
}

/// Results 0, 1 and 2 with every mask; bits 7:3 do not count.
fn masks() -> Vec<Rule> {
    let mut rule = Rule::new("8.3.8", "create delta: predicate");
    let nine: Vec<u16> = (0..9).collect();
    for (result, words) in [(0, &nine[..0]), (1, &nine[..8]), (2, &nine)] {
        let written = &words[..words.len().min(8)];
        let (size, bytes) = (10 * written.len() as u32, if result == 2 { 64 } else { 0 });
        for mask in (0..8_u8).chain(0xf8..=0xff) {
            let status = match mask >> result & 1 {
                1 => Status::SUCCESS,
                _ => Status::SUCCESS_PREDICATE,
            };
            let reported = Reported::Record(created_record(status, result, size, bytes));
            let descriptor = create(128, 80).with_expected_result_mask(mask);
            let case = Case::new(descriptor, reported).writing(DST2, &entries(written));
            let case = differing(case, SRC, DST, 128, words);
            rule = match status {
                Status::SUCCESS => rule.kept_by(case),
                _ => rule.broken_by(case),
            };
        }
    }
    vec![rule]
}

fn fault(mut record: CompletionRecord, address: u64, write: bool) -> Reported {
    let status = Status::PAGE_FAULT;
    record.status = if write {
        status.with_write_fault().0
    } else {
        status.0
    };
    record.fault_address = address;
    Reported::Record(record)
}

fn create_faults() -> Vec<Rule> {
    let partial = |result, record, bytes| created_record(Status::PAGE_FAULT, result, record, bytes);
    let source = |a, b| Descriptor::create_delta(a, b, 64, DST2, 80).with_completion(RECORD);
    let near = HOLE - 32;
    let first = |words: &[u16], result, record: &[u16]| {
        let reported = fault(partial(result, 10 * record.len() as u32, 32), HOLE, false);
        let case = Case::new(source(near, DST), reported).writing(DST2, &entries(record));
        differing(case, near, DST, 32, words)
    };
    let second = fault(partial(0, 0, 32), HOLE, false);
    let second = differing(Case::new(source(SRC, near), second), SRC, near, 32, &[]);
    // Room for two entries up to the hole.
    let at = HOLE - 25;
    let record = |words: &[u16], reported| {
        let descriptor = Descriptor::create_delta(SRC, DST, 64, at, 80).with_completion(RECORD);
        differing(Case::new(descriptor, reported), SRC, DST, 64, words)
    };
    let two = Reported::Record(created_record(Status::SUCCESS, 1, 20, 0));
    let third = fault(partial(1, 20, 40), HOLE, true);
    let read_only = Descriptor::create_delta(SRC, DST, 64, READ_ONLY, 80).with_completion(RECORD);
    let none = fault(partial(0, 0, 8), READ_ONLY, true);
    vec![
        Rule::new("8.3.8", "create delta: a source ends")
            .broken_by(first(&[], 0, &[]))
            .broken_by(first(&[1, 3], 1, &[1, 3]))
            .broken_by(second)
            .allows(source(SRC, DST)),
        Rule::new(
            "8.3.8",
            "create delta: the record has no more room in memory",
        )
        .broken_by(record(&[1, 4, 5], third).writing(at, &entries(&[1, 4])))
        .broken_by(differing(Case::new(read_only, none), SRC, DST, 64, &[1]))
        .kept_by(record(&[1, 5], two).writing(at, &entries(&[1, 5])))
        .kept_by(record(
            &[],
            Reported::Record(created_record(Status::SUCCESS, 0, 0, 0)),
        )),
    ]
}

fn apply(record: u64, dst: u64, size: u32, bytes: u32) -> Descriptor {
    Descriptor::apply_delta(record, dst, size, bytes).with_completion(RECORD)
}

fn ended(status: Status, bytes: u32) -> CompletionRecord {
    let mut record = CompletionRecord::with_status(status);
    record.bytes_completed = bytes;
    record
}

fn applied() -> Vec<Rule> {
    let case = |words: &[u16], size, status, good: &[u16]| {
        let bytes = match status {
            Status::SUCCESS => 0,
            _ => 10 * good.len() as u32,
        };
        let descriptor = apply(SRC, DST, size, 10 * words.len() as u32);
        let case = Case::new(descriptor, Reported::Record(ended(status, bytes)));
        let case = case.with_bytes(SRC, &entries(words)).writing(DST, &[]);
        good.iter().fold(case, |case, n| {
            case.writing(DST + 8 * u64::from(*n), &word(*n))
        })
    };
    let (order, range) = (Status::DELTA_OFFSET_ORDER, Status::DELTA_OFFSET_RANGE);
    let given = Case::new(
        apply(DELTA, DST, 16, 19),
        Reported::Record(ended(Status::SUCCESS, 0)),
    );
    vec![
        Rule::new("8.3.9", "offsets in a delta record ascend")
            .broken_by(case(&[2, 1], 64, order, &[2]))
            .broken_by(case(&[0, 3, 2, 4], 64, order, &[0, 3]))
            // Two that are equal are taken. An error are offsets that are "not in ascending order" (8.3.9), or "not in
            // increasing order", as Intel's Data Mover Library describes code 0x07: neither says "strictly", and
            // Create Delta Record, which writes each offset once, decides nothing. What decides is the
            // library's functional tests, which its authors run on the device: apply_delta_page_fault.read/1
            // (0ebc390) drops the first page of a record, so that it reads as zeros, and expects of the device, blocking on
            // the fault, the success that its software has, which looks at no order at all. No run on a device
            // that says otherwise has been published.
            .kept_by(case(&[0, 3, 3, 4], 64, Status::SUCCESS, &[0, 3, 4]))
            .kept_by(case(&[0, 3, 4], 64, Status::SUCCESS, &[0, 3, 4])),
        Rule::new("8.3.9", "offsets in a delta record are below the size")
            .broken_by(case(&[8], 64, range, &[]))
            .broken_by(case(&[7, 8], 64, range, &[7]))
            .broken_by(case(&[0, 0xffff], 64, range, &[0]))
            .kept_by(case(&[0, 7], 64, Status::SUCCESS, &[0, 7])),
        Rule::new("8.3.9", "a part of an entry is not applied")
            .broken_by(given.clone().writing(DST + 8, &DELTA_WORD))
            .kept_by(given.writing(DST + 8, &DELTA_WORD)),
    ]
}

fn apply_faults() -> Vec<Rule> {
    let near = HOLE - 24;
    let reported = |bytes, address, write| fault(ended(Status::PAGE_FAULT, bytes), address, write);
    let record = Case::new(apply(near, DST, 64, 30), reported(20, HOLE, false))
        .with_bytes(near, &entries(&[0, 7]))
        .writing(DST, &word(0))
        .writing(DST + 56, &word(7));
    let legal = Case::new(
        apply(near, DST, 64, 20),
        Reported::Record(ended(Status::SUCCESS, 0)),
    )
    .with_bytes(near, &entries(&[0, 7]));
    let destination = |words: &[u16], reported| {
        let descriptor = apply(SRC, HOLE - 32, 64, 10 * words.len() as u32);
        Case::new(descriptor, reported).with_bytes(SRC, &entries(words))
    };
    vec![
        Rule::new("8.3.9", "apply delta: the record ends")
            .broken_by(record)
            .kept_by(legal),
        Rule::new("8.3.9", "apply delta: the destination ends")
            .broken_by(
                destination(&[0, 3, 4], reported(20, HOLE, true))
                    .writing(HOLE - 32, &word(0))
                    .writing(HOLE - 8, &word(3)),
            )
            .kept_by(
                destination(&[0, 3], Reported::Record(ended(Status::SUCCESS, 0)))
                    .writing(HOLE - 32, &word(0))
                    .writing(HOLE - 8, &word(3)),
            ),
    ]
}
