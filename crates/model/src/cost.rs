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
        let volume = Volume {
            read: size,
            written: size,
        };
        let operands = operands(opcode, d, volume);
        let spans = &entry.spans;
        let within = |n: usize, _: &Stream, address: u64| {
            let span = &spans[n];
            address >= span.start && address < span.end && size <= span.end - address
        };
        follow(&mut entry.transfer, &operands, within)
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
            && follow(&mut entry.transfer, &operands, |_, stream, address| {
                stream.place == place(map, address)
            });
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
        for (span, address) in entry.spans.iter_mut().zip(operands) {
            *span = address.map_or(0..0, |address| map.around(address));
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
        let translated = pipe.translate(&entry.transfer, completion_addr);
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

#[inline]
fn operands(opcode: Opcode, d: &Descriptor, volume: Volume) -> Operands {
    let (a, b) = (Some(d.address1), Some(d.address2));
    let operands = match opcode {
        Opcode::Memmove
        | Opcode::CopyCrc
        | Opcode::ApplyDelta
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate => [a, None, b, None],
        Opcode::Fill | Opcode::CacheFlush => [None, None, b, None],
        Opcode::Compare => [a, b, None, None],
        Opcode::CreateDelta => [a, b, Some(d.delta_record()), None],
        Opcode::ComparePattern | Opcode::CrcGenerate | Opcode::DifCheck => [a, None, None, None],
        Opcode::Dualcast => [a, None, b, Some(d.destination2())],
        _ => [None; 4],
    };
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
