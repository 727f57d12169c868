//! Status 0x1e: traffic classes that no virtual channel carries (spec 5.4).

use dray_spec::{Flags, Opcode, allowed_flags};

use crate::{DeviceConfig, WorkQueueConfig};

const SELECTORS: [Flags; 3] = [
    Flags::ADDRESS1_TC_SELECTOR,
    Flags::ADDRESS2_TC_SELECTOR,
    Flags::ADDRESS3_TC_SELECTOR,
];

/// Which of a group's two traffic classes are carried.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrafficClasses {
    a: bool,
    b: bool,
}

impl TrafficClasses {
    pub(super) fn new(device: &DeviceConfig, queue: &WorkQueueConfig) -> TrafficClasses {
        let group = device.groups.iter().find(|group| group.id == queue.group);
        let [a, b] = group.map_or([0; 2], |group| group.traffic_classes);
        let carried = |class| 1_u8.checked_shl(class).unwrap_or(0) & device.pci.traffic_classes;
        TrafficClasses {
            a: carried(a.into()) != 0,
            b: carried(b.into()) != 0,
        }
    }

    /// Whether an address of the operation, or that of its record, selects a class that is not
    /// carried.
    #[inline]
    pub(super) fn refuse(self, opcode: Opcode, flags: Flags) -> bool {
        !(self.a && self.b) && self.find(opcode, flags)
    }

    pub(super) fn refuse_completion(self, flags: Flags) -> bool {
        flags.contains(Flags::COMPLETION_ADDRESS_VALID)
            && !self.carries(flags.contains(Flags::COMPLETION_TC_SELECTOR))
    }

    #[cold]
    fn find(self, opcode: Opcode, flags: Flags) -> bool {
        let used = used_selectors(opcode, flags);
        let mut addresses = SELECTORS.iter().filter(|s| used.contains(**s));
        addresses.any(|s| !self.carries(flags.contains(*s))) || self.refuse_completion(flags)
    }

    fn carries(self, second: bool) -> bool {
        match second {
            true => self.b,
            false => self.a,
        }
    }
}

/// Selectors of addresses that the descriptor has.
fn used_selectors(opcode: Opcode, flags: Flags) -> Flags {
    let absent = |flag: Flags, selector: Flags| match flags.contains(flag) {
        true => Flags::EMPTY,
        false => selector,
    };
    let absent = match opcode {
        Opcode::Drain => absent(Flags::DRAIN_READBACK1_VALID, SELECTORS[0])
            .union(absent(Flags::DRAIN_READBACK2_VALID, SELECTORS[1])),
        Opcode::CrcGenerate | Opcode::CopyCrc => absent(Flags::CRC_READ_SEED, SELECTORS[2]),
        _ => Flags::EMPTY,
    };
    allowed_flags(opcode).without(absent)
}
