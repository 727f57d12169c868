//! Capability registers.

use core::fmt;
use core::str::FromStr;

use bitfield_struct::bitfield;

use crate::Opcode;

/// GENCAP, offset 0x10: what the device can do (spec 9.2.2).
///
/// Bits without a name are kept: real devices set some that no revision describes.
#[bitfield(u64)]
#[derive(PartialEq, Eq, Hash)]
pub struct GenCap {
    /// Descriptors may block on page faults.
    pub block_on_fault: bool,
    /// Memmove accepts overlapping buffers.
    pub overlapping_copy: bool,
    /// Writes can be directed to the cache.
    pub cache_control_memory: bool,
    /// Version 1: hint of the cache flush operation. Unused in the revision 3.0 text.
    pub cache_control_cache: bool,
    /// CMDCAP is present.
    pub command_capability: bool,
    /// Writes can be made durable.
    pub durable_write: bool,
    /// Inter-domain operations are present.
    pub inter_domain: bool,
    /// Translation fetch accepts a stride.
    pub translation_fetch_stride: bool,
    /// Destinations can be read back.
    pub destination_readback: bool,
    /// Drain accepts readback addresses.
    pub drain_readback: bool,
    /// Fill accepts a pattern of 16 bytes.
    pub fill_pattern_16: bool,
    /// CRC operations can compute 64 bits.
    pub crc64: bool,
    /// Completion records say which operand faulted.
    pub fault_info: bool,
    /// Size of an event log entry: 0 none, 1 64 bytes, 2 128 bytes, 3 256 bytes.
    #[bits(2)]
    pub event_log_entry: u8,
    /// Software can continue a batch that stopped.
    pub batch_continuation: bool,
    /// Base-2 logarithm of the largest transfer in bytes.
    #[bits(5)]
    pub max_transfer_shift: u8,
    /// Base-2 logarithm of the largest batch in descriptors.
    #[bits(4)]
    pub max_batch_shift: u8,
    /// Interrupt message storage, in units of 256 entries.
    #[bits(6)]
    pub ims_blocks: u8,
    /// Software may write the configuration registers.
    pub configurable: bool,
    /// The event log drops entries when it is full instead of blocking.
    pub event_log_overflow: bool,
    #[bits(19)]
    __: u32,
    /// A batch of one descriptor is allowed.
    pub batch_of_one: bool,
    /// Limits of strict ordering, bits 54:53; version 3.
    #[bits(2)]
    pub strict_ordering_limits: u8,
    #[bits(9)]
    __: u16,
}

impl GenCap {
    /// Largest transfer in bytes.
    pub const fn max_transfer_bytes(self) -> u32 {
        1 << self.max_transfer_shift()
    }

    /// Largest batch in descriptors.
    pub const fn max_batch(self) -> u32 {
        1 << self.max_batch_shift()
    }

    /// Entries of the interrupt message storage.
    pub const fn ims_entries(self) -> u32 {
        self.ims_blocks() as u32 * 256
    }

    /// Size of an event log entry in bytes; 0 if there is no event log.
    pub const fn event_log_entry_bytes(self) -> u32 {
        match self.event_log_entry() {
            0 => 0,
            shift => 32 << shift,
        }
    }
}

/// WQCAP, offset 0x20: the work queues (spec 9.2.3).
#[bitfield(u64)]
#[derive(PartialEq, Eq, Hash)]
pub struct WqCap {
    /// Entries that all work queues share.
    pub total_entries: u16,
    /// Number of work queues.
    pub work_queues: u8,
    /// N, where a WQCFG takes 2^(N+5) bytes.
    #[bits(4)]
    pub config_shift: u8,
    #[bits(20)]
    __: u32,
    /// Shared mode is supported.
    pub shared_mode: bool,
    /// Dedicated mode is supported.
    pub dedicated_mode: bool,
    /// ATS can be disabled per work queue.
    pub ats_disable: bool,
    /// Priorities are supported.
    pub priority: bool,
    /// Occupancy can be read.
    pub occupancy: bool,
    /// Occupancy can interrupt.
    pub occupancy_interrupt: bool,
    /// Operations can be restricted per work queue.
    pub operation_config: bool,
    /// The page request service can be disabled per work queue.
    pub prs_disable: bool,
    #[bits(8)]
    __: u8,
}

impl WqCap {
    /// Distance between two WQCFG in bytes.
    pub const fn config_stride_bytes(self) -> u32 {
        32 << self.config_shift()
    }
}

/// GRPCAP, offset 0x30: the groups (spec 9.2.4).
#[bitfield(u64)]
#[derive(PartialEq, Eq, Hash)]
pub struct GroupCap {
    /// Number of groups.
    pub groups: u8,
    /// Read buffers that all engines share.
    pub read_buffers: u8,
    /// Read buffers can be reserved and limited per group.
    pub read_buffer_controls: bool,
    /// Read buffers can be limited globally.
    pub global_read_buffer_limit: bool,
    /// Work in progress can be limited per group; version 2.
    pub in_progress_limits: bool,
    /// Bandwidth can be limited per group; version 3.
    pub bandwidth_limits: bool,
    #[bits(44)]
    __: u64,
}

/// ENGCAP, offset 0x38: the engines (spec 9.2.5).
#[bitfield(u64)]
#[derive(PartialEq, Eq, Hash)]
pub struct EngineCap {
    /// Number of engines.
    pub engines: u8,
    /// Work descriptors that one engine has in progress at most; version 2, else 0.
    pub max_work_descriptors: u8,
    /// Batch descriptors that one engine has in progress at most; version 2, else 0.
    pub max_batch_descriptors: u8,
    #[bits(40)]
    __: u64,
}

/// OPCAP, offset 0x40: one bit for each operation, word 0 first (spec 9.2.6).
///
/// As text it is the kernel's bitmap: eight words of 32 bits in hexadecimal, highest first,
/// separated by commas. Text with fewer words leaves the upper ones 0.
#[derive(Copy, Clone, Default, PartialEq, Eq, Hash)]
pub struct OpCap(pub [u64; 4]);

impl OpCap {
    /// Operations that the architecture defines, 18 to 1E from version 3 on (spec Table 8-2).
    pub fn defined(version: u32) -> Self {
        let later = match version >= 0x300 {
            true => 0x7f00_0000,
            false => 0,
        };
        let known = Opcode::ALL.iter();
        known.fold(Self([later, 0, 0, 0]), |all, opcode| all.with(*opcode))
    }

    /// Whether the operation with this code is supported.
    pub const fn supports(&self, opcode: u8) -> bool {
        self.0[opcode as usize / 64] >> (opcode % 64) & 1 == 1
    }

    /// The same with one more operation.
    #[must_use]
    pub const fn with(mut self, opcode: Opcode) -> Self {
        let code = opcode as u8;
        self.0[code as usize / 64] |= 1 << (code % 64);
        self
    }

    /// Whether every operation of `other` is supported too.
    pub fn contains(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .all(|(have, want)| have & want == want)
    }

    /// The codes that are set, in ascending order.
    pub fn codes(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|&code| self.supports(code))
    }
}

impl fmt::Display for OpCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.0.iter().rev().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(
                f,
                "{separator}{:08x},{:08x}",
                word >> 32,
                word & 0xffff_ffff
            )?;
        }
        Ok(())
    }
}

impl fmt::Debug for OpCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpCap({self})")
    }
}

impl FromStr for OpCap {
    type Err = ParseOpCapError;

    fn from_str(text: &str) -> Result<Self, ParseOpCapError> {
        let mut words = [0_u64; 4];
        for (index, word) in text.trim().rsplit(',').enumerate() {
            let place = words
                .get_mut(index / 2)
                .ok_or(ParseOpCapError::TooManyWords)?;
            *place |= parse_word(word, index)? << (index % 2 * 32);
        }
        Ok(Self(words))
    }
}

/// Stricter than `from_str_radix`, which takes a sign.
fn parse_word(word: &str, index_from_right: usize) -> Result<u64, ParseOpCapError> {
    let malformed = ParseOpCapError::Word { index_from_right };
    if !(1..=8).contains(&word.len()) || !word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(malformed);
    }
    u64::from_str_radix(word, 16).map_err(|_| malformed)
}

/// A text that is no bitmap of operations.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ParseOpCapError {
    /// More than eight words.
    TooManyWords,
    /// A word is not 1 to 8 hexadecimal digits.
    Word {
        /// Which word, 0 being the last one of the text.
        index_from_right: usize,
    },
}

impl fmt::Display for ParseOpCapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyWords => f.write_str("more than eight words of 32 bits"),
            Self::Word { index_from_right } => write!(
                f,
                "word {index_from_right} from the right is not 1 to 8 hexadecimal digits"
            ),
        }
    }
}

impl core::error::Error for ParseOpCapError {}

#[cfg(test)]
mod tests;
