//! Status 0x12, 0x18, 0x1b, 0x1c: reserved fields and addresses that are not aligned.

use dray_spec::{Descriptor, Flags, Opcode, Status};
use zerocopy::{FromBytes, IntoBytes};

use crate::rule::{Case, DST, LIST, RECORD, Rule, SRC, Told, told, valid, valid_one, with_gen_cap};

/// Reserved bytes, first and last (spec Table 5-3, with 8.3 where a flag frees some).
const RESERVED: &[(Opcode, &[(usize, usize)])] = &[
    (Opcode::Noop, &[(16, 35), (38, 63)]),
    (Opcode::Batch, &[(24, 31), (38, 63)]),
    (Opcode::Drain, &[(16, 31), (32, 35), (38, 63)]),
    (Opcode::Memmove, &[(38, 63)]),
    (Opcode::Fill, &[(38, 63)]),
    (Opcode::Compare, &[(38, 39), (41, 63)]),
    (Opcode::ComparePattern, &[(38, 39), (41, 63)]),
    (Opcode::Dualcast, &[(38, 39), (48, 63)]),
    (Opcode::CrcGenerate, &[(24, 31), (38, 39), (44, 63)]),
    (Opcode::CopyCrc, &[(38, 39), (44, 63)]),
];

pub(crate) fn rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = RESERVED.iter().map(reserved).collect();
    rules.extend(freed());
    rules.extend(aligned());
    rules
}

fn with_byte(descriptor: Descriptor, byte: usize) -> Descriptor {
    let mut bytes = [0; 64];
    bytes.copy_from_slice(descriptor.as_bytes());
    bytes[byte] |= 1 << (byte % 8);
    Descriptor::read_from_bytes(&bytes).expect("64 bytes")
}

fn reserved(&(opcode, ranges): &(Opcode, &[(usize, usize)])) -> Rule {
    let legal = valid_one(opcode);
    let bad = told(Status::NONZERO_RESERVED);
    let mut rule = Rule::new("Table 5-3", format!("reserved bytes of {opcode}")).allows(legal);
    for byte in ranges.iter().flat_map(|&(first, last)| first..=last) {
        rule = rule.broken_by(Case::new(with_byte(legal, byte), bad));
    }
    // What is not reserved may hold anything, here what makes no difference. The interrupt
    // handle, bytes 36 and 37, has a rule of its own.
    if matches!(opcode, Opcode::Compare | Opcode::ComparePattern) {
        rule = rule.allows(with_byte(legal, 40));
    }
    // PASID, privilege and what lies between them do not count on a dedicated queue (spec 8.1.1).
    (0..4).fold(rule, |rule, byte| rule.allows(with_byte(legal, byte)))
}

/// Fields that a flag makes valid.
fn freed() -> Vec<Rule> {
    let bad = told(Status::NONZERO_RESERVED);
    let success = |d: Descriptor| Case::new(d, Told::Status(Status::SUCCESS));
    let mut address = Rule::new("8.1.4", "no completion address without its flag");
    let mut handle = Rule::new("8.1.8", "no interrupt handle without its flag");
    for legal in valid() {
        let handled = legal.with_interrupt(5);
        let mut unasked = legal;
        unasked.interrupt_handle = 5;
        handle = handle.broken_by(Case::new(unasked, bad)).allows(handled);
    }
    let mut addressed = Descriptor::memmove(SRC, DST, 64);
    addressed.completion_addr = RECORD;
    let error = Told::Error(Status::NONZERO_RESERVED, 0);
    address = address.broken_by(Case::new(addressed, error));
    address = address.allows(
        addressed.with_flags(Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD),
    );

    let mut rules = vec![address, handle];
    let legal = valid_one(Opcode::Drain);
    for (byte, flag, drain) in [
        (16, Flags::DRAIN_READBACK1_VALID, legal.with_readback1(SRC)),
        (24, Flags::DRAIN_READBACK2_VALID, legal.with_readback2(SRC)),
    ] {
        let mut drain = drain;
        drain.flags_opcode &= !flag.bits();
        let rule = Rule::new("8.3.3", format!("readback at byte {byte} needs its flag"));
        let rule = rule.broken_by(Case::new(drain, bad));
        rules.push(rule.kept_by(success(drain.with_flags(flag)).on(|c| with_gen_cap(c, 9))));
    }
    let wide = with_byte(valid_one(Opcode::Fill), 44);
    let kept = success(wide.with_flags(Flags::FILL_PATTERN_16));
    rules.push(
        Rule::new("8.3.5", "the upper pattern needs its flag")
            .broken_by(Case::new(wide, bad).on(|c| with_gen_cap(c, 10)))
            .kept_by(kept.on(|c| with_gen_cap(c, 10))),
    );
    for opcode in [Opcode::CrcGenerate, Opcode::CopyCrc] {
        let legal = valid_one(opcode);
        let mut at = legal;
        at.operation[8..16].copy_from_slice(&LIST.to_le_bytes());
        let read = at.with_flags(Flags::CRC_READ_SEED);
        rules.push(
            Rule::new("8.3.12", format!("{opcode}: a seed or its address"))
                .broken_by(Case::new(at, bad))
                .broken_by(Case::new(with_byte(read, 40), bad))
                .allows(with_byte(legal, 40))
                .allows(read),
        );
        let mut odd = read;
        odd.operation[8] = 2;
        rules.push(
            Rule::new(
                "8.3.12",
                format!("{opcode}: the address of a seed is aligned"),
            )
            .broken_by(Case::new(odd, told(Status::ADDRESS_ALIGNMENT)))
            .allows(read),
        );
    }
    rules
}

fn aligned() -> Vec<Rule> {
    let mut record = Rule::new("8.1.4", "records are aligned");
    for legal in valid() {
        for off in [1, 16] {
            let odd = legal.with_completion(RECORD + off);
            let error = Told::Error(Status::COMPLETION_ADDRESS_ALIGNMENT, RECORD + off);
            record = record.broken_by(Case::new(odd, error));
            // Nothing else counts then, least of all an interrupt.
            record = record.broken_by(Case::new(odd.with_interrupt(1), error));
        }
        record = record.allows(legal);
    }
    let odd = Descriptor::noop().with_completion(RECORD + 8);
    let error = Told::Error(Status::COMPLETION_ADDRESS_ALIGNMENT, RECORD + 8);
    record = record.broken_by(Case::new(odd, error).in_batch());

    let batch = |list| Descriptor::batch(list, 2).with_completion(RECORD);
    let mut list = Rule::new("8.3.2", "descriptor lists are aligned").allows(batch(LIST + 64));
    for off in [1, 8, 32, 63] {
        let bad = told(Status::DESCRIPTOR_LIST_ALIGNMENT);
        list = list.broken_by(Case::new(batch(LIST + off), bad));
    }
    vec![record, list]
}
