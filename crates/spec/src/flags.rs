//! Descriptor flags.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// The 24 flag bits of a descriptor (spec 8.1.3, Table 8-3).
///
/// Bits 23:16 mean something else for each operation; their constants start with the operation.
#[derive(Copy, Clone, PartialEq, Eq, Default, Hash)]
pub struct Flags(u32);

impl Flags {
    /// No flag.
    pub const EMPTY: Self = Self(0);
    /// The member starts only after all earlier members of its batch.
    pub const FENCE: Self = Self(1 << 0);
    /// The device resolves page faults itself instead of completing partially.
    pub const BLOCK_ON_FAULT: Self = Self(1 << 1);
    /// The completion record address is valid.
    pub const COMPLETION_ADDRESS_VALID: Self = Self(1 << 2);
    /// A record is written also on success.
    pub const REQUEST_COMPLETION_RECORD: Self = Self(1 << 3);
    /// An interrupt is sent on completion.
    pub const REQUEST_COMPLETION_INTERRUPT: Self = Self(1 << 4);
    /// Version 1.0: steering tag for the record. Reserved in version 2.
    pub const COMPLETION_STEERING_TAG: Self = Self(1 << 5);
    /// Version 3: durable memory, or with [`DESTINATION_READBACK`](Self::DESTINATION_READBACK) other
    /// than that. Table 8-4 defines it where section 5.5 still calls bit 5 reserved.
    pub const CACHE_CONTROL_3: Self = Self(1 << 5);
    /// The result is compared with the expected one.
    pub const CHECK_RESULT: Self = Self(1 << 7);
    /// Destination writes are directed to the cache (Cache Control 1).
    pub const CACHE_CONTROL: Self = Self(1 << 8);
    /// Address 1 uses traffic class B of the group.
    pub const ADDRESS1_TC_SELECTOR: Self = Self(1 << 9);
    /// Address 2 uses traffic class B of the group.
    pub const ADDRESS2_TC_SELECTOR: Self = Self(1 << 10);
    /// Address 3 uses traffic class B of the group.
    pub const ADDRESS3_TC_SELECTOR: Self = Self(1 << 11);
    /// The completion record uses traffic class B of the group.
    pub const COMPLETION_TC_SELECTOR: Self = Self(1 << 12);
    /// Writes are not relaxed-ordered.
    pub const STRICT_ORDERING: Self = Self(1 << 13);
    /// The destination is read back before the record is written.
    pub const DESTINATION_READBACK: Self = Self(1 << 14);
    /// Version 1.0: steering tag for the destination. Reserved later.
    pub const DESTINATION_STEERING_TAG: Self = Self(1 << 15);

    /// Batch: an earlier part of this batch has failed already.
    pub const BATCH_ERROR: Self = Self(1 << 16);
    /// Drain: readback address 1 is valid.
    pub const DRAIN_READBACK1_VALID: Self = Self(1 << 16);
    /// Drain: readback address 2 is valid.
    pub const DRAIN_READBACK2_VALID: Self = Self(1 << 17);
    /// Drain: no implicit readback on traffic class A.
    pub const DRAIN_SUPPRESS_TC_A: Self = Self(1 << 18);
    /// Drain: no implicit readback on traffic class B.
    pub const DRAIN_SUPPRESS_TC_B: Self = Self(1 << 19);
    /// Fill and inter-domain fill: the pattern has 16 bytes.
    pub const FILL_PATTERN_16: Self = Self(1 << 18);
    /// Translation fetch: the region stride is valid.
    pub const TRANSLATION_FETCH_USE_STRIDE: Self = Self(1 << 16);
    /// CRC: the seed is read from memory.
    pub const CRC_READ_SEED: Self = Self(1 << 16);
    /// CRC: seed and result are neither inverted nor reflected.
    pub const CRC_BYPASS_INVERSION: Self = Self(1 << 17);
    /// CRC: data bytes enter with bit 7 first.
    pub const CRC_BYPASS_DATA_REFLECTION: Self = Self(1 << 18);
    /// CRC: 64 bits instead of 32.
    pub const CRC_64: Self = Self(1 << 19);
    /// Update window: no implicit drain.
    pub const UPDATE_WINDOW_SUPPRESS_DRAIN: Self = Self(1 << 16);
    /// Inter-domain: the alternate PASID is used for the source or source 1.
    pub const INTER_DOMAIN_ALTERNATE_SOURCE: Self = Self(1 << 16);
    /// Inter-domain: the alternate PASID is used for the destination or source 2.
    pub const INTER_DOMAIN_ALTERNATE_DESTINATION: Self = Self(1 << 17);

    const MASK: u32 = 0x00ff_ffff;

    /// Takes the low 24 bits; the rest belongs to other fields and is dropped.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::MASK)
    }

    /// The bits, in 23:0.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all flags of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no flag is set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags of both.
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags that both have.
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// These flags without those of `other`.
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

/// Names of bits 15:0; bit 6 has never had one.
const NAMES: [&str; 16] = [
    "FENCE",
    "BLOCK_ON_FAULT",
    "COMPLETION_ADDRESS_VALID",
    "REQUEST_COMPLETION_RECORD",
    "REQUEST_COMPLETION_INTERRUPT",
    "COMPLETION_STEERING_TAG",
    "RESERVED_6",
    "CHECK_RESULT",
    "CACHE_CONTROL",
    "ADDRESS1_TC_SELECTOR",
    "ADDRESS2_TC_SELECTOR",
    "ADDRESS3_TC_SELECTOR",
    "COMPLETION_TC_SELECTOR",
    "STRICT_ORDERING",
    "DESTINATION_READBACK",
    "DESTINATION_STEERING_TAG",
];

impl fmt::Debug for Flags {
    /// Names joined by `|`; the operation-specific bits, whose meaning needs the opcode, as `OPERATION_16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flags(")?;
        let mut separator = "";
        for bit in (0..24).filter(|bit| self.0 & (1 << bit) != 0) {
            f.write_str(separator)?;
            match NAMES.get(bit) {
                Some(name) => f.write_str(name)?,
                None => write!(f, "OPERATION_{bit}")?,
            }
            separator = " | ";
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    // linux/idxd.h, IDXD_OP_FLAG_* (Linux 6.1 uapi).
    #[test]
    fn bits_are_those_of_the_kernel_header() {
        let header = [
            (Flags::FENCE, 0x0001),
            (Flags::BLOCK_ON_FAULT, 0x0002),
            (Flags::COMPLETION_ADDRESS_VALID, 0x0004),
            (Flags::REQUEST_COMPLETION_RECORD, 0x0008),
            (Flags::REQUEST_COMPLETION_INTERRUPT, 0x0010),
            (Flags::COMPLETION_STEERING_TAG, 0x0020),
            (Flags::CHECK_RESULT, 0x0080),
            (Flags::CACHE_CONTROL, 0x0100),
            (Flags::ADDRESS1_TC_SELECTOR, 0x0200),
            (Flags::ADDRESS2_TC_SELECTOR, 0x0400),
            (Flags::ADDRESS3_TC_SELECTOR, 0x0800),
            (Flags::COMPLETION_TC_SELECTOR, 0x1000),
            (Flags::STRICT_ORDERING, 0x2000),
            (Flags::DESTINATION_READBACK, 0x4000),
            (Flags::DESTINATION_STEERING_TAG, 0x8000),
        ];
        for (flag, bits) in header {
            assert_eq!(flag.bits(), bits, "{flag:?}");
        }
    }

    #[test]
    fn the_opcode_byte_is_no_flag() {
        assert_eq!(Flags::from_bits(0xff00_0001), Flags::FENCE);
        assert_eq!(Flags::from_bits(u32::MAX).bits(), 0x00ff_ffff);
    }

    #[test]
    fn set_operations() {
        let both = Flags::FENCE | Flags::CHECK_RESULT;
        assert!(both.contains(Flags::FENCE));
        assert!(both.contains(Flags::EMPTY));
        assert!(!both.contains(Flags::FENCE | Flags::STRICT_ORDERING));
        assert!(both.intersects(Flags::FENCE | Flags::STRICT_ORDERING));
        assert_eq!(both.without(Flags::FENCE), Flags::CHECK_RESULT);
        assert_eq!(both.intersection(Flags::FENCE), Flags::FENCE);
        assert!(both.without(both).is_empty());
    }

    #[test]
    fn debug_names_the_flags() {
        let flags = Flags::BLOCK_ON_FAULT | Flags::CRC_64 | Flags::from_bits(1 << 6);
        assert_eq!(
            format!("{flags:?}"),
            "Flags(BLOCK_ON_FAULT | RESERVED_6 | OPERATION_19)"
        );
        assert_eq!(format!("{:?}", Flags::EMPTY), "Flags()");
    }
}
