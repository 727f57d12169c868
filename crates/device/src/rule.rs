//! What each operation may and must have, on one work queue.

use dray_spec::{
    Descriptor, Flags, GenCap, OpCap, Opcode, RequiredFlags, allowed_flags, invalid_flags,
    required_flags, reserved_bytes,
};
use zerocopy::transmute_ref;

use crate::{DeviceConfig, WorkQueueConfig};

/// One more than the highest opcode.
const CODES: usize = Opcode::InterDomainComparePattern as usize + 1;

/// Flags that mean something with a completion address only (spec Table 5-4).
const ADDRESSED: Flags = Flags::REQUEST_COMPLETION_RECORD.union(Flags::COMPLETION_TC_SELECTOR);
/// Flags 23:16, which mean something else for each operation.
const OPERATION_SPECIFIC: Flags = Flags::from_bits(0x00ff_0000);

/// The rules of one work queue, by opcode.
#[derive(Debug, Clone)]
pub(crate) struct Rules([Option<Rule>; CODES]);

/// What one operation may and must have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) opcode: Opcode,
    /// Not in a batch (spec 5.4).
    outside_only: bool,
    /// Flags that are refused, whatever the others are.
    forbidden: Flags,
    /// Flags that are refused unless the descriptor is privileged.
    unprivileged: Flags,
    /// Flags that are refused unless another one is there.
    dependent: Flags,
    /// Cache control 3 is refused unless the destination is read back (spec Table 8-4, 100).
    read_back_only: bool,
    required: RequiredFlags,
    /// Bits that are 0, as eight words, where no operation-specific flag frees some and completion
    /// address and interrupt handle are in use.
    reserved: [u64; 8],
}

impl Rules {
    /// What the device can do (OPCAP), as far as the queue lets it through (WQ OPCFG).
    pub(crate) fn new(device: &DeviceConfig, queue: &WorkQueueConfig) -> Rules {
        let device_has = OpCap(device.capabilities.op_cap);
        let queue_has = OpCap(queue.op_config);
        let translates = device.pci.ats && !queue.ats_disable;
        let mut rules = [None; CODES];
        for &opcode in Opcode::ALL {
            let code = opcode as u8;
            let possible = opcode != Opcode::TranslationFetch || translates;
            if possible && device_has.supports(code) && queue_has.supports(code) {
                rules[usize::from(code)] = Some(Rule::new(opcode, device, queue));
            }
        }
        Rules(rules)
    }

    /// The rule of an opcode that the device executes where the descriptor stands.
    #[inline]
    pub(crate) fn get(&self, code: u8, member: bool) -> Option<&Rule> {
        let rule = self.0.get(usize::from(code))?.as_ref()?;
        (!member || !rule.outside_only).then_some(rule)
    }
}

impl Rule {
    fn new(opcode: Opcode, device: &DeviceConfig, queue: &WorkQueueConfig) -> Rule {
        let allowed = allowed_flags(opcode);
        // Those that are refused alone, of those that are allowed.
        let dependent = (0..24)
            .map(|bit| Flags::from_bits(1 << bit))
            .filter(|flag| allowed.contains(*flag) && !ADDRESSED.contains(*flag))
            .filter(|flag| !invalid_flags(opcode, *flag).is_empty())
            .fold(Flags::CACHE_CONTROL_3, Flags::union);
        let base = Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_INTERRUPT;
        Rule {
            opcode,
            outside_only: matches!(opcode, Opcode::Batch | Opcode::Drain | Opcode::UpdateWindow),
            forbidden: Flags::from_bits(!allowed.bits()).union(unsupported(opcode, device, queue)),
            unprivileged: match device.user_interrupts || queue.pasid.is_none() {
                true => Flags::EMPTY,
                false => Flags::REQUEST_COMPLETION_INTERRUPT,
            },
            dependent,
            read_back_only: !GenCap::from(device.capabilities.gen_cap).durable_write(),
            required: required_flags(opcode),
            reserved: words(reserved_bytes(opcode, base)),
        }
    }

    /// The flags that are wrong, or missing; empty if there are none.
    #[inline]
    pub(crate) fn invalid_flags(&self, flags: Flags, privileged: bool, member: bool) -> Flags {
        let fence = match member {
            true => Flags::EMPTY,
            false => Flags::FENCE,
        };
        let unprivileged = match privileged {
            true => Flags::EMPTY,
            false => self.unprivileged,
        };
        let forbidden = self.forbidden.union(fence).union(unprivileged);
        let addressed = flags.contains(Flags::COMPLETION_ADDRESS_VALID);
        let usual = !flags.intersects(forbidden.union(self.dependent))
            && (addressed || !flags.intersects(ADDRESSED));
        match usual && self.required.met_by(flags) {
            true => Flags::EMPTY,
            false => self.find_invalid_flags(flags, forbidden),
        }
    }

    #[cold]
    fn find_invalid_flags(&self, flags: Flags, forbidden: Flags) -> Flags {
        let durable = self.read_back_only && !flags.contains(Flags::DESTINATION_READBACK);
        let forbidden = match durable {
            true => forbidden.union(Flags::CACHE_CONTROL_3),
            false => forbidden,
        };
        let invalid = flags
            .intersection(forbidden)
            .union(invalid_flags(self.opcode, flags));
        if invalid.is_empty() && !self.required.met_by(flags) {
            let any = match flags.intersects(self.required.any) {
                true => Flags::EMPTY,
                false => self.required.any,
            };
            return self.required.all.without(flags).union(any);
        }
        invalid
    }

    /// Bits that are 0 beside these flags.
    pub(crate) fn reserved_bits(&self, flags: Flags) -> [u64; 8] {
        words(reserved_bytes(self.opcode, flags))
    }

    /// Whether a reserved byte is not 0.
    #[inline]
    pub(crate) fn has_reserved_bytes(&self, d: &Descriptor, flags: Flags) -> bool {
        if flags.intersects(OPERATION_SPECIFIC) {
            return has_bytes(d, reserved_bytes(self.opcode, flags));
        }
        let address = flags.contains(Flags::COMPLETION_ADDRESS_VALID) || d.completion_addr == 0;
        let handle = flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT) || d.interrupt_handle == 0;
        !address || !handle || any(d, &self.reserved)
    }
}

/// Flags that the operation has but the device or the queue has not.
fn unsupported(opcode: Opcode, device: &DeviceConfig, queue: &WorkQueueConfig) -> Flags {
    let cap = GenCap::from(device.capabilities.gen_cap);
    let id_cap = device.capabilities.id_cap;
    let mut flags = Flags::EMPTY;
    let mut needs = |capable: bool, flag: Flags| {
        if !capable {
            flags |= flag;
        }
    };
    let block_on_fault = queue.block_on_fault && cap.block_on_fault();
    needs(block_on_fault, Flags::BLOCK_ON_FAULT);
    needs(cap.cache_control_memory(), Flags::CACHE_CONTROL);
    let version_3 = device.capabilities.version >= 0x300;
    needs(version_3, Flags::CACHE_CONTROL_3);
    needs(cap.destination_readback(), Flags::DESTINATION_READBACK);
    // Destinations are memory here, never a peer device (spec 9.2.2, GENCAP bits 53 and 54).
    let ordered = cap.strict_ordering_limits() & 1 == 0;
    needs(ordered, Flags::STRICT_ORDERING);
    match opcode {
        Opcode::Batch => needs(cap.batch_continuation(), Flags::BATCH_ERROR),
        Opcode::Drain => needs(
            cap.drain_readback(),
            Flags::DRAIN_READBACK1_VALID | Flags::DRAIN_READBACK2_VALID,
        ),
        Opcode::Fill | Opcode::InterDomainFill => {
            needs(cap.fill_pattern_16(), Flags::FILL_PATTERN_16);
        }
        Opcode::CrcGenerate | Opcode::CopyCrc => needs(cap.crc64(), Flags::CRC_64),
        Opcode::TranslationFetch => needs(
            cap.translation_fetch_stride(),
            Flags::TRANSLATION_FETCH_USE_STRIDE,
        ),
        Opcode::UpdateWindow => needs(
            id_cap & IDCAP_SUPPRESS_DRAIN != 0,
            Flags::UPDATE_WINDOW_SUPPRESS_DRAIN,
        ),
        _ => {}
    }
    flags
}

/// IDCAP bit 25: an update of a window need not drain (spec 9.2.18).
const IDCAP_SUPPRESS_DRAIN: u64 = 1 << 25;

/// Bit n of `bytes` becomes byte n, all ones.
#[inline]
pub(crate) const fn words(bytes: u64) -> [u64; 8] {
    let mut words = [0; 8];
    let mut n = 0;
    while n < 8 {
        words[n] = spread((bytes >> (8 * n)) as u8);
        n += 1;
    }
    words
}

/// Eight bits as eight bytes of 0 or 0xff.
#[inline]
const fn spread(bits: u8) -> u64 {
    // Each bit to the lowest bit of its byte.
    let bits = bits as u64;
    let bits = (bits | bits << 28) & 0x0000_000f_0000_000f;
    let bits = (bits | bits << 14) & 0x0003_0003_0003_0003;
    let bits = (bits | bits << 7) & 0x0101_0101_0101_0101;
    bits * 0xff
}

/// Whether one of the bits of `mask` is set in the descriptor.
#[inline]
pub(crate) fn any(d: &Descriptor, mask: &[u64; 8]) -> bool {
    let words: &[u64; 8] = transmute_ref!(d);
    let both = words.iter().zip(mask).map(|(word, mask)| word & mask);
    both.fold(0, |found, bits| found | bits) != 0
}

/// Whether one of the descriptor's bytes that `bytes` names, bit by bit, is not 0.
#[inline]
pub(crate) fn has_bytes(d: &Descriptor, bytes: u64) -> bool {
    any(d, &words(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn bits_become_bytes() {
        for bits in 0..=u8::MAX {
            let bytes: [u8; 8] = std::array::from_fn(|n| 0xff * (bits >> n & 1));
            assert_eq!(spread(bits), u64::from_le_bytes(bytes), "{bits:#x}");
        }
    }

    #[test]
    fn reserved_bytes_are_found_one_by_one() {
        for n in 0..64 {
            let mut d = Descriptor::default();
            d.as_mut_bytes()[n] = 1;
            for byte in 0..64 {
                assert_eq!(has_bytes(&d, 1 << byte), byte == n, "{n} {byte}");
            }
        }
    }
}
