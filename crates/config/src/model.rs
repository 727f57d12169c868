//! A model of a machine: the driver, with the devices and the settings that a tree shows.

use dray_device::{Capabilities, Hardware};
use dray_idxd::driver::{Driver, Options, Part, Personality};
use dray_idxd::{DeviceProfile, Profile};
use dray_spec::GenCap;

use crate::error::Refused;
use crate::plan::Plan;
use crate::wanted;

/// What a tree does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assumed {
    /// The kernel; without it what its attributes say.
    pub kernel: Option<Personality>,
}

/// A driver whose devices are as [`survey`](crate::survey) found them. Where the model refuses what
/// the machine has, this is in the list: predictions may be wrong then.
pub fn model(machine: &Profile, assumed: Assumed) -> (Driver, Vec<Refused>) {
    let devices = machine.device_profiles();
    let personality = personality(devices, assumed.kernel);
    let parts = devices.iter().filter_map(part).collect();
    let mut options = Options::new(personality);
    if let Some(major) = devices.first().and_then(|device| device.cdev_major) {
        options.cdev_major = u32::try_from(major).unwrap_or(options.cdev_major);
    }
    let mut plan = Plan::new(Driver::new(options, parts));
    let mut refused = Vec::new();
    for device in devices {
        refused.extend(wanted::restore(&mut plan, device));
    }
    let mut driver = plan.into_model();
    driver.take_events();
    (driver, refused)
}

/// A part with these capabilities; version 2 with an event log, which Linux has a use for.
pub fn hardware(capabilities: Capabilities) -> Hardware {
    let version = capabilities.version;
    let mut hardware = Hardware::new(capabilities);
    if version >= 0x200 && hardware.gen_cap.event_log_entry() == 0 {
        hardware.gen_cap = hardware.gen_cap.with_event_log_entry(1);
    }
    hardware
}

fn queues(device: &DeviceProfile) -> impl Iterator<Item = &dray_idxd::WorkQueueProfile> {
    let grouped = device.groups.iter();
    let grouped = grouped.flat_map(|group| &group.grouped_workqueues);
    grouped.chain(&device.ungrouped_workqueues)
}

/// Attributes decide, because distributions carry patches back.
fn personality(devices: &[DeviceProfile], kernel: Option<Personality>) -> Personality {
    let named = devices.iter().flat_map(queues);
    let named = named.filter(|queue| queue.driver_name.is_some()).count() > 0;
    match (named, kernel) {
        (true, Some(kernel)) if kernel.has_driver_name() => kernel,
        (true, _) => Personality::Linux6_8,
        (false, Some(kernel)) if !kernel.has_driver_name() => kernel,
        (false, _) => {
            // Until 6.2 a fresh group showed 0.
            let mut groups = devices.iter().flat_map(|device| &device.groups);
            match groups.any(|group| group.read_buffers_allowed.is_some_and(|n| n != 0)) {
                true => Personality::Linux6_4,
                false => Personality::Linux5_18,
            }
        }
    }
}

fn part(device: &DeviceProfile) -> Option<Part> {
    let id = device.dev.strip_prefix("dsa")?.parse().ok()?;
    let count = |value: Option<i64>| u16::try_from(value.unwrap_or(0)).unwrap_or(0);
    let gen_cap = GenCap::from_bits(device.gen_cap.unwrap_or(0));
    let mut hardware = Hardware::new(Capabilities {
        version: u32::try_from(device.version?).ok()?,
        gen_cap: gen_cap.into_bits(),
        op_cap: device.op_cap.map_or([0; 4], |bits| bits.0),
        id_cap: 0,
        max_groups: count(device.max_groups),
        max_work_queues: count(device.max_work_queues),
        max_engines: count(device.max_engines),
        work_queue_size: count(device.work_queue_size),
        max_read_buffers: count(device.max_read_buffers),
        max_batch_size: 1 << gen_cap.max_batch_shift(),
        max_transfer_size: 1 << gen_cap.max_transfer_shift(),
    });
    let first = queues(device).next();
    let has = |test: fn(&dray_idxd::WorkQueueProfile) -> bool| first.is_some_and(test);
    hardware.wq_cap = hardware
        .wq_cap
        .with_ats_disable(has(|queue| queue.ats_disable.is_some()))
        .with_prs_disable(has(|queue| queue.prs_disable.is_some()))
        .with_operation_config(has(|queue| queue.op_config.is_some()));
    let group = device.groups.first();
    hardware.group_cap = hardware
        .group_cap
        .with_in_progress_limits(group.is_some_and(|group| group.desc_progress_limit.is_some()));
    let mut part = Part::new(id, hardware);
    part.pasid_enabled = device.pasid_enabled == Some(1);
    part.numa_node = device.numa_node.map_or(-1, |node| node as i32);
    // Where the driver has put it does not matter here; that it is on, is.
    part.event_log = device.event_log_size.map(|_| 0x1000);
    Some(part)
}
