//! Operation codes and their names.

use core::fmt;
use core::str::FromStr;

/// Declares the enum, the decoder and the names from one table, so that they cannot diverge.
macro_rules! opcodes {
    ($($(#[$doc:meta])* $code:literal $variant:ident $name:literal [$($alias:literal),*],)*) => {
        /// An operation of the architecture, versions 1 and 2 (spec 8.3).
        #[repr(u8)]
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Opcode {
            $($(#[$doc])* $variant = $code,)*
        }

        impl Opcode {
            /// Every operation, in the order of the codes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name used on the command line and in results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Other names that people type: from `linux/idxd.h`, DML, SPDK and DPDK.
            pub const fn aliases(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($alias),*],)*
                }
            }

            const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    /// Does nothing but complete (8.3.1).
    0x00 Noop "noop" ["nop"],
    /// Fetches a list of descriptors and executes it (8.3.2).
    0x01 Batch "batch" [],
    /// Waits for earlier descriptors (8.3.3).
    0x02 Drain "drain" [],
    /// Copies, also between overlapping buffers where GENCAP allows it (8.3.4).
    0x03 Memmove "memmove" ["copy", "memcpy", "move", "mem_move"],
    /// Writes a pattern of 8 or 16 bytes over and over (8.3.5).
    0x04 Fill "fill" ["memset", "memfill", "mem_fill"],
    /// Compares two buffers (8.3.6).
    0x05 Compare "compare" ["memcmp"],
    /// Compares a buffer with a pattern of 8 bytes (8.3.7).
    0x06 ComparePattern "compval" ["compare_pattern", "compare_value"],
    /// Records where two buffers differ (8.3.8).
    0x07 CreateDelta "create_delta" ["cr_delta", "delta_create"],
    /// Applies such a record (8.3.9).
    0x08 ApplyDelta "apply_delta" ["ap_delta", "delta_apply"],
    /// Copies to two destinations (8.3.10).
    0x09 Dualcast "dualcast" ["dual_cast"],
    /// Has the translations of a region fetched; version 2.
    0x0a TranslationFetch "translation_fetch" ["transl_fetch"],
    /// Computes a CRC (8.3.12).
    0x10 CrcGenerate "crc" ["crcgen", "crc_generate", "crc32c"],
    /// Copies and computes a CRC.
    0x11 CopyCrc "copy_crc" ["crc_copy", "copy_crc32c"],
    /// Checks the data integrity field of every block.
    0x12 DifCheck "dif_check" [],
    /// Copies and inserts a data integrity field after every block.
    0x13 DifInsert "dif_insert" ["dif_ins"],
    /// Copies, checks and strips the data integrity fields.
    0x14 DifStrip "dif_strip" ["dif_strp"],
    /// Copies, checks and replaces the data integrity fields.
    0x15 DifUpdate "dif_update" ["dif_updt"],
    /// Generates data integrity fields apart from the data; version 2.
    0x17 DixGenerate "dix_generate" ["dix_gen"],
    /// Evicts a range from the caches of the processor.
    0x20 CacheFlush "cache_flush" ["cflush"],
    /// Changes the window of an inter-domain permission entry; version 2.
    0x21 UpdateWindow "update_window" [],
    /// Copies between address spaces; version 2.
    0x23 InterDomainCopy "inter_domain_copy" ["id_copy"],
    /// Fills in another address space; version 2.
    0x24 InterDomainFill "inter_domain_fill" ["id_fill"],
    /// Compares between address spaces; version 2.
    0x25 InterDomainCompare "inter_domain_compare" ["id_compare"],
    /// Compares a buffer in another address space with a pattern; version 2.
    0x26 InterDomainComparePattern "inter_domain_compval"
        ["id_compval", "inter_domain_compare_pattern"],
}

impl TryFrom<u8> for Opcode {
    type Error = UnknownOpcode;

    fn try_from(byte: u8) -> Result<Self, UnknownOpcode> {
        Self::from_byte(byte).ok_or(UnknownOpcode(byte))
    }
}

impl From<Opcode> for u8 {
    fn from(opcode: Opcode) -> u8 {
        opcode as u8
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Opcode {
    type Err = UnknownOpcodeName;

    /// Accepts names and aliases, in any case, with `-` or `_` between words.
    fn from_str(text: &str) -> Result<Self, UnknownOpcodeName> {
        let is = |name: &str| {
            name.len() == text.len()
                && name.bytes().zip(text.bytes()).all(|(wanted, given)| {
                    wanted == given.to_ascii_lowercase() || (wanted == b'_' && given == b'-')
                })
        };
        Self::ALL
            .iter()
            .copied()
            .find(|opcode| is(opcode.name()) || opcode.aliases().iter().any(|alias| is(alias)))
            .ok_or(UnknownOpcodeName)
    }
}

/// A byte that is no operation of this architecture.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownOpcode(pub u8);

impl fmt::Display for UnknownOpcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown operation code {:#04x}", self.0)
    }
}

impl core::error::Error for UnknownOpcode {}

/// A text that names no operation. The caller has the text; [`Opcode::ALL`] has the choices.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownOpcodeName;

impl fmt::Display for UnknownOpcodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown operation name; known are")?;
        for (index, opcode) in Opcode::ALL.iter().enumerate() {
            write!(f, "{} {opcode}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownOpcodeName {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_byte_decodes_to_its_own_code_or_is_refused() {
        let mut known = 0;
        for byte in 0..=u8::MAX {
            match Opcode::try_from(byte) {
                Ok(opcode) => {
                    assert_eq!(u8::from(opcode), byte);
                    known += 1;
                }
                Err(UnknownOpcode(refused)) => assert_eq!(refused, byte),
            }
        }
        assert_eq!(known, Opcode::ALL.len());
    }

    #[test]
    fn names_and_aliases_are_unique_and_parse() {
        let mut seen = std::collections::HashSet::new();
        for &opcode in Opcode::ALL {
            for name in core::iter::once(opcode.name()).chain(opcode.aliases().iter().copied()) {
                assert!(seen.insert(name), "{name} twice");
                assert_eq!(name.parse(), Ok(opcode));
                assert_eq!(name.to_uppercase().replace('_', "-").parse(), Ok(opcode));
            }
        }
    }

    #[test]
    fn unknown_names_list_the_choices() {
        for text in ["", "memmov", "memmovee", "mem move", "mémmove"] {
            assert_eq!(text.parse::<Opcode>(), Err(UnknownOpcodeName));
        }
        let message = UnknownOpcodeName.to_string();
        assert!(
            message.contains("known are noop, batch, drain"),
            "{message}"
        );
        assert_eq!(
            UnknownOpcode(0x0b).to_string(),
            "unknown operation code 0x0b"
        );
    }

    // linux/idxd.h, enum dsa_opcode (Linux 6.1 uapi).
    #[test]
    fn codes_are_those_of_the_kernel_header() {
        let header = [
            (Opcode::Noop, 0),
            (Opcode::Batch, 1),
            (Opcode::Drain, 2),
            (Opcode::Memmove, 3),
            (Opcode::Fill, 4),
            (Opcode::Compare, 5),
            (Opcode::ComparePattern, 6),
            (Opcode::CreateDelta, 7),
            (Opcode::ApplyDelta, 8),
            (Opcode::Dualcast, 9),
            (Opcode::CrcGenerate, 0x10),
            (Opcode::CopyCrc, 0x11),
            (Opcode::DifCheck, 0x12),
            (Opcode::DifInsert, 0x13),
            (Opcode::DifStrip, 0x14),
            (Opcode::DifUpdate, 0x15),
            (Opcode::CacheFlush, 0x20),
        ];
        for (opcode, code) in header {
            assert_eq!(opcode as u8, code, "{opcode}");
        }
    }
}
