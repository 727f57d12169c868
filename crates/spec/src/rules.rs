//! Which flags an operation allows and needs, and which bytes it leaves reserved.
//!
//! Only what a descriptor alone decides. What the device lacks (GENCAP, work queue
//! configuration), and whether the descriptor sits in a batch, is for the device to add.

use crate::{Flags, Opcode};

/// Flags that every operation takes.
const COMMON: Flags = Flags::COMPLETION_ADDRESS_VALID
    .union(Flags::REQUEST_COMPLETION_RECORD)
    .union(Flags::REQUEST_COMPLETION_INTERRUPT)
    .union(Flags::COMPLETION_TC_SELECTOR);
const FENCE: Flags = Flags::FENCE;
const BOF: Flags = Flags::BLOCK_ON_FAULT;
const CHECK: Flags = Flags::CHECK_RESULT;
const A1: Flags = Flags::ADDRESS1_TC_SELECTOR;
const A2: Flags = Flags::ADDRESS2_TC_SELECTOR;
const A3: Flags = Flags::ADDRESS3_TC_SELECTOR;
/// Flags of every operation that writes memory, except cache flush.
const WRITES: Flags = Flags::CACHE_CONTROL
    .union(Flags::CACHE_CONTROL_3)
    .union(Flags::DESTINATION_READBACK)
    .union(Flags::STRICT_ORDERING);
const CRC: Flags = Flags::CRC_READ_SEED
    .union(Flags::CRC_BYPASS_INVERSION)
    .union(Flags::CRC_BYPASS_DATA_REFLECTION)
    .union(Flags::CRC_64);
const DRAIN: Flags = Flags::DRAIN_READBACK1_VALID
    .union(Flags::DRAIN_READBACK2_VALID)
    .union(Flags::DRAIN_SUPPRESS_TC_A)
    .union(Flags::DRAIN_SUPPRESS_TC_B);
const ALTERNATE_SOURCE: Flags = Flags::INTER_DOMAIN_ALTERNATE_SOURCE;
const ALTERNATE_DESTINATION: Flags = Flags::INTER_DOMAIN_ALTERNATE_DESTINATION;

/// Flags that may be set for an operation (spec Table 5-3).
///
/// Some of them need another flag; [`invalid_flags`] knows which.
pub const fn allowed_flags(opcode: Opcode) -> Flags {
    let own = match opcode {
        Opcode::Noop => FENCE,
        Opcode::Batch => A1.union(Flags::BATCH_ERROR),
        Opcode::Drain => A1.union(A2).union(DRAIN),
        Opcode::Memmove => FENCE.union(BOF).union(WRITES).union(A1).union(A2),
        Opcode::Fill => FENCE
            .union(BOF)
            .union(WRITES)
            .union(A2)
            .union(Flags::FILL_PATTERN_16),
        Opcode::Compare => FENCE.union(BOF).union(CHECK).union(A1).union(A2),
        Opcode::ComparePattern => FENCE.union(BOF).union(CHECK).union(A1),
        Opcode::CreateDelta => FENCE
            .union(BOF)
            .union(CHECK)
            .union(WRITES)
            .union(A1)
            .union(A2)
            .union(A3),
        Opcode::ApplyDelta => FENCE.union(BOF).union(WRITES).union(A1).union(A2),
        Opcode::Dualcast => FENCE.union(BOF).union(WRITES).union(A1).union(A2).union(A3),
        Opcode::TranslationFetch => FENCE.union(BOF).union(Flags::TRANSLATION_FETCH_USE_STRIDE),
        Opcode::CrcGenerate => FENCE.union(BOF).union(A1).union(A3).union(CRC),
        Opcode::CopyCrc => FENCE
            .union(BOF)
            .union(WRITES)
            .union(A1)
            .union(A2)
            .union(A3)
            .union(CRC),
        Opcode::DifCheck => FENCE.union(BOF).union(A1),
        Opcode::DifInsert | Opcode::DifStrip | Opcode::DifUpdate | Opcode::DixGenerate => {
            FENCE.union(BOF).union(WRITES).union(A1).union(A2)
        }
        // Cache control must be 000 or 010, which leaves the readback bit (spec Table 5-3).
        Opcode::CacheFlush => FENCE
            .union(BOF)
            .union(Flags::DESTINATION_READBACK)
            .union(Flags::STRICT_ORDERING)
            .union(A2),
        Opcode::UpdateWindow => Flags::UPDATE_WINDOW_SUPPRESS_DRAIN,
        Opcode::InterDomainCopy => FENCE
            .union(BOF)
            .union(WRITES)
            .union(A1)
            .union(A2)
            .union(ALTERNATE_SOURCE)
            .union(ALTERNATE_DESTINATION),
        Opcode::InterDomainFill => FENCE
            .union(BOF)
            .union(WRITES)
            .union(A2)
            .union(Flags::FILL_PATTERN_16)
            .union(ALTERNATE_DESTINATION),
        Opcode::InterDomainCompare => FENCE
            .union(BOF)
            .union(CHECK)
            .union(A1)
            .union(A2)
            .union(ALTERNATE_SOURCE)
            .union(ALTERNATE_DESTINATION),
        Opcode::InterDomainComparePattern => FENCE
            .union(BOF)
            .union(CHECK)
            .union(A1)
            .union(ALTERNATE_SOURCE),
    };
    COMMON.union(own)
}

/// Flags that may be set only together with another one (spec Tables 5-3 and 8-3).
const fn dependencies(opcode: Opcode) -> &'static [(Flags, Flags)] {
    match opcode {
        Opcode::Drain => &[
            (A1, Flags::DRAIN_READBACK1_VALID),
            (A2, Flags::DRAIN_READBACK2_VALID),
        ],
        Opcode::CrcGenerate | Opcode::CopyCrc => &[(A3, Flags::CRC_READ_SEED)],
        _ => &[],
    }
}

const COMMON_DEPENDENCIES: &[(Flags, Flags)] = &[
    (
        Flags::REQUEST_COMPLETION_RECORD,
        Flags::COMPLETION_ADDRESS_VALID,
    ),
    (
        Flags::COMPLETION_TC_SELECTOR,
        Flags::COMPLETION_ADDRESS_VALID,
    ),
];

/// The flags of `flags` that the operation does not allow; empty if there are none.
///
/// What is missing is not in it: see [`required_flags`].
pub fn invalid_flags(opcode: Opcode, flags: Flags) -> Flags {
    let forbidden = flags.without(allowed_flags(opcode));
    // Cache control 101 and 111 are reserved (spec Table 8-4).
    let cache_control = Flags::CACHE_CONTROL.union(Flags::CACHE_CONTROL_3);
    let forbidden = match flags.contains(cache_control) {
        true => forbidden.union(cache_control),
        false => forbidden,
    };
    let dependencies = COMMON_DEPENDENCIES.iter().chain(dependencies(opcode));
    dependencies
        .filter(|(_, needed)| !flags.contains(*needed))
        .fold(forbidden, |invalid, (dependent, _)| {
            invalid.union(flags.intersection(*dependent))
        })
}

/// What an operation needs among its flags.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RequiredFlags {
    /// All of these.
    pub all: Flags,
    /// At least one of these, unless empty.
    pub any: Flags,
}

impl RequiredFlags {
    /// Whether `flags` has what is needed.
    pub const fn met_by(self, flags: Flags) -> bool {
        flags.contains(self.all) && (self.any.is_empty() || flags.intersects(self.any))
    }
}

/// Flags that must be set for an operation; else status 0x11 (spec Table 5-5).
///
/// For the inter-domain compares the table is silent; they return a result as compare does, so
/// they are taken to need a record as compare does. It is for DIX generate too, for which section
/// 8.3.18 demands a record; software that has it done asks for one.
pub const fn required_flags(opcode: Opcode) -> RequiredFlags {
    let record = Flags::COMPLETION_ADDRESS_VALID.union(Flags::REQUEST_COMPLETION_RECORD);
    let (all, any) = match opcode {
        Opcode::Drain => (
            Flags::EMPTY,
            Flags::REQUEST_COMPLETION_RECORD.union(Flags::REQUEST_COMPLETION_INTERRUPT),
        ),
        Opcode::Compare
        | Opcode::ComparePattern
        | Opcode::CreateDelta
        | Opcode::CrcGenerate
        | Opcode::CopyCrc
        | Opcode::DifCheck
        | Opcode::DixGenerate => (record, Flags::EMPTY),
        Opcode::InterDomainCopy => (Flags::EMPTY, ALTERNATE_SOURCE.union(ALTERNATE_DESTINATION)),
        Opcode::InterDomainFill => (ALTERNATE_DESTINATION, Flags::EMPTY),
        Opcode::InterDomainCompare => (record, ALTERNATE_SOURCE.union(ALTERNATE_DESTINATION)),
        Opcode::InterDomainComparePattern => (record.union(ALTERNATE_SOURCE), Flags::EMPTY),
        _ => (Flags::EMPTY, Flags::EMPTY),
    };
    RequiredFlags { all, any }
}

/// Bytes `first` to `last` of a descriptor, as a mask.
const fn bytes(first: u32, last: u32) -> u64 {
    (u64::MAX >> (63 - last)) & (u64::MAX << first)
}

const COMPLETION_ADDRESS: u64 = bytes(8, 15);
const ADDRESS1: u64 = bytes(16, 23);
const ADDRESS2: u64 = bytes(24, 31);
const SIZE: u64 = bytes(32, 35);
const INTERRUPT_HANDLE: u64 = bytes(36, 37);
/// Bytes 38-39, which no operation of versions 1 and 2 uses.
const RESERVED: u64 = bytes(38, 39);
/// Bytes 40-63, from which each operation subtracts what it uses.
const OPERATION: u64 = bytes(40, 63);

/// Bytes that must be 0: bit n stands for byte n of the descriptor (spec Table 5-3, 8.1, 8.3).
///
/// Includes the completion address without the flag that makes it valid, and the interrupt
/// handle without a requested interrupt. Never includes bytes 0 to 7.
pub const fn reserved_bytes(opcode: Opcode, flags: Flags) -> u64 {
    let mut reserved = RESERVED | operation_reserved(opcode, flags);
    if !flags.contains(Flags::COMPLETION_ADDRESS_VALID) {
        reserved |= COMPLETION_ADDRESS;
    }
    if !flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT) {
        reserved |= INTERRUPT_HANDLE;
    }
    reserved
}

const fn operation_reserved(opcode: Opcode, flags: Flags) -> u64 {
    match opcode {
        Opcode::Noop => ADDRESS1 | ADDRESS2 | SIZE | OPERATION,
        Opcode::Batch => ADDRESS2 | OPERATION,
        Opcode::Drain => {
            let first = flags.contains(Flags::DRAIN_READBACK1_VALID);
            let second = flags.contains(Flags::DRAIN_READBACK2_VALID);
            SIZE | OPERATION | unless(first, ADDRESS1) | unless(second, ADDRESS2)
        }
        Opcode::Memmove => OPERATION,
        Opcode::Fill => bytes(48, 63) | pattern_high(flags),
        Opcode::Compare | Opcode::ComparePattern => OPERATION & !bytes(40, 40),
        Opcode::CreateDelta => bytes(52, 55) | bytes(57, 63),
        Opcode::ApplyDelta => bytes(44, 63),
        Opcode::Dualcast => bytes(48, 63),
        Opcode::TranslationFetch => {
            let stride = flags.contains(Flags::TRANSLATION_FETCH_USE_STRIDE);
            ADDRESS2 | bytes(40, 47) | unless(stride, bytes(48, 51)) | bytes(52, 63)
        }
        Opcode::CrcGenerate => ADDRESS2 | crc_reserved(flags),
        Opcode::CopyCrc => crc_reserved(flags),
        Opcode::DifCheck => ADDRESS2 | bytes(41, 41) | bytes(43, 47) | bytes(56, 63),
        Opcode::DifStrip => bytes(41, 41) | bytes(43, 47) | bytes(56, 63),
        Opcode::DifInsert | Opcode::DixGenerate => bytes(40, 40) | bytes(43, 55),
        Opcode::DifUpdate => bytes(43, 47),
        Opcode::CacheFlush => ADDRESS1 | OPERATION,
        Opcode::UpdateWindow => SIZE | bytes(40, 60),
        Opcode::InterDomainCopy => bytes(40, 59) | unused_handles(flags),
        Opcode::InterDomainFill => bytes(48, 61) | pattern_high(flags),
        Opcode::InterDomainCompare => bytes(41, 59) | unused_handles(flags),
        Opcode::InterDomainComparePattern => bytes(41, 59) | bytes(62, 63),
    }
}

const fn pattern_high(flags: Flags) -> u64 {
    unless(flags.contains(Flags::FILL_PATTERN_16), bytes(40, 47))
}

/// A handle counts only with its flag (spec Table 5-4).
const fn unused_handles(flags: Flags) -> u64 {
    unless(flags.contains(ALTERNATE_SOURCE), bytes(60, 61))
        | unless(flags.contains(ALTERNATE_DESTINATION), bytes(62, 63))
}

/// The seed is in the descriptor or in memory, never in both (8.3.12).
const fn crc_reserved(flags: Flags) -> u64 {
    let seed = if flags.contains(Flags::CRC_READ_SEED) {
        bytes(40, 47)
    } else {
        bytes(48, 55) | unless(flags.contains(Flags::CRC_64), bytes(44, 47))
    };
    seed | bytes(56, 63)
}

const fn unless(freed: bool, mask: u64) -> u64 {
    if freed { 0 } else { mask }
}

#[cfg(test)]
mod tests;
