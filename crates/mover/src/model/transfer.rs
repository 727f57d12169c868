//! Which bytes a descriptor reads and writes, and where they lie.

use dray_platform::{Cache, MemoryMap, NodeId, Place, Stream, Transfer};
use dray_spec::{Descriptor, Flags, Opcode};

/// What the first `bytes` bytes of a descriptor move.
pub(crate) fn transfer(opcode: Opcode, d: &Descriptor, bytes: u64, map: &MemoryMap) -> Transfer {
    let at = |address: u64| {
        let nowhere = Place {
            node: NodeId(0),
            cache: Cache::Memory,
        };
        (bytes > 0).then(|| Stream {
            address,
            bytes,
            place: map.place(address).unwrap_or(nowhere),
        })
    };
    let (reads, writes) = match opcode {
        Opcode::Memmove | Opcode::CopyCrc => ([at(d.address1), None], [at(d.address2), None]),
        Opcode::Fill => ([None; 2], [at(d.address2), None]),
        Opcode::Compare => ([at(d.address1), at(d.address2)], [None; 2]),
        Opcode::ComparePattern | Opcode::CrcGenerate => ([at(d.address1), None], [None; 2]),
        Opcode::Dualcast => (
            [at(d.address1), None],
            [at(d.address2), at(d.destination2())],
        ),
        _ => ([None; 2], [None; 2]),
    };
    Transfer {
        reads,
        writes,
        cache_control: d.flags().contains(Flags::CACHE_CONTROL),
    }
}
