//! What a descriptor costs an engine, remembered: workloads repeat themselves.

use dray_clock::Duration;
use dray_platform::{
    Cache, EnginePipe, LINE_BYTES, MemoryMap, NodeId, Place, PlatformFile, Requester, Service,
    Stream, Transfer,
};
use dray_spec::{Descriptor, Flags, Opcode};

/// Operations that are remembered at once; opcodes that are alike in their lower bits displace
/// each other.
const ENTRIES: usize = 8;

/// The costs of one engine.
#[derive(Debug)]
pub(super) struct Costs {
    requester: Requester,
    entries: [Entry; ENTRIES],
}

/// Where a cost is; valid until the engine works out the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostId {
    entry: u8,
    translated: bool,
}

/// What a descriptor costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) service: Service,
    /// Time to move its data with nobody else about.
    pub(super) alone: Duration,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    opcode: Option<Opcode>,
    bytes: u64,
    /// The last descriptor's. Of addresses, only where they lie within a line counts.
    transfer: Transfer,
    /// With a translation that misses, and with one that hits.
    costs: [Option<Cost>; 2],
}

impl Costs {
    pub(super) fn new(device: u16, buffers: u64, alone: bool) -> Costs {
        Costs {
            requester: Requester {
                device,
                buffers,
                translated: false,
                alone,
            },
            entries: Default::default(),
        }
    }

    /// The cost of the first `bytes` bytes of a descriptor, whose translations are booked.
    pub(super) fn find(
        &mut self,
        opcode: Opcode,
        d: &Descriptor,
        bytes: u64,
        map: &MemoryMap,
        platform: &PlatformFile,
        pipe: &mut EnginePipe,
    ) -> CostId {
        let index = opcode as usize % ENTRIES;
        let entry = &mut self.entries[index];
        let operands = operands(opcode, d, bytes);
        let cache_control = d.flags().contains(Flags::CACHE_CONTROL);
        let alike = entry.opcode == Some(opcode)
            && entry.bytes == bytes
            && entry.transfer.cache_control == cache_control
            && follow(&mut entry.transfer, &operands, map);
        if !alike {
            *entry = Entry {
                opcode: Some(opcode),
                bytes,
                transfer: transfer(&operands, bytes, cache_control, map),
                costs: [None; 2],
            };
        }
        let translated = pipe.translate(&entry.transfer, d.completion_addr);
        let cost = &mut entry.costs[usize::from(translated)];
        if cost.is_none() {
            let requester = Requester {
                translated,
                ..self.requester
            };
            let service = platform.service(requester, &entry.transfer);
            let alone = Duration((service.lines * service.demand.alone_fs()).div_ceil(1000));
            *cost = Some(Cost { service, alone });
        }
        CostId {
            entry: index as u8,
            translated,
        }
    }

    pub(super) fn get(&self, id: CostId) -> Option<&Cost> {
        self.entries[usize::from(id.entry)].costs[usize::from(id.translated)].as_ref()
    }
}

/// What `bytes` bytes of a descriptor move.
pub(super) fn moved(opcode: Opcode, d: &Descriptor, bytes: u64, map: &MemoryMap) -> Transfer {
    let cache_control = d.flags().contains(Flags::CACHE_CONTROL);
    transfer(&operands(opcode, d, bytes), bytes, cache_control, map)
}

/// Addresses of two sources and two destinations.
type Operands = [[Option<u64>; 2]; 2];

#[inline]
fn operands(opcode: Opcode, d: &Descriptor, bytes: u64) -> Operands {
    let (a, b) = (Some(d.address1), Some(d.address2));
    match opcode {
        _ if bytes == 0 => [[None; 2]; 2],
        Opcode::Memmove | Opcode::CopyCrc => [[a, None], [b, None]],
        Opcode::Fill => [[None; 2], [b, None]],
        Opcode::Compare => [[a, b], [None; 2]],
        Opcode::ComparePattern | Opcode::CrcGenerate => [[a, None], [None; 2]],
        Opcode::Dualcast => [[a, None], [b, Some(d.destination2())]],
        _ => [[None; 2]; 2],
    }
}

fn transfer(
    [reads, writes]: &Operands,
    bytes: u64,
    cache_control: bool,
    map: &MemoryMap,
) -> Transfer {
    let stream = |address: u64| Stream {
        address,
        bytes,
        place: place(map, address),
    };
    Transfer {
        reads: reads.map(|address| address.map(stream)),
        writes: writes.map(|address| address.map(stream)),
        cache_control,
    }
}

/// Moves a transfer of the same operation to other addresses. False if these cost something else.
#[inline]
fn follow(transfer: &mut Transfer, [reads, writes]: &Operands, map: &MemoryMap) -> bool {
    let streams = transfer.reads.iter_mut().chain(&mut transfer.writes);
    for (stream, address) in streams.zip(reads.iter().chain(writes)) {
        match (stream, *address) {
            (None, None) => {}
            (Some(stream), Some(address))
                if (stream.address ^ address) % LINE_BYTES == 0
                    && stream.place == place(map, address) =>
            {
                stream.address = address;
            }
            _ => return false,
        }
    }
    true
}

/// Where an address lies. What is not mapped costs as if it were near: it faults anyway.
fn place(map: &MemoryMap, address: u64) -> Place {
    let nowhere = Place {
        node: NodeId(0),
        cache: Cache::Memory,
    };
    map.place(address).unwrap_or(nowhere)
}
