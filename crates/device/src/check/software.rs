//! What software that executes descriptors in a device's place refuses.

use dray_spec::{
    Descriptor, Flags, OpCap, Opcode, Status, allowed_flags, invalid_flags, reserved_bytes,
};

use super::operands::check_operands;
use super::{Rejection, refuse_if};
use crate::rule::{any, has_bytes, words};

/// Operations that software can execute in a device's place.
pub const SOFTWARE_OPERATIONS: OpCap = OpCap([0, 0, 0, 0])
    .with(Opcode::Noop)
    .with(Opcode::Memmove)
    .with(Opcode::Fill)
    .with(Opcode::Compare)
    .with(Opcode::ComparePattern)
    .with(Opcode::CreateDelta)
    .with(Opcode::ApplyDelta)
    .with(Opcode::Dualcast)
    .with(Opcode::CrcGenerate)
    .with(Opcode::CopyCrc)
    .with(Opcode::DifCheck)
    .with(Opcode::DifInsert)
    .with(Opcode::DifStrip)
    .with(Opcode::DifUpdate)
    .with(Opcode::DixGenerate)
    .with(Opcode::CacheFlush);

/// Software has a place for each completion record, whether the descriptor names one or not.
const COMPLETES: Flags = Flags::COMPLETION_ADDRESS_VALID.union(Flags::REQUEST_COMPLETION_RECORD);
/// Flags of a descriptor for software that need no other flag and free no reserved byte.
pub const PLAIN_FLAGS: Flags = Flags::FENCE
    .union(Flags::BLOCK_ON_FAULT)
    .union(Flags::CACHE_CONTROL)
    .union(COMPLETES);
/// Bytes 8 to 15: the completion address, which does not count.
const COMPLETION_ADDRESS: u64 = 0xff00;

/// What can be told of a usual descriptor of one operation at once.
#[derive(Clone, Copy)]
struct Usual {
    opcode: Opcode,
    /// Bits that are 0: those of all flags but plain ones, and of reserved bytes.
    zero: [u64; 8],
}

/// By opcode.
static USUAL: [Option<Usual>; 64] = usual();

const fn usual() -> [Option<Usual>; 64] {
    let mut table = [None; 64];
    let mut n = 0;
    while n < Opcode::ALL.len() {
        let opcode = Opcode::ALL[n];
        if SOFTWARE_OPERATIONS.supports(opcode as u8) {
            let plain = PLAIN_FLAGS
                .intersection(allowed_flags(opcode))
                .union(COMPLETES);
            let mut zero = words(reserved(opcode, Flags::EMPTY));
            zero[0] = (0x00ff_ffff & !plain.bits() as u64) << 32;
            table[opcode as usize] = Some(Usual { opcode, zero });
        }
        n += 1;
    }
    table
}

/// Bytes that are 0, whatever the completion address is.
const fn reserved(opcode: Opcode, flags: Flags) -> u64 {
    reserved_bytes(opcode, flags) & !COMPLETION_ADDRESS
}

/// Checks a descriptor that software executes in a device's place, whatever the limits of a queue and
/// wherever its record goes. The opcode, if software can execute it.
///
/// # Errors
/// What a device answers (spec 5.4 to 5.6); [`Status::BAD_OPCODE`] for what only a device can do: batches,
/// drains, translation fetches, inter-domain operations.
#[inline]
pub fn check_software(d: &Descriptor) -> Result<Opcode, Rejection> {
    let opcode = match USUAL.get(usize::from(d.opcode_byte())) {
        Some(Some(usual)) if !any(d, &usual.zero) => usual.opcode,
        _ => check_unusual(d)?,
    };
    check_operands(opcode, d)?;
    Ok(opcode)
}

/// Opcode, flags and reserved bytes.
#[inline(never)]
fn check_unusual(d: &Descriptor) -> Result<Opcode, Rejection> {
    let opcode = d.opcode().map_err(|_| Status::BAD_OPCODE)?;
    let known = SOFTWARE_OPERATIONS.supports(opcode as u8);
    refuse_if(!known, Status::BAD_OPCODE)?;
    let flags = d.flags();
    let invalid = invalid_flags(opcode, flags.union(COMPLETES));
    if !invalid.is_empty() {
        return Err(Rejection {
            status: Status::INVALID_FLAGS,
            flags: invalid,
        });
    }
    refuse_if(
        has_bytes(d, reserved(opcode, flags)),
        Status::NONZERO_RESERVED,
    )?;
    Ok(opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_refuses_is_refused() {
        let copy = Descriptor::memmove(0x1000, 0x2000, 64);
        assert_eq!(check_software(&copy), Ok(Opcode::Memmove));
        let steered = copy.with_flags(Flags::CACHE_CONTROL | Flags::CACHE_CONTROL_3);
        let refused = check_software(&steered).expect_err("cache control 101 is reserved");
        assert_eq!(refused.status, Status::INVALID_FLAGS);
        assert!(refused.flags.contains(Flags::CACHE_CONTROL_3));
        let reserved = Descriptor {
            reserved: 1,
            ..copy
        };
        let mut seeded = Descriptor::crc(0x1000, 64, 7).with_crc_seed_address(0x2000);
        seeded.operation[0] = 7;
        for (descriptor, status) in [
            (reserved, Status::NONZERO_RESERVED),
            // Two seeds.
            (seeded, Status::NONZERO_RESERVED),
            // Only a device has it.
            (
                Descriptor::translation_fetch(0x1000, 4096),
                Status::BAD_OPCODE,
            ),
            (
                Descriptor::memmove(0x1000, 0x2000, 0),
                Status::TRANSFER_SIZE,
            ),
        ] {
            assert_eq!(check_software(&descriptor), Err(status.into()));
        }
    }

    #[test]
    fn where_the_record_goes_does_not_count() {
        let compare = Descriptor::compare(0x1000, 0x2000, 64);
        for flags in [Flags::EMPTY, COMPLETES] {
            let anywhere = Descriptor {
                completion_addr: 0x1001,
                ..compare.with_flags(flags)
            };
            assert_eq!(check_software(&anywhere), Ok(Opcode::Compare));
        }
    }
}
