//! The modelled core does the work itself.

use dray_clock::Duration;
use dray_device::{Payload, check_software, execute};
use dray_platform::{
    Cache, Distance, LINE_BYTES, RecordedParameters, SoftwareAccess, SoftwareOp, Topology,
};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::channel::{Channel, ChannelOptions};
use crate::cost::{Volume, moved};
use crate::memory::{DeviceView, Memory};

/// Executes a unit's operations on its core, which takes the core's time.
pub(crate) fn run_unit(
    channel: &mut Channel,
    unit: u32,
    (topology, p): (&Topology, &RecordedParameters),
    memory: &mut Memory,
    payload: Payload,
) {
    let first = unit * channel.options.batch;
    let members = channel.units[unit as usize].members;
    // What a fence makes of a batch (spec 3.9).
    let (mut failed, mut stopped) = (false, false);
    for slot in first..first + members {
        let d = channel.descriptors[slot as usize];
        let fence = d.flags().contains(Flags::FENCE);
        stopped |= fence && failed;
        if stopped {
            channel.records[slot as usize] = CompletionRecord::default();
            continue;
        }
        if fence && channel.options.batch == 1 {
            let mut record = CompletionRecord::with_status(Status::INVALID_FLAGS);
            record.set_invalid_flags(Flags::FENCE);
            channel.records[slot as usize] = record;
            continue;
        }
        let record = match check_software(&d) {
            Err(refused) => refused.outcome().record,
            Ok(opcode) => {
                let outcome = execute(opcode, &d, &mut DeviceView(memory), payload);
                let span = match software_op(opcode, channel.options.non_temporal) {
                    Some(op) => {
                        let volume = Volume::of(opcode, &d, &outcome.record, payload);
                        span(
                            (opcode, op),
                            &d,
                            volume,
                            &channel.options,
                            (topology, p),
                            memory,
                        )
                    }
                    None => p.cpu_call(),
                };
                channel.core.work(span);
                outcome.record
            }
        };
        failed |= record.status() != Status::SUCCESS;
        channel.records[slot as usize] = record;
    }
    channel.in_flight += 1;
    channel.visible.push_back((channel.core.clock, unit));
}

/// What an operation takes on a core, by itself; none, if it would be refused.
pub(crate) fn time(
    d: &Descriptor,
    options: &ChannelOptions,
    platform: (&Topology, &RecordedParameters),
    memory: &mut Memory,
) -> Duration {
    let Ok(opcode) = check_software(d) else {
        return Duration::ZERO;
    };
    let payload = Payload::Skipped;
    let outcome = execute(opcode, d, &mut DeviceView(memory), payload);
    match software_op(opcode, options.non_temporal) {
        Some(op) => {
            let volume = Volume::of(opcode, d, &outcome.record, payload);
            span((opcode, op), d, volume, options, platform, memory)
        }
        None => platform.1.cpu_call(),
    }
}

/// Core time of an operation.
fn span(
    (opcode, op): (Opcode, SoftwareOp),
    d: &Descriptor,
    volume: Volume,
    options: &ChannelOptions,
    (topology, p): (&Topology, &RecordedParameters),
    memory: &Memory,
) -> Duration {
    let moved = moved(opcode, d, volume, memory);
    let mut places = [(Distance::Local, Cache::Memory); 4];
    let mut count = 0;
    for stream in moved.reads.iter().chain(&moved.writes).flatten() {
        let distance = topology.distance(options.socket, stream.place.node);
        places[count] = (distance, stream.place.cache);
        count += 1;
    }
    let span = p.software(
        op,
        volume.read,
        &places[..count],
        SoftwareAccess {
            hot: options.hot,
            random: options.random,
            kernel: options.kernel,
        },
    );
    match opcode {
        // The comparison counts the sources alone; the record is written as a fill is.
        Opcode::CreateDelta => span + p.cpu_fill_line() * volume.written.div_ceil(LINE_BYTES),
        _ => span,
    }
}

/// The operation whose times are used. No times have been published of delta records, integrity fields
/// and flushes on a core: what reads and writes the same lines is a guess. A field is a CRC over
/// its block; a flushed line leaves the caches as one written past them does.
fn software_op(opcode: Opcode, non_temporal: bool) -> Option<SoftwareOp> {
    Some(match opcode {
        Opcode::Memmove | Opcode::ApplyDelta => SoftwareOp::Copy,
        Opcode::CacheFlush => SoftwareOp::NtFill,
        Opcode::Fill if non_temporal => SoftwareOp::NtFill,
        Opcode::Fill => SoftwareOp::Fill,
        Opcode::Compare | Opcode::CreateDelta => SoftwareOp::Compare,
        Opcode::ComparePattern => SoftwareOp::ComparePattern,
        Opcode::CrcGenerate | Opcode::DifCheck | Opcode::DixGenerate => SoftwareOp::Crc,
        Opcode::CopyCrc | Opcode::DifInsert | Opcode::DifStrip | Opcode::DifUpdate => {
            SoftwareOp::CopyCrc
        }
        Opcode::Dualcast => SoftwareOp::Dualcast,
        _ => return None,
    })
}
