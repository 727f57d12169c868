//! What parts can do, and the known ones.

use dray_spec::{GenCap, OpCap, Opcode};

/// What a device can do, as its capability registers say (spec 9.2.2 to 9.2.7).
///
/// Nothing of this is hard-coded to one part: it comes from the profile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// VERSION register: 0x100 is 1.0, 0x200 is 2.0.
    pub version: u32,
    /// GENCAP register, raw.
    pub gen_cap: u64,
    /// OPCAP register: bit n of the 256-bit map says that opcode n is supported;
    /// word 0 holds opcodes 0 to 63.
    pub op_cap: [u64; 4],
    /// IDCAP register, raw; 0 without inter-domain operations (spec 9.2.18).
    pub id_cap: u64,
    /// Number of groups.
    pub max_groups: u16,
    /// Number of work queues.
    pub max_work_queues: u16,
    /// Number of engines.
    pub max_engines: u16,
    /// Work queue entries of the whole device.
    pub work_queue_size: u16,
    /// Read buffers of the whole device.
    pub max_read_buffers: u16,
    /// Largest batch, in descriptors.
    pub max_batch_size: u32,
    /// Largest transfer, in bytes.
    pub max_transfer_size: u64,
}

impl Capabilities {
    /// DSA 1.0 of Sapphire Rapids, as a published `accel-config list` prints it.
    pub const fn sapphire_rapids() -> Capabilities {
        Capabilities {
            version: 0x100,
            gen_cap: 0x40_915f_0107,
            op_cap: [0x1_003f_03ff, 0, 0, 0],
            id_cap: 0,
            max_groups: 4,
            max_work_queues: 8,
            max_engines: 4,
            work_queue_size: 128,
            max_read_buffers: 96,
            max_batch_size: 1024,
            max_transfer_size: 1 << 31,
        }
    }

    /// DSA 2.0: a preset, not a dump of a device.
    ///
    /// Entries are published (256); GENCAP and OPCAP are those of version 1 with what revision 2.0
    /// adds (spec appendix F), without the inter-domain operations and the event log; the other
    /// counts are those of version 1.
    pub fn version_2() -> Capabilities {
        let one = Capabilities::sapphire_rapids();
        let gen_cap = GenCap::from_bits(one.gen_cap)
            .with_command_capability(true)
            .with_drain_readback(true)
            .with_fill_pattern_16(true)
            .with_crc64(true)
            .with_fault_info(true)
            .with_batch_continuation(true);
        let op_cap = OpCap(one.op_cap)
            .with(Opcode::TranslationFetch)
            .with(Opcode::DixGenerate);
        Capabilities {
            version: 0x200,
            gen_cap: gen_cap.into_bits(),
            op_cap: op_cap.0,
            work_queue_size: 256,
            ..one
        }
    }
}
