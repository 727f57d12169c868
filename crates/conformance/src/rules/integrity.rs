//! Status 0x09, and what operations with data integrity fields do (spec 8.3.14 to 8.3.18).

use dray_spec::{CompletionRecord, Descriptor, DifTags, Opcode, Status};

use super::case::{Case, Reported};
use super::layout::{DST, HOLE, RECORD, SRC};
use super::rule::Rule;

/// CRC-16/T10-DIF of 512 bytes of 0xFF.
const GUARD: u16 = 0xe6a1;
const TAGS: DifTags = DifTags {
    reference: 0x0102_0304,
    app_mask: 0x000f,
    app: 0x5670,
};
/// Flag bits of a source (spec 8.3.17.2).
const REFERENCE_FIXED: u8 = 1 << 7;
const NO_REFERENCE: u8 = 1 << 6;
const NO_GUARD: u8 = 1 << 5;
const APP_COUNTS: u8 = 1 << 4;
const F_APP_AND_REFERENCE: u8 = 1 << 3;
const F_APP: u8 = 1 << 2;
const F_ALL: u8 = 1 << 1;
const F_ALL_ERROR: u8 = 1;
/// Flag bits of a destination (spec 8.3.17.3).
const PASS_REFERENCE: u8 = 1 << 6;
const PASS_GUARD: u8 = 1 << 5;
const PASS_APP: u8 = 1 << 3;

pub(super) fn rules() -> Vec<Rule> {
    [
        mismatches(),
        f_detection(),
        tags(),
        made(),
        passed(),
        faults(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn field(guard: u16, app: u16, reference: u32) -> Vec<u8> {
    [
        guard.to_be_bytes().as_slice(),
        &app.to_be_bytes(),
        &reference.to_be_bytes(),
    ]
    .concat()
}

/// A block of 512 bytes of 0xFF with a field.
fn block(guard: u16, app: u16, reference: u32) -> Vec<u8> {
    let mut block = vec![0xff; 512];
    block.extend(field(guard, app, reference));
    block
}

/// The block that is expected `n` blocks behind the first.
fn good(n: u32) -> Vec<u8> {
    block(GUARD, TAGS.app, TAGS.reference + n)
}

/// The tags `n` blocks later, with the default types: the reference counts.
fn later(n: u32) -> DifTags {
    DifTags {
        reference: TAGS.reference + n,
        ..TAGS
    }
}

/// Check, strip or update of blocks at SRC.
fn checking(opcode: Opcode, blocks: u32, source: u8, destination: u8) -> Descriptor {
    let size = 520 * blocks;
    let descriptor = match opcode {
        Opcode::DifCheck => Descriptor::dif_check(SRC, size, 0, source, TAGS),
        Opcode::DifStrip => Descriptor::dif_strip(SRC, DST, size, 0, source, TAGS),
        _ => Descriptor::dif_update(SRC, DST, size, 0, (source, TAGS), (destination, TAGS)),
    };
    descriptor.with_completion(RECORD)
}

const CHECKING: [Opcode; 3] = [Opcode::DifCheck, Opcode::DifStrip, Opcode::DifUpdate];

/// How such a descriptor ends `done` blocks on.
fn ended(opcode: Opcode, status: Status, dif: u8, done: u32) -> CompletionRecord {
    let mut record = CompletionRecord::with_status(status);
    record.result = dif;
    record.bytes_completed = match status {
        Status::SUCCESS => 0,
        _ => 520 * done,
    };
    record.set_source_tags(later(done));
    if opcode == Opcode::DifUpdate {
        record.set_destination_tags(later(done));
    }
    record
}

/// Blocks at SRC, the first of which are good, and what the operation writes of these.
fn case(opcode: Opcode, blocks: &[Vec<u8>], source: u8, dif: u8, done: u32) -> Case {
    let descriptor = checking(opcode, blocks.len() as u32, source, 0);
    let status = if dif == 0 {
        Status::SUCCESS
    } else {
        Status::DIF_ERROR
    };
    let reported = Reported::Record(ended(opcode, status, dif, done));
    let case = Case::new(descriptor, reported).with_bytes(SRC, &blocks.concat());
    let case = case.writing(DST, &[]);
    (0..done).fold(case, |case, n| match opcode {
        Opcode::DifStrip => case.writing(DST + 512 * u64::from(n), &[0xff; 512]),
        Opcode::DifUpdate => case.writing(DST + 520 * u64::from(n), &good(n)),
        _ => case,
    })
}

/// Each part of a field, alone and together; the first and the second block.
fn mismatches() -> Vec<Rule> {
    let mut rules = Vec::new();
    for opcode in CHECKING {
        let mut rule = Rule::new("8.3.17.4", format!("{opcode}: fields match"));
        for wrong in 1..8_u8 {
            let differ = |bit: u8, value: u32| if wrong >> bit & 1 == 1 { !value } else { value };
            let bad = |n| {
                block(
                    differ(0, GUARD.into()) as u16,
                    differ(1, TAGS.app.into()) as u16,
                    differ(2, TAGS.reference + n),
                )
            };
            let unchecked = match wrong {
                1 => NO_GUARD,
                4 => NO_REFERENCE,
                5 => NO_GUARD | NO_REFERENCE,
                _ => 0,
            };
            rule = rule
                .broken_by(case(opcode, &[bad(0), good(1)], 0, wrong, 0))
                .broken_by(case(opcode, &[good(0), bad(1)], 0, wrong, 1));
            if unchecked != 0 && opcode != Opcode::DifUpdate {
                rule = rule.kept_by(case(opcode, &[bad(0), bad(1)], unchecked, 0, 2));
            }
        }
        // Bits of the tag under the mask are 0, and the stored ones are compared as they are.
        let masked = block(GUARD, TAGS.app | 1, TAGS.reference);
        rule = rule
            .broken_by(case(opcode, &[masked], 0, 2, 0))
            .kept_by(case(opcode, &[good(0), good(1)], 0, 0, 2));
        rules.push(rule);
    }
    rules
}

/// Fields of nothing but 1 bits.
fn f_detection() -> Vec<Rule> {
    let (check, all) = (Opcode::DifCheck, u16::MAX);
    let fs = || block(all, all, u32::MAX);
    let app = || block(0, all, 0);
    let both = || block(0, all, u32::MAX);
    vec![
        Rule::new(
            "8.3.17.2",
            "a field of 1 bits is an error where that is asked for",
        )
        .broken_by(case(check, &[fs()], F_ALL | F_ALL_ERROR, 8, 0))
        .broken_by(case(
            check,
            &[good(0), fs()],
            F_ALL | F_ALL_ERROR | F_APP,
            8,
            1,
        ))
        .kept_by(case(check, &[fs()], F_ALL, 0, 1))
        .kept_by(case(check, &[both(), fs()], F_ALL_ERROR | F_APP, 0, 2)),
        Rule::new("8.3.17.2", "tags of 1 bits turn checks off")
            .broken_by(case(check, &[app()], F_ALL | F_APP_AND_REFERENCE, 7, 0))
            .broken_by(case(check, &[both()], F_ALL, 7, 0))
            .broken_by(case(check, &[fs()], 0, 7, 0))
            .kept_by(case(check, &[app(), both(), fs()], F_APP, 0, 3))
            .kept_by(case(check, &[both(), fs()], F_APP_AND_REFERENCE, 0, 2)),
    ]
}

/// Tags that count, and that do not.
fn tags() -> Vec<Rule> {
    let mut rule = Rule::new("8.3.17.2", "tags of the source count or stay");
    for (flags, reference, app) in [
        (0, 1, 0),
        (REFERENCE_FIXED, 0, 0),
        (APP_COUNTS, 1, 1),
        (REFERENCE_FIXED | APP_COUNTS, 0, 1),
    ] {
        let seed = DifTags {
            app_mask: 0,
            ..TAGS
        };
        let tags = |n: u32| DifTags {
            reference: TAGS.reference + n * reference,
            app_mask: 0,
            app: TAGS.app + n as u16 * app,
        };
        let stored = |n| block(GUARD, tags(n).app, tags(n).reference);
        let descriptor = Descriptor::dif_check(SRC, 1040, 0, flags, seed).with_completion(RECORD);
        let mut record = CompletionRecord::with_status(Status::SUCCESS);
        record.set_source_tags(tags(2));
        let right = Case::new(descriptor, Reported::Record(record));
        let right = right.with_bytes(SRC, &[stored(0), stored(1)].concat());
        let wrong = Case::new(descriptor, Reported::Status(Status::DIF_ERROR));
        let moved = block(GUARD, tags(1).app ^ 1, tags(1).reference ^ 1);
        rule = rule
            .broken_by(wrong.with_bytes(SRC, &[stored(0), moved].concat()))
            .kept_by(right);
    }
    vec![rule]
}

/// Fields that are made, with every guard flag; "broken" is what asks for another field.
fn made() -> Vec<Rule> {
    let zeros = vec![0; 1024];
    let guards = [
        (0, 0x0000),
        (1 << 2, 0x72bb),
        (1 << 3, 0xffff),
        (3 << 2, 0x8d44),
    ];
    let mut insert = Rule::new("8.3.15", "dif_insert makes fields");
    let mut apart = Rule::new("8.3.18", "dix_generate makes fields apart");
    for (flags, guard) in guards {
        for (destination, reference, app) in [(0, 1, 0), (REFERENCE_FIXED | APP_COUNTS, 0, 1)] {
            let tags = |n: u32| DifTags {
                reference: TAGS.reference + n * reference,
                app_mask: TAGS.app_mask,
                app: TAGS.app + n as u16 * app,
            };
            let made = |n: u32| field(guard, tags(n).app & !TAGS.app_mask, tags(n).reference);
            let mut record = CompletionRecord::with_status(Status::SUCCESS);
            record.set_destination_tags(tags(2));
            let reported = Reported::Record(record);
            let d = Descriptor::dif_insert(SRC, DST, 1024, flags, destination, TAGS);
            let protected = [
                zeros[..512].to_vec(),
                made(0),
                zeros[512..].to_vec(),
                made(1),
            ];
            let inserted = Case::new(d.with_completion(RECORD), reported)
                .with_bytes(SRC, &zeros)
                .writing(DST, &protected.concat());
            let d = Descriptor::dix_generate(SRC, DST, 1024, flags, destination, TAGS);
            let generated = Case::new(d.with_completion(RECORD), reported)
                .with_bytes(SRC, &zeros)
                .writing(DST, &[made(0), made(1)].concat());
            (insert, apart) = match flags {
                0 => (insert.kept_by(inserted), apart.kept_by(generated)),
                _ => (insert.broken_by(inserted), apart.broken_by(generated)),
            };
        }
    }
    vec![insert, apart]
}

/// Parts that an update takes over from the source.
fn passed() -> Vec<Rule> {
    let stored = block(0x1111, 0x2220, 0x3333_3333);
    let mut rule = Rule::new("8.3.17.3", "an update passes parts of fields through");
    for bits in 0..8_u8 {
        let pass = |bit: u8, flag: u8| if bits >> bit & 1 == 1 { flag } else { 0 };
        let flags = pass(0, PASS_GUARD) | pass(1, PASS_APP) | pass(2, PASS_REFERENCE);
        let guard = if bits & 1 != 0 { 0x1111 } else { GUARD };
        let app = if bits & 2 != 0 { 0x2220 } else { TAGS.app };
        let reference = if bits & 4 != 0 {
            0x3333_3333
        } else {
            TAGS.reference
        };
        // The source's own tags are not checked, so that anything may pass.
        let any = DifTags {
            app_mask: 0xffff,
            ..TAGS
        };
        let source = (NO_GUARD | NO_REFERENCE, any);
        let d = Descriptor::dif_update(SRC, DST, 520, 0, source, (flags, TAGS));
        let mut record = ended(Opcode::DifUpdate, Status::SUCCESS, 0, 1);
        record.set_source_tags(DifTags {
            app_mask: 0xffff,
            ..later(1)
        });
        let case = Case::new(d.with_completion(RECORD), Reported::Record(record))
            .with_bytes(SRC, &stored)
            .writing(DST, &block(guard, app, reference));
        rule = match bits {
            0 => rule.kept_by(case),
            _ => rule.broken_by(case),
        };
    }
    vec![rule]
}

/// What is done before a fault is whole blocks, and the tags go on from there.
fn faults() -> Vec<Rule> {
    let fault = |mut record: CompletionRecord, write| {
        let status = Status::PAGE_FAULT;
        record.status = if write {
            status.with_write_fault().0
        } else {
            status.0
        };
        record.fault_address = HOLE;
        Reported::Record(record)
    };
    let mut rules = Vec::new();
    let near = HOLE - 700;
    for opcode in CHECKING {
        let moved = |mut d: Descriptor, src: u64, dst: u64| {
            d.address1 = src;
            if opcode != Opcode::DifCheck {
                d.address2 = dst;
            }
            d
        };
        let two = checking(opcode, 2, 0, 0);
        let reported = fault(ended(opcode, Status::PAGE_FAULT, 0, 1), false);
        let source = Case::new(moved(two, near, DST), reported).with_bytes(near, &good(0));
        let blocks = [good(0), good(1)].concat();
        let success = Reported::Record(ended(opcode, Status::SUCCESS, 0, 2));
        let kept = Case::new(two, success).with_bytes(SRC, &blocks);
        // A bad block counts more than a fault behind it.
        let bad = Reported::Record(ended(opcode, Status::DIF_ERROR, 1, 0));
        let bad = Case::new(moved(two, near, DST), bad)
            .with_bytes(near, &block(!GUARD, TAGS.app, TAGS.reference));
        let rule = Rule::new("8.3.14", format!("{opcode}: the source ends"));
        rules.push(rule.broken_by(source).broken_by(bad).kept_by(kept.clone()));
        if opcode != Opcode::DifCheck {
            let reported = fault(ended(opcode, Status::PAGE_FAULT, 0, 1), true);
            let destination = Case::new(moved(two, SRC, near), reported).with_bytes(SRC, &blocks);
            let rule = Rule::new("8.3.16", format!("{opcode}: the destination ends"));
            rules.push(rule.broken_by(destination).kept_by(kept));
        }
    }
    for opcode in [Opcode::DifInsert, Opcode::DixGenerate] {
        let make = |src, dst| match opcode {
            Opcode::DifInsert => Descriptor::dif_insert(src, dst, 1024, 0, 0, TAGS),
            _ => Descriptor::dix_generate(src, dst, 1024, 0, 0, TAGS),
        };
        let ended = |status, n| {
            let mut record = CompletionRecord::with_status(status);
            record.set_destination_tags(later(n));
            if status != Status::SUCCESS {
                record.bytes_completed = 512 * n;
            }
            record
        };
        let newer = opcode == Opcode::DixGenerate;
        let named = |mut record: CompletionRecord, operand: u8| {
            if newer {
                record.fault_info = operand << 1;
            }
            record
        };
        let room = if newer { HOLE - 8 } else { near };
        let source = fault(named(ended(Status::PAGE_FAULT, 1), 1), false);
        let destination = fault(named(ended(Status::PAGE_FAULT, 1), 3), true);
        let success = Reported::Record(ended(Status::SUCCESS, 2));
        let case = |src, dst, reported| Case::new(make(src, dst).with_completion(RECORD), reported);
        rules.push(
            Rule::new("8.3.15", format!("{opcode}: source and destination end"))
                .broken_by(case(near, DST, source))
                .broken_by(case(SRC, room, destination))
                .kept_by(case(SRC, DST, success)),
        );
    }
    rules
}
