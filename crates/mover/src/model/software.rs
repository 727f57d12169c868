//! The modelled core does the work itself.

use dray_device::{Payload, execute};
use dray_platform::{PlatformFile, SoftwareOp};
use dray_spec::{CompletionRecord, Opcode, Status};

use super::channel::Channel;
use super::cost::moved;
use super::memory::{DeviceView, Memory};
use crate::{Completion, Executor, Ticket};

/// Executes a unit's operations on its core, which takes the core's time.
pub(crate) fn run_unit(
    channel: &mut Channel,
    unit: u32,
    platform: &PlatformFile,
    memory: &mut Memory,
    payload: Payload,
) {
    let first = unit * channel.options.batch;
    for member in 0..channel.units[unit as usize].members {
        let slot = first + member;
        let d = channel.descriptors[slot as usize];
        let record = match d.opcode().ok().and_then(|o| Some((o, software_op(o)?))) {
            None => CompletionRecord::with_status(Status::BAD_OPCODE),
            Some((opcode, op)) => {
                let outcome = execute(opcode, &d, &mut DeviceView(memory), payload);
                let moved = moved(opcode, &d, u64::from(d.size), memory);
                let mut places =
                    [(dray_platform::Distance::Local, dray_platform::Cache::Memory); 4];
                let mut count = 0;
                for stream in moved.reads.iter().chain(&moved.writes).flatten() {
                    let distance = platform
                        .topology
                        .distance(channel.options.socket, stream.place.node);
                    places[count] = (distance, stream.place.cache);
                    count += 1;
                }
                let (hot, random) = (channel.options.hot, channel.options.random);
                channel.core.work(platform.parameters().software(
                    op,
                    u64::from(d.size),
                    &places[..count],
                    hot,
                    random,
                ));
                outcome.record
            }
        };
        channel.records[slot as usize] = record;
        channel.software_done.push_back(Completion {
            ticket: Ticket(slot),
            record,
            executor: Executor::ModelCpu,
        });
    }
}

fn software_op(opcode: Opcode) -> Option<SoftwareOp> {
    Some(match opcode {
        Opcode::Memmove => SoftwareOp::Copy,
        Opcode::Fill => SoftwareOp::Fill,
        Opcode::Compare => SoftwareOp::Compare,
        Opcode::ComparePattern => SoftwareOp::ComparePattern,
        Opcode::CrcGenerate => SoftwareOp::Crc,
        Opcode::CopyCrc => SoftwareOp::CopyCrc,
        Opcode::Dualcast => SoftwareOp::Dualcast,
        _ => return None,
    })
}
