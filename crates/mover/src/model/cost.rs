//! What a descriptor costs an engine, remembered: workloads repeat themselves.

use std::ops::Range;

use dray_clock::Duration;
use dray_ops::{BlockSize, DIF_BYTES};
use dray_platform::{
    Cache, EnginePipe, LINE_BYTES, MemoryMap, NodeId, Place, PlatformFile, Requester, Service,
    Stream, Transfer,
};
use dray_spec::{Descriptor, Flags, Opcode};

use super::memory::Memory;

/// Flags with which memory and result decide how a descriptor ends: checks of the result, and
/// whatever the operation has of its own.
const RESULT_DEPENDS: Flags = Flags::CHECK_RESULT.union(Flags::from_bits(0x00ff_0000));

/// Operations whose record says more than that they ended.
fn opcode_depends(opcode: Opcode) -> bool {
    let code = opcode as u8;
    matches!(
        opcode,
        Opcode::CreateDelta | Opcode::ApplyDelta | Opcode::TranslationFetch
    ) || (Opcode::DifCheck as u8..=Opcode::DixGenerate as u8).contains(&code)
}

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
    /// Flags and size of the last descriptor, if every one like it ends as well as it did.
    safe: Option<(u32, u32)>,
    /// Where descriptors like it may have their operands, until the next eviction.
    spans: [Range<u64>; 4],
    evictions: u64,
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

    /// Whether a descriptor that moves no bytes succeeds as the last one like it did. It then
    /// takes the place of that one.
    #[inline]
    pub(super) fn repeats(&mut self, opcode: Opcode, d: &Descriptor, map: &Memory) -> bool {
        let entry = &mut self.entries[opcode as usize % ENTRIES];
        if entry.safe != Some((d.flags_opcode, d.size)) || entry.evictions != map.evictions() {
            return false;
        }
        let size = u64::from(d.size);
        let operands = operands(opcode, d, size);
        let spans = &entry.spans;
        let within = |n: usize, _: &Stream, address: u64| {
            let span = &spans[n];
            address >= span.start && address < span.end && size <= span.end - address
        };
        follow(&mut entry.transfer, &operands, within)
    }

    /// Learns what the first `bytes` bytes of a descriptor move. `success`: all of them, and
    /// nothing but memory that is not there could have prevented it.
    pub(super) fn learn(
        &mut self,
        opcode: Opcode,
        d: &Descriptor,
        bytes: u64,
        success: bool,
        map: &Memory,
    ) {
        let entry = &mut self.entries[opcode as usize % ENTRIES];
        let operands = operands(opcode, d, bytes);
        let cache_control = d.flags().contains(Flags::CACHE_CONTROL);
        let written = written(opcode, d, bytes);
        let alike = entry.opcode == Some(opcode)
            && entry.bytes == bytes
            && entry.transfer.writes[0].is_none_or(|stream| stream.bytes == written)
            && entry.transfer.cache_control == cache_control
            && follow(&mut entry.transfer, &operands, |_, stream, address| {
                stream.place == place(map, address)
            });
        if !alike {
            *entry = Entry {
                opcode: Some(opcode),
                bytes,
                transfer: transfer(&operands, bytes, written, cache_control, map),
                ..Entry::default()
            };
        }
        let plain = !d.flags().intersects(RESULT_DEPENDS) && !opcode_depends(opcode);
        entry.safe = (success && plain).then_some((d.flags_opcode, d.size));
        entry.evictions = map.evictions();
        for (span, address) in entry.spans.iter_mut().zip(operands) {
            *span = address.map_or(0..0, |address| map.around(address));
        }
    }

    /// The cost of the last descriptor of this operation, whose translations are booked.
    #[inline]
    pub(super) fn book(
        &mut self,
        opcode: Opcode,
        completion_addr: u64,
        platform: &PlatformFile,
        pipe: &mut EnginePipe,
    ) -> CostId {
        let index = opcode as usize % ENTRIES;
        let entry = &mut self.entries[index];
        let translated = pipe.translate(&entry.transfer, completion_addr);
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

    #[inline]
    pub(super) fn get(&self, id: CostId) -> Option<&Cost> {
        self.entries[usize::from(id.entry)].costs[usize::from(id.translated)].as_ref()
    }
}

/// What `bytes` bytes of a descriptor move.
pub(super) fn moved(opcode: Opcode, d: &Descriptor, bytes: u64, map: &MemoryMap) -> Transfer {
    let cache_control = d.flags().contains(Flags::CACHE_CONTROL);
    let written = written(opcode, d, bytes);
    transfer(
        &operands(opcode, d, bytes),
        bytes,
        written,
        cache_control,
        map,
    )
}

/// Bytes that go to each destination while `bytes` come from each source.
fn written(opcode: Opcode, d: &Descriptor, bytes: u64) -> u64 {
    let block = BlockSize::from_bits(d.dif_flags());
    let (data, protected) = (block.bytes() as u64, block.protected_bytes() as u64);
    match opcode {
        Opcode::DifInsert => bytes / data * protected,
        Opcode::DifStrip => bytes / protected * data,
        Opcode::DixGenerate => bytes / data * DIF_BYTES as u64,
        _ => bytes,
    }
}

/// Addresses of two sources, then of two destinations.
type Operands = [Option<u64>; 4];

#[inline]
fn operands(opcode: Opcode, d: &Descriptor, bytes: u64) -> Operands {
    let (a, b) = (Some(d.address1), Some(d.address2));
    match opcode {
        _ if bytes == 0 => [None; 4],
        Opcode::Memmove
        | Opcode::CopyCrc
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate => [a, None, b, None],
        Opcode::Fill => [None, None, b, None],
        // The few bytes that a delta record has are not counted.
        Opcode::Compare | Opcode::CreateDelta => [a, b, None, None],
        Opcode::ComparePattern | Opcode::CrcGenerate | Opcode::DifCheck => [a, None, None, None],
        Opcode::Dualcast => [a, None, b, Some(d.destination2())],
        _ => [None; 4],
    }
}

fn transfer(
    operands: &Operands,
    bytes: u64,
    written: u64,
    cache_control: bool,
    map: &MemoryMap,
) -> Transfer {
    let stream = |address: Option<u64>, bytes| {
        address.map(|address| Stream {
            address,
            bytes,
            place: place(map, address),
        })
    };
    let [src, src2, dst, dst2] = *operands;
    let (src, src2) = (stream(src, bytes), stream(src2, bytes));
    let (dst, dst2) = (stream(dst, written), stream(dst2, written));
    Transfer {
        reads: [src, src2],
        writes: [dst, dst2],
        cache_control,
    }
}

/// Moves a transfer of the same operation to other addresses. False if these lie otherwise in
/// their lines, or are not `alike`, and the transfer is then worth nothing.
#[inline]
fn follow(
    transfer: &mut Transfer,
    operands: &Operands,
    alike: impl Fn(usize, &Stream, u64) -> bool,
) -> bool {
    let streams = transfer.reads.iter_mut().chain(&mut transfer.writes);
    for (n, (stream, address)) in streams.zip(operands).enumerate() {
        match (stream, *address) {
            (None, None) => {}
            (Some(stream), Some(address))
                if (stream.address ^ address) % LINE_BYTES == 0 && alike(n, stream, address) =>
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
