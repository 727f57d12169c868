//! From a profile without findings to the configuration of a device.

use dray_device::{
    Capabilities, DeviceConfig, GroupConfig, IdptConfig, PciConfig, WorkQueueConfig, WorkQueueMode,
};

use crate::parts::numbers;
use crate::validate::read_buffers;
use crate::{DeviceProfile, GroupProfile, WorkQueueProfile, capabilities};

/// `WQ_DEFAULT_QUEUE_DEPTH`.
const DEFAULT_SIZE: i64 = 16;

/// WQ limits of the driver where nothing is written (`WQ_DEFAULT_MAX_BATCH`, `WQ_DEFAULT_MAX_XFER`).
pub(crate) const DEFAULT_MAX_BATCH: i64 = 32;
pub(crate) const DEFAULT_MAX_TRANSFER_BYTES: i64 = 2 << 20;

/// The device as it is when it is enabled. Validation has seen that every number fits.
pub(crate) fn device(profile: &DeviceProfile) -> DeviceConfig {
    let capabilities = capabilities::resolve(profile, &mut Vec::new());
    let mut groups: Vec<GroupConfig> = profile
        .groups
        .iter()
        .filter(|group| !group.grouped_engines.is_empty())
        .map(|entry| group(entry, &capabilities))
        .collect();
    groups.sort_by_key(|group| group.id);
    let mut work_queues: Vec<WorkQueueConfig> = profile
        .groups
        .iter()
        .flat_map(|group| {
            let id = index(&group.dev, "group");
            let queues = group.grouped_workqueues.iter();
            queues.map(move |queue| (id, queue))
        })
        .map(|(group, queue)| work_queue(queue, group, &capabilities))
        .collect();
    work_queues.sort_by_key(|queue| queue.id);
    DeviceConfig {
        read_buffer_limit: narrow(profile.read_buffer_limit.unwrap_or(0)),
        // Linux sets it where it enables PASIDs.
        user_interrupts: true,
        pci: PciConfig::default(),
        // No profile has one: it is made while the device runs.
        idpt: IdptConfig::default(),
        capabilities,
        work_queues,
        groups,
    }
}

fn group(profile: &GroupProfile, capabilities: &Capabilities) -> GroupConfig {
    let mut engines: Vec<u16> = profile
        .grouped_engines
        .iter()
        .map(|engine| index(&engine.dev, "engine"))
        .collect();
    engines.sort_unstable();
    let buffers = read_buffers::of(profile, capabilities);
    GroupConfig {
        id: index(&profile.dev, "group"),
        engines,
        read_buffers_reserved: narrow(buffers.reserved),
        read_buffers_allowed: narrow(buffers.allowed),
        use_read_buffer_limit: read_buffers::uses_limit(profile),
        // Linux overrides what is configured on versions 1 and 2 (`tc_override`).
        traffic_classes: [1, 1],
    }
}

fn work_queue(
    profile: &WorkQueueProfile,
    group: u16,
    capabilities: &Capabilities,
) -> WorkQueueConfig {
    // On version 1 the driver leaves out what version 2 brought.
    let version_2 = capabilities.version >= 0x200;
    let max_batch = max_batch(profile, capabilities);
    let max_transfer = max_transfer_bytes(profile, capabilities);
    WorkQueueConfig {
        id: index(&profile.dev, "wq"),
        group,
        mode: match is_dedicated(profile) {
            true => WorkQueueMode::Dedicated,
            false => WorkQueueMode::Shared,
        },
        size: narrow(size(profile)),
        // A dedicated queue has none, whatever the file says.
        threshold: match is_dedicated(profile) {
            true => 0,
            false => narrow(profile.threshold.unwrap_or(0)),
        },
        priority: u8::try_from(profile.priority.unwrap_or(0)).unwrap_or(u8::MAX),
        block_on_fault: profile.block_on_fault == Some(1),
        // A dedicated queue has the PASID of the process that opens it, which no profile knows.
        pasid: Some(0),
        privileged: false,
        ats_disable: version_2 && profile.ats_disable == Some(1),
        // It needs an event log, which is the driver's (spec 5.2): `unmodelled` says so.
        prs_disable: false,
        op_config: profile
            .op_config
            .filter(|_| version_2)
            .map_or([u64::MAX; 4], |bits| bits.0),
        max_batch_size: u32::try_from(max_batch).map_or(u32::MAX, u32::next_power_of_two),
        max_transfer_size: u64::try_from(max_transfer).map_or(0, u64::next_power_of_two),
    }
}

pub(crate) fn is_dedicated(queue: &WorkQueueProfile) -> bool {
    queue.mode.as_deref() == Some("dedicated")
}

/// Entries, with what the driver gives a queue without.
pub(crate) fn size(queue: &WorkQueueProfile) -> i64 {
    let said = queue.size.filter(|size| *size != 0);
    said.unwrap_or(DEFAULT_SIZE)
}

/// Largest batch that the queue asks for; the driver's default never exceeds the device.
pub(crate) fn max_batch(queue: &WorkQueueProfile, capabilities: &Capabilities) -> i64 {
    let most = i64::from(capabilities.max_batch_size);
    queue.max_batch_size.unwrap_or(DEFAULT_MAX_BATCH.min(most))
}

/// Largest transfer that the queue asks for, in bytes.
pub(crate) fn max_transfer_bytes(queue: &WorkQueueProfile, capabilities: &Capabilities) -> i64 {
    let most = i64::try_from(capabilities.max_transfer_size).unwrap_or(i64::MAX);
    let default = DEFAULT_MAX_TRANSFER_BYTES.min(most);
    queue.max_transfer_size.unwrap_or(default)
}

fn index(dev: &str, prefix: &str) -> u16 {
    let index = numbers(dev, prefix).map_or(0, |(_, index)| index);
    u16::try_from(index).unwrap_or(u16::MAX)
}

fn narrow(value: i64) -> u16 {
    u16::try_from(value.max(0)).unwrap_or(u16::MAX)
}
