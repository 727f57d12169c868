//! The flags that each operation allows (spec Table 5-3).

use dray_spec::{Descriptor, Flags, Opcode, Status};

use super::{able, able_to_block};
use crate::rules::case::{Case, Reported, reported_flags};
use crate::rules::layout::{LIST, SRC};
use crate::rules::rule::{Rule, valid_one};

/// Allowed flags by operation, of those that not all operations allow: block on fault, check
/// result, cache control, strict ordering, address 1 to 3 traffic class (spec Table 5-3), and the
/// bits 23:16 that section 8.3 defines.
pub(super) const ALLOWED: &[(Opcode, &str, u32)] = &[
    (Opcode::Noop, ".......", 0x00),
    (Opcode::Batch, "....1..", 0x01),
    (Opcode::Drain, "....12.", 0x0f),
    (Opcode::Memmove, "b.cs12.", 0x00),
    (Opcode::Fill, "b.cs.2.", 0x04),
    (Opcode::Compare, "br..12.", 0x00),
    (Opcode::ComparePattern, "br..1..", 0x00),
    (Opcode::Dualcast, "b.cs123", 0x00),
    (Opcode::CrcGenerate, "b...1.3", 0x0f),
    (Opcode::CopyCrc, "b.cs123", 0x0f),
    (Opcode::CreateDelta, "brcs123", 0x00),
    (Opcode::ApplyDelta, "b.cs12.", 0x00),
    (Opcode::TranslationFetch, "b......", 0x01),
    (Opcode::DifCheck, "b...1..", 0x00),
    (Opcode::DifInsert, "b.cs12.", 0x00),
    (Opcode::DifStrip, "b.cs12.", 0x00),
    (Opcode::DifUpdate, "b.cs12.", 0x00),
    (Opcode::DixGenerate, "b.cs12.", 0x00),
    (Opcode::CacheFlush, "b..s.2.", 0x00),
    (Opcode::UpdateWindow, ".......", 0x01),
    (Opcode::InterDomainCopy, "b.cs12.", 0x03),
    (Opcode::InterDomainFill, "b.cs.2.", 0x06),
    (Opcode::InterDomainCompare, "br..12.", 0x03),
    (Opcode::InterDomainComparePattern, "br..1..", 0x01),
];

pub(super) const COLUMNS: [Flags; 7] = [
    Flags::BLOCK_ON_FAULT,
    Flags::CHECK_RESULT,
    Flags::CACHE_CONTROL,
    Flags::STRICT_ORDERING,
    Flags::ADDRESS1_TC_SELECTOR,
    Flags::ADDRESS2_TC_SELECTOR,
    Flags::ADDRESS3_TC_SELECTOR,
];

/// Each operation, with each flag that it does not allow, on a device that can do everything.
pub(super) fn table() -> Vec<Rule> {
    let rule = |&(opcode, columns, specific): &(Opcode, &str, u32)| {
        let legal = valid_one(opcode);
        let mut rule = Rule::new("Table 5-3", format!("flags of {opcode}")).allows(legal);
        let allowed = COLUMNS.iter().zip(columns.bytes()).filter(|c| c.1 != b'.');
        let mut allowed = allowed.fold(specific << 16, |all, c| all | c.0.bits());
        // Of the combinations of cache control a flush has only the one with readback (8.3.26).
        if columns.contains('c') || opcode == Opcode::CacheFlush {
            allowed |= Flags::DESTINATION_READBACK.bits();
        }
        // Fence, record, interrupt and their like have rules of their own.
        for bit in 5..24 {
            let flag = Flags::from_bits(1 << bit);
            if allowed & 1 << bit == 0 && flag != Flags::COMPLETION_TC_SELECTOR {
                let case = Case::new(legal.with_flags(flag), reported_flags(flag));
                rule = rule.broken_by(case.on(able));
            }
        }
        if allowed & Flags::BLOCK_ON_FAULT.bits() == 0 {
            let flag = Flags::BLOCK_ON_FAULT;
            let case = Case::new(legal.with_flags(flag), reported_flags(flag));
            rule = rule.broken_by(case.on(able_to_block));
        }
        for flag in COLUMNS.iter().filter(|f| allowed & f.bits() != 0) {
            let with = legal.with_flags(*flag);
            let with = match (opcode, *flag) {
                (Opcode::CrcGenerate | Opcode::CopyCrc, Flags::ADDRESS3_TC_SELECTOR) => {
                    seed_in_memory(with)
                }
                (Opcode::Drain, Flags::ADDRESS1_TC_SELECTOR) => with.with_readback1(SRC),
                (Opcode::Drain, _) => with.with_readback2(SRC),
                // The buffers differ, and that is what is expected.
                (Opcode::CreateDelta, Flags::CHECK_RESULT) => with.with_expected_result_mask(7),
                (_, Flags::CHECK_RESULT) => with.with_expected_result(1),
                _ => with,
            };
            let device = match *flag {
                Flags::BLOCK_ON_FAULT => able_to_block,
                _ => able,
            };
            let case = Case::new(with, Reported::Status(Status::SUCCESS));
            rule = rule.kept_by(case.on(device));
        }
        rule
    };
    ALLOWED.iter().map(rule).collect()
}

/// The seed of a CRC comes from the list page.
pub(super) fn seed_in_memory(mut descriptor: Descriptor) -> Descriptor {
    descriptor.operation[8..16].copy_from_slice(&LIST.to_le_bytes());
    descriptor.with_flags(Flags::CRC_READ_SEED)
}
