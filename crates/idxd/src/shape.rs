//! The name that describes a profile, or a summary where none does.

use crate::parts::{DeviceProfile, GroupProfile, WorkQueueProfile, device_number};
use crate::{capabilities, names};

/// `4e1w-s-wqsz16` where the profile is one device with one group of equal work queues.
pub(crate) fn of(devices: &[DeviceProfile]) -> String {
    match devices {
        [device] => name(device).unwrap_or_else(|| summary(device)),
        many => format!("{} devices", many.len()),
    }
}

fn summary(device: &DeviceProfile) -> String {
    let in_use = |group: &&GroupProfile| !group.grouped_workqueues.is_empty();
    let groups = device.groups.iter();
    let queues: usize = groups
        .clone()
        .map(|group| group.grouped_workqueues.len())
        .sum();
    let engines: usize = groups
        .clone()
        .map(|group| group.grouped_engines.len())
        .sum();
    let groups = groups.filter(in_use).count();
    format!("{engines}e{queues}w in {groups} groups")
}

fn name(device: &DeviceProfile) -> Option<String> {
    let mut groups = device
        .groups
        .iter()
        .filter(|group| !group.grouped_workqueues.is_empty() || !group.grouped_engines.is_empty());
    let group = groups.next()?;
    if groups.next().is_some() {
        return None;
    }
    let queues = &group.grouped_workqueues;
    let first = queues.first()?;
    if queues.iter().any(|queue| kind(queue) != kind(first)) {
        return None;
    }
    let capabilities = capabilities::resolve(device, &mut Vec::new());
    let shared = match first.mode.as_deref()? {
        "shared" => true,
        "dedicated" => false,
        _ => return None,
    };
    let size = first.size?;
    let count = queues.len();
    let mut name = match device_number(&device.dev)? {
        0 => String::new(),
        number => format!("dsa{number}-"),
    };
    let mode = if shared { 's' } else { 'd' };
    name += &format!("{}e{count}w-{mode}", group.grouped_engines.len());
    let equal_share = i64::from(capabilities.work_queue_size) / i64::try_from(count).ok()?;
    if size != equal_share {
        name += &format!("-wqsz{size}");
    }
    let batch = crate::configure::max_batch(first, &capabilities);
    if batch != i64::from(capabilities.max_batch_size) {
        name += &format!("-bs{batch}");
    }
    let threshold = first.threshold.unwrap_or(0);
    if threshold != if shared { size } else { 0 } {
        name += &format!("-thr{threshold}");
    }
    let priority = first.priority.unwrap_or(0);
    if priority != names::PRIORITY {
        name += &format!("-prio{priority}");
    }
    let transfer = first.max_transfer_size.unwrap_or(names::MAX_TRANSFER_BYTES);
    if transfer != names::MAX_TRANSFER_BYTES {
        name += &format!("-xfer{transfer}");
    }
    if capabilities.version >= 0x200 {
        name += "-v2";
    }
    Some(name)
}

/// What a name says of a work queue.
fn kind(queue: &WorkQueueProfile) -> impl PartialEq + '_ {
    (
        queue.mode.as_deref(),
        queue.size,
        queue.max_batch_size,
        queue.threshold,
        queue.priority,
        queue.max_transfer_size,
    )
}
