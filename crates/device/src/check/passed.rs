//! The kind of descriptor that passed last: workloads repeat themselves.

use dray_spec::{Descriptor, Flags, Opcode};

use crate::rule::{Rule, any};

/// Descriptors that pass as the last one did, wherever their operands lie.
#[derive(Debug, Clone)]
pub(super) struct Passed {
    pub(super) opcode: Opcode,
    flags_opcode: u32,
    size: u32,
    privileged: bool,
    member: bool,
    /// Bits that are 0 in one that passes.
    zero: [u64; 8],
}

impl Passed {
    /// Those like `d`, which has passed by `rule`.
    pub(super) fn like(d: &Descriptor, rule: &Rule, privileged: bool, member: bool) -> Passed {
        let flags = d.flags();
        let mut zero = rule.reserved_bits(flags);
        if flags.contains(Flags::COMPLETION_ADDRESS_VALID) {
            // The second word, aligned to 32 bytes.
            zero[1] |= 31;
        }
        Passed {
            opcode: rule.opcode,
            flags_opcode: d.flags_opcode,
            size: d.size,
            privileged,
            member,
            zero,
        }
    }

    #[inline]
    pub(super) fn has(&self, d: &Descriptor, privileged: bool, member: bool) -> bool {
        self.flags_opcode == d.flags_opcode
            && self.size == d.size
            && self.privileged == privileged
            && self.member == member
            && !any(d, &self.zero)
    }
}
