//! The modelled core does the work itself.

use dray_clock::Duration;
use dray_device::{Payload, execute};
use dray_platform::{Cache, Distance, PlatformFile, SoftwareOp};
use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};

use super::channel::{Channel, ChannelOptions};
use super::cost::moved;
use super::memory::{DeviceView, Memory};
use crate::refusal::refusal;

/// Executes a unit's operations on its core, which takes the core's time.
pub(super) fn run_unit(
    channel: &mut Channel,
    unit: u32,
    platform: &PlatformFile,
    memory: &mut Memory,
    payload: Payload,
) {
    let p = platform.parameters();
    let first = unit * channel.options.batch;
    for slot in first..first + channel.units[unit as usize].members {
        let d = channel.descriptors[slot as usize];
        let record = match (refusal(&d), d.opcode()) {
            (Some(record), _) => record,
            (None, Ok(opcode)) => {
                let outcome = execute(opcode, &d, &mut DeviceView(memory), payload);
                let span = match software_op(opcode, channel.options.non_temporal) {
                    Some(op) => span(op, &d, &channel.options, platform, memory),
                    None => p.cpu_call,
                };
                channel.core.work(span);
                outcome.record
            }
            (None, Err(_)) => CompletionRecord::with_status(Status::BAD_OPCODE),
        };
        channel.records[slot as usize] = record;
    }
    channel.in_flight += 1;
    channel.visible.push_back((channel.core.clock, unit));
}

/// Core time of an operation.
fn span(
    op: SoftwareOp,
    d: &Descriptor,
    options: &ChannelOptions,
    platform: &PlatformFile,
    memory: &Memory,
) -> Duration {
    let bytes = u64::from(d.size);
    let moved = moved(d.opcode().unwrap_or(Opcode::Noop), d, bytes, memory);
    let mut places = [(Distance::Local, Cache::Memory); 4];
    let mut count = 0;
    for stream in moved.reads.iter().chain(&moved.writes).flatten() {
        let topology = &platform.topology;
        let distance = topology.distance(options.socket, stream.place.node);
        places[count] = (distance, stream.place.cache);
        count += 1;
    }
    let p = platform.parameters();
    p.software(op, bytes, &places[..count], options.hot, options.random)
}

fn software_op(opcode: Opcode, non_temporal: bool) -> Option<SoftwareOp> {
    Some(match opcode {
        Opcode::Memmove => SoftwareOp::Copy,
        Opcode::Fill if non_temporal => SoftwareOp::NtFill,
        Opcode::Fill => SoftwareOp::Fill,
        Opcode::Compare => SoftwareOp::Compare,
        Opcode::ComparePattern => SoftwareOp::ComparePattern,
        Opcode::CrcGenerate => SoftwareOp::Crc,
        Opcode::CopyCrc => SoftwareOp::CopyCrc,
        Opcode::Dualcast => SoftwareOp::Dualcast,
        _ => return None,
    })
}
