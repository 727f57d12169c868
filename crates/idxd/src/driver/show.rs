//! What reading an attribute gives.

use dray_spec::OpCap;

use super::attribute::{Attribute, Field, Needs};
use super::state::{Device, Queue};
use super::{Errno, Options, Registers};

/// Text of an attribute, with its newline, or why there is none.
type Shown = Result<Vec<u8>, Errno>;

fn line(value: impl ToString) -> Shown {
    Ok(format!("{}\n", value.to_string()).into_bytes())
}

/// Whether a device has an attribute, on this kernel.
pub(super) fn is_present<R: Registers>(
    attribute: &Attribute,
    device: &Device<R>,
    options: &Options,
) -> bool {
    let hardware = &device.part.hardware;
    let newer = options.personality.has_version_2_attributes();
    match attribute.needs {
        Needs::Nothing => true,
        Needs::EventLog => newer && hardware.gen_cap.event_log_entry() != 0,
        Needs::OperationConfig => newer && hardware.wq_cap.operation_config(),
        Needs::PrsDisable => newer && hardware.wq_cap.prs_disable(),
        Needs::AtsDisable => !newer || hardware.wq_cap.ats_disable(),
        Needs::ProgressLimits => newer && hardware.group_cap.in_progress_limits(),
        Needs::DriverName => options.personality.has_driver_name(),
    }
}

/// An attribute of a device.
pub(super) fn device<R: Registers>(field: Field, device: &Device<R>, options: &Options) -> Shown {
    let hardware = &device.part.hardware;
    match field {
        Field::Version => line(format_args!("{:#x}", hardware.capabilities.version)),
        Field::MaxGroups => line(hardware.group_cap.groups()),
        Field::MaxWorkQueues => line(hardware.wq_cap.work_queues()),
        Field::MaxWorkQueuesSize => line(hardware.wq_cap.total_entries()),
        Field::MaxEngines => line(hardware.engine_cap.engines()),
        Field::NumaNode => line(device.part.numa_node),
        Field::DeviceMaxBatchSize => line(1_u32 << hardware.gen_cap.max_batch_shift()),
        Field::DeviceMaxTransferSize => line(1_u64 << hardware.gen_cap.max_transfer_shift()),
        Field::OpCap => line(OpCap(hardware.capabilities.op_cap)),
        Field::GenCap => line(format_args!("{:#x}", hardware.gen_cap.into_bits())),
        Field::Configurable => line(u8::from(device.configurable())),
        Field::DeviceClients => line(device.queues.iter().map(|q| q.clients.len()).sum::<usize>()),
        Field::PasidEnabled => line(u8::from(device.part.pasid_enabled)),
        Field::DeviceState => line(device.state_name()),
        Field::Errors => line(OpCap(device.software_error())),
        Field::MaxReadBuffers => line(hardware.group_cap.read_buffers()),
        Field::ReadBufferLimit => line(device.read_buffer_limit),
        Field::CdevMajor => line(options.cdev_major),
        Field::CmdStatus => line(format_args!("{:#x}", device.status.0)),
        Field::EventLogSize => line(device.event_log_size),
        _ => Err(Errno::ENOENT),
    }
}

/// An attribute of a group.
pub(super) fn group<R: Registers>(field: Field, device: &Device<R>, index: u16) -> Shown {
    let group = device.groups.get(usize::from(index)).ok_or(Errno::ENOENT)?;
    let id = device.part.id;
    match field {
        Field::WorkQueues => members(device.queues.iter().map(|q| q.group), index, "wq", id),
        Field::Engines => members(device.engines.iter().copied(), index, "engine", id),
        Field::UseReadBufferLimit => line(u8::from(group.use_limit)),
        Field::ReadBuffersAllowed => line(group.allowed),
        Field::ReadBuffersReserved => line(group.reserved),
        Field::TrafficClassA => line(group.traffic_classes[0]),
        Field::TrafficClassB => line(group.traffic_classes[1]),
        Field::DescProgressLimit => line(group.work_limit),
        Field::BatchProgressLimit => line(group.batch_limit),
        _ => Err(Errno::ENOENT),
    }
}

/// Names with blanks between; an empty file where there are none.
fn members(
    homes: impl Iterator<Item = Option<u16>>,
    group: u16,
    prefix: &str,
    device: u32,
) -> Shown {
    let names: Vec<String> = (0..)
        .zip(homes)
        .filter(|(_, home): &(u16, _)| *home == Some(group))
        .map(|(index, _)| format!("{prefix}{device}.{index}"))
        .collect();
    match names.is_empty() {
        true => Ok(Vec::new()),
        false => line(names.join(" ")),
    }
}

/// The attribute of an engine.
pub(super) fn engine<R: Registers>(field: Field, device: &Device<R>, index: u16) -> Shown {
    let home = device.engines.get(usize::from(index));
    let home = home.ok_or(Errno::ENOENT)?;
    match field {
        Field::EngineGroupId => line(home.map_or(-1, i32::from)),
        _ => Err(Errno::ENOENT),
    }
}

/// An attribute of a work queue.
pub(super) fn queue<R: Registers>(field: Field, device: &Device<R>, index: u16) -> Shown {
    let queue = device.queues.get(usize::from(index)).ok_or(Errno::ENOENT)?;
    match field {
        Field::Clients => line(queue.clients.len()),
        Field::State => line(if queue.enabled { "enabled" } else { "disabled" }),
        Field::GroupId => line(queue.group.map_or(-1, i32::from)),
        Field::Mode => line(if queue.dedicated {
            "dedicated"
        } else {
            "shared"
        }),
        Field::Size => line(queue.size),
        Field::Priority => line(queue.priority),
        Field::BlockOnFault => line(u8::from(queue.block_on_fault)),
        Field::Threshold => line(queue.threshold),
        Field::Type => line(queue.kind.name()),
        Field::Name => Ok(text(&queue.name)),
        Field::CdevMinor => line(queue.minor.ok_or(Errno::ENXIO)?),
        Field::MaxTransferSize => line(queue.max_transfer),
        Field::MaxBatchSize => line(queue.max_batch),
        Field::AtsDisable => line(u8::from(queue.ats_disable)),
        Field::PrsDisable => line(u8::from(queue.prs_disable)),
        Field::Occupancy if device.part.hardware.wq_cap.occupancy() => {
            line(device.occupancy(index))
        }
        Field::Occupancy => Err(Errno::EOPNOTSUPP),
        Field::EnqcmdsRetries => retries(queue),
        Field::OpConfig => line(OpCap(queue.operations)),
        Field::DriverName => Ok(text(&queue.driver_name)),
        _ => Err(Errno::ENOENT),
    }
}

fn retries(queue: &Queue) -> Shown {
    match queue.dedicated {
        true => Err(Errno::EOPNOTSUPP),
        false => line(queue.retries),
    }
}

fn text(bytes: &[u8]) -> Vec<u8> {
    let mut line = bytes.to_vec();
    line.push(b'\n');
    line
}
