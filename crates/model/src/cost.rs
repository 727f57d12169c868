//! What a descriptor costs an engine, remembered: workloads repeat themselves.

use std::ops::Range;

use dray_clock::Duration;
use dray_device::{Payload, is_inter_domain};
use dray_ops::{BlockSize, DELTA_ENTRY_BYTES, DIF_BYTES};
use dray_platform::{
    Cache, EnginePipe, LINE_BYTES, MemoryLocation, MemoryMap, NodeId, Requester, Service, Stream,
    Transfer,
};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode};

use crate::memory::Memory;

/// Flags with which memory and result decide how a descriptor ends: checks of the result, and
/// whatever the operation has of its own.
const RESULT_DEPENDS: Flags = Flags::CHECK_RESULT.union(Flags::from_bits(0x00ff_0000));

/// Operations whose record says more than that they ended, or whose address spaces are looked up each time.
fn opcode_depends(opcode: Opcode) -> bool {
    let code = opcode as u8;
    matches!(
        opcode,
        Opcode::CreateDelta | Opcode::ApplyDelta | Opcode::TranslationFetch
    ) || (Opcode::DifCheck as u8..=Opcode::DixGenerate as u8).contains(&code)
        || is_inter_domain(opcode)
}

/// Operations that are remembered at once; opcodes that are alike in their lower bits displace
/// each other.
const ENTRIES: usize = 8;

/// Bytes of a word of a delta record.
const WORD: u64 = 8;

/// How much goes which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Volume {
    /// Bytes from each source.
    pub(crate) read: u64,
    /// Bytes to each destination.
    pub(crate) written: u64,
}

impl Volume {
    /// Of a descriptor that ended so.
    ///
    /// Nothing is published of delta records and of cache flush: that they take as long as a copy
    /// of as many lines is a guess. A delta record is read once and its words are written as if
    /// they lay side by side; with the payload skipped differences are not looked for, and creating
    /// fills the record that there is room for. A flushed region is written back whole, as if
    /// every line of it were dirty.
    pub(crate) fn of(
        opcode: Opcode,
        d: &Descriptor,
        record: &CompletionRecord,
        payload: Payload,
    ) -> Volume {
        let entry = DELTA_ENTRY_BYTES as u64;
        let entries = |bytes: u32| u64::from(bytes) / entry;
        let overflow = opcode == Opcode::CreateDelta && record.result == 2;
        let read = match record.status().is_success() && !overflow {
            true if opcode == Opcode::ApplyDelta => entries(d.delta_record_size()) * entry,
            true => u64::from(d.size),
            false => u64::from(record.bytes_completed),
        };
        let written = match opcode {
            Opcode::CreateDelta if payload == Payload::Skipped => {
                (read / WORD).min(entries(d.max_delta_size())) * entry
            }
            Opcode::CreateDelta => record.delta_record_size().into(),
            Opcode::ApplyDelta => read / entry * WORD,
            Opcode::DifInsert | Opcode::DifStrip | Opcode::DixGenerate => {
                dif_written(opcode, d, read)
            }
            _ => read,
        };
        Volume { read, written }
    }
}

/// Bytes that an operation on integrity fields writes for `len` bytes of source.
fn dif_written(opcode: Opcode, d: &Descriptor, len: u64) -> u64 {
    let block = BlockSize::from_bits(d.dif_flags());
    let (data, protected) = (block.bytes() as u64, block.protected_bytes() as u64);
    match opcode {
        Opcode::DifInsert => len / data * protected,
        Opcode::DifStrip => len / protected * data,
        _ => len / data * DIF_BYTES as u64,
    }
}

/// The costs of one engine.
#[derive(Debug)]
pub(crate) struct Costs {
    requester: Requester,
    entries: [Entry; ENTRIES],
}

/// Where a cost is; valid until the engine works out the next one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostId {
    entry: u8,
    translated: bool,
}

/// What a descriptor costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) service: Service,
    /// Time to move its data without other traffic.
    pub(crate) alone: Duration,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    opcode: Option<Opcode>,
    volume: Volume,
    /// That of a descriptor like the last one: of addresses, only where they lie within a line counts.
    transfer: Transfer,
    /// With a translation that misses, and with one that hits.
    costs: [Option<Cost>; 2],
    /// Flags and size of the last descriptor, if every one like it ends as well as it did.
    safe: Option<(u32, u32)>,
    /// The operands of the last descriptor, and how many there are.
    operands: [Operand; 4],
    count: usize,
    evictions: u64,
}

/// An operand of the last descriptor.
#[derive(Debug, Clone, Default)]
struct Operand {
    field: Field,
    /// Its place among those of a [`Transfer`].
    place: usize,
    address: u64,
    bytes: u64,
    /// Where descriptors like it may have it, until the next eviction.
    span: Range<u64>,
}

impl Operand {
    /// Whether `bytes` at `address` are as good as its own: in the same span, and at the same place in their line.
    #[inline]
    fn has(&self, address: u64, bytes: u64) -> bool {
        let Range { start, end } = self.span;
        (self.address ^ address).is_multiple_of(LINE_BYTES)
            && (start..end).contains(&address)
            && bytes <= end - address
    }
}

/// Where a descriptor has an address.
#[derive(Debug, Clone, Copy, Default)]
enum Field {
    /// Bytes 16 to 23.
    #[default]
    First,
    /// Bytes 24 to 31.
    Second,
    /// Bytes 40 to 47.
    Third,
}

impl Field {
    #[inline]
    fn of(self, d: &Descriptor) -> u64 {
        match self {
            Field::First => d.address1,
            Field::Second => d.address2,
            Field::Third => d.destination2(),
        }
    }
}

impl Costs {
    pub(crate) fn new(device: u16, buffers: u64, alone: bool) -> Costs {
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
    pub(crate) fn repeats(&mut self, opcode: Opcode, d: &Descriptor, map: &Memory) -> bool {
        let entry = &mut self.entries[opcode as usize % ENTRIES];
        if entry.safe != Some((d.flags_opcode, d.size)) || entry.evictions != map.evictions() {
            return false;
        }
        let size = u64::from(d.size);
        let operands = &mut entry.operands[..entry.count];
        if !operands.iter().all(|o| o.has(o.field.of(d), size)) {
            return false;
        }
        for operand in operands {
            operand.address = operand.field.of(d);
        }
        true
    }

    /// Records how many bytes a descriptor moves. `success`: it moves all of them, and only absent memory could
    /// have prevented that.
    pub(crate) fn learn(
        &mut self,
        opcode: Opcode,
        d: &Descriptor,
        volume: Volume,
        success: bool,
        map: &Memory,
    ) {
        let entry = &mut self.entries[opcode as usize % ENTRIES];
        let operands = operands(opcode, d, volume);
        let cache_control = d.flags().contains(Flags::CACHE_CONTROL);
        let readback = d.flags().contains(Flags::DESTINATION_READBACK);
        let alike = entry.opcode == Some(opcode)
            && entry.volume == volume
            && entry.transfer.cache_control == cache_control
            && entry.transfer.readback == readback
            && alike(&entry.transfer, &operands, map);
        if !alike {
            *entry = Entry {
                opcode: Some(opcode),
                volume,
                transfer: Transfer {
                    readback,
                    transforms: transforms(opcode),
                    ..transfer(&operands, volume, cache_control, map)
                },
                ..Entry::default()
            };
        }
        let plain = !d.flags().intersects(RESULT_DEPENDS) && !opcode_depends(opcode);
        entry.safe = (success && plain).then_some((d.flags_opcode, d.size));
        entry.evictions = map.evictions();
        entry.count = 0;
        let fields = fields(opcode).into_iter().zip(operands).enumerate();
        for (place, field) in fields {
            let (Some(field), Some(address)) = field else {
                continue;
            };
            entry.operands[entry.count] = Operand {
                field,
                place,
                address,
                bytes: if place < 2 {
                    volume.read
                } else {
                    volume.written
                },
                span: map.around(address),
            };
            entry.count += 1;
        }
    }

    /// The cost of the last descriptor of this operation, whose translations are booked. `service` is
    /// called for transfers that are not cached yet.
    #[inline]
    pub(crate) fn book(
        &mut self,
        opcode: Opcode,
        completion_addr: u64,
        service: impl FnOnce(Requester, &Transfer) -> Service,
        pipe: &mut EnginePipe,
    ) -> CostId {
        let index = opcode as usize % ENTRIES;
        let entry = &mut self.entries[index];
        let operands = entry.operands[..entry.count].iter();
        let pages = operands.map(|operand| (operand.place, operand.address, operand.bytes));
        let translated = pipe.translate(pages, completion_addr);
        let cost = &mut entry.costs[usize::from(translated)];
        if cost.is_none() {
            let requester = Requester {
                translated,
                ..self.requester
            };
            let service = service(requester, &entry.transfer);
            let alone = Duration((service.lines * service.demand.alone_fs()).div_ceil(1000));
            *cost = Some(Cost { service, alone });
        }
        CostId {
            entry: index as u8,
            translated,
        }
    }

    /// # Panics
    /// If the engine has worked out another one in its place.
    #[inline]
    pub(crate) fn get(&self, id: CostId) -> &Cost {
        let costs = &self.entries[usize::from(id.entry)].costs;
        let cost = costs[usize::from(id.translated)].as_ref();
        cost.expect("costs stay until the engine books another descriptor")
    }
}

/// What a descriptor moves.
pub(crate) fn moved(opcode: Opcode, d: &Descriptor, volume: Volume, map: &MemoryMap) -> Transfer {
    let cache_control = d.flags().contains(Flags::CACHE_CONTROL);
    Transfer {
        transforms: transforms(opcode),
        ..transfer(&operands(opcode, d, volume), volume, cache_control, map)
    }
}

/// Whether an engine computes over the data, and does not only move or compare it.
fn transforms(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::CrcGenerate | Opcode::CopyCrc | Opcode::CreateDelta | Opcode::ApplyDelta
    ) || (Opcode::DifCheck as u8..=Opcode::DixGenerate as u8).contains(&(opcode as u8))
}

/// Addresses of two sources, then of two destinations.
type Operands = [Option<u64>; 4];

/// Where a descriptor has them.
fn fields(opcode: Opcode) -> [Option<Field>; 4] {
    let (a, b, c) = (Some(Field::First), Some(Field::Second), Some(Field::Third));
    match opcode {
        Opcode::Memmove
        | Opcode::CopyCrc
        | Opcode::ApplyDelta
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate => [a, None, b, None],
        Opcode::Fill | Opcode::CacheFlush => [None, None, b, None],
        Opcode::Compare => [a, b, None, None],
        Opcode::CreateDelta => [a, b, c, None],
        Opcode::ComparePattern | Opcode::CrcGenerate | Opcode::DifCheck => [a, None, None, None],
        Opcode::Dualcast => [a, None, b, c],
        _ => [None; 4],
    }
}

fn operands(opcode: Opcode, d: &Descriptor, volume: Volume) -> Operands {
    let operands = fields(opcode).map(|field| Some(field?.of(d)));
    let [a, b, c, d] = operands;
    match volume {
        Volume { read: 0, .. } => [None; 4],
        Volume { written: 0, .. } => [a, b, None, None],
        _ => [a, b, c, d],
    }
}

fn transfer(operands: &Operands, volume: Volume, cache_control: bool, map: &MemoryMap) -> Transfer {
    let Volume {
        read: bytes,
        written,
    } = volume;
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
        readback: false,
        transforms: false,
    }
}

/// Whether a transfer at these addresses costs the same: each lies in the same kind of memory, at the same place in its
/// line.
fn alike(transfer: &Transfer, operands: &Operands, map: &MemoryMap) -> bool {
    let mut streams = transfer.reads.iter().chain(&transfer.writes).zip(operands);
    streams.all(|pair| match pair {
        (None, None) => true,
        (Some(stream), Some(address)) => {
            (stream.address ^ address).is_multiple_of(LINE_BYTES)
                && stream.place == place(map, *address)
        }
        _ => false,
    })
}

/// Location of an address. Unmapped addresses cost as local memory: they fault anyway.
fn place(map: &MemoryMap, address: u64) -> MemoryLocation {
    let nowhere = MemoryLocation {
        node: NodeId(0),
        cache: Cache::Memory,
    };
    map.place(address).unwrap_or(nowhere)
}

#[cfg(test)]
mod tests {
    use dray_spec::Status;

    use super::*;

    fn volume(opcode: Opcode, d: &Descriptor, delta: u32, payload: Payload) -> [u64; 2] {
        let mut record = CompletionRecord::with_status(Status::SUCCESS);
        record.set_delta_record_size(delta);
        let volume = Volume::of(opcode, d, &record, payload);
        [volume.read, volume.written]
    }

    #[test]
    fn the_volume_of_a_delta_record_is_that_of_its_entries() {
        let apply = Descriptor::apply_delta(0x1000, 0x8000, 4096, 2569);
        let volume_of_apply = volume(Opcode::ApplyDelta, &apply, 0, Payload::Skipped);
        assert_eq!(volume_of_apply, [2560, 2048]);
        let create = Descriptor::create_delta(0x1000, 0x8000, 4096, 0x1_0000, 85);
        let made = |payload| volume(Opcode::CreateDelta, &create, 20, payload);
        assert_eq!(made(Payload::Moved), [4096, 20]);
        // There is room for eight entries.
        assert_eq!(made(Payload::Skipped), [4096, 80]);
    }

    #[test]
    fn a_cache_flush_writes_its_region_back() {
        let flush = Descriptor::cache_flush(0x1000, 4096);
        let all = volume(Opcode::CacheFlush, &flush, 0, Payload::Moved);
        assert_eq!(all, [4096, 4096]);
        let volume = Volume {
            read: 4096,
            written: 4096,
        };
        let to = operands(Opcode::CacheFlush, &flush, volume);
        assert_eq!(to, [None, None, Some(0x1000), None]);
    }
}
