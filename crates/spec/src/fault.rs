//! Which operand of a descriptor faulted.

use bitfield_struct::bitfield;

/// Fault info, byte 2 of a completion record; version 2, GENCAP bit 12 (spec 8.2).
#[bitfield(u8)]
#[derive(PartialEq, Eq, Hash)]
pub struct FaultInfo {
    /// The fault address is not the true one.
    pub address_masked: bool,
    /// Which operand faulted.
    #[bits(3)]
    pub operand: FaultOperand,
    #[bits(4)]
    __: u8,
}

/// An operand, as fault info, SWERROR and the event log number them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FaultOperand {
    /// Not known.
    #[default]
    Unknown = 0,
    /// Source, source 1, descriptor list, delta record to apply, readback address 1, region.
    Source = 1,
    /// Source 2, CRC seed, readback address 2.
    Source2 = 2,
    /// Destination, destination 1, delta record to create.
    Destination = 3,
    /// Destination 2.
    Destination2 = 4,
    /// Completion record.
    CompletionRecord = 5,
    /// List of scattered buffers; version 3.
    ScatterGatherList = 6,
    /// Not defined.
    Reserved = 7,
}

impl FaultOperand {
    const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Source,
        Self::Source2,
        Self::Destination,
        Self::Destination2,
        Self::CompletionRecord,
        Self::ScatterGatherList,
        Self::Reserved,
    ];

    /// The operand with this number; only bits 2:0 count.
    pub const fn from_bits(bits: u8) -> Self {
        Self::ALL[(bits & 7) as usize]
    }

    /// The number of the operand.
    pub const fn into_bits(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operand_is_in_bits_3_to_1() {
        for (number, operand) in (0..).zip(FaultOperand::ALL) {
            assert_eq!(operand.into_bits(), number);
            let info = FaultInfo::new().with_operand(operand);
            assert_eq!(info.into_bits(), number << 1);
            assert_eq!(info.with_address_masked(true).into_bits(), number << 1 | 1);
            assert_eq!(FaultInfo::from_bits(number << 1).operand(), operand);
        }
    }
}
