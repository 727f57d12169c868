//! What `list` prints and `save-config` writes, of all that there is.

use dray_idxd::{DeviceProfile, GroupProfile, Profile, WorkQueueProfile};

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listing {
    /// What is not enabled, too.
    pub idle: bool,
}

fn is_enabled(state: Option<&String>) -> bool {
    state.is_some_and(|state| state == "enabled")
}

/// What `accel-config list` prints: devices and work queues that are enabled, with all groups and
/// engines of these devices; with `idle` all.
pub fn listed(machine: &Profile, listing: Listing) -> Profile {
    let mut devices: Vec<DeviceProfile> = machine.device_profiles().to_vec();
    if !listing.idle {
        devices.retain(|device| is_enabled(device.state.as_ref()));
    }
    for device in &mut devices {
        // accel-config prints neither 0.
        device.pasid_enabled = device.pasid_enabled.filter(|enabled| *enabled != 0);
        for group in &mut device.groups {
            if !listing.idle {
                group
                    .grouped_workqueues
                    .retain(|queue| is_enabled(queue.state.as_ref()));
            }
            group.grouped_workqueues.iter_mut().for_each(as_listed);
        }
        if !listing.idle {
            device.ungrouped_workqueues.clear();
        }
        device.ungrouped_workqueues.iter_mut().for_each(as_listed);
    }
    Profile::of(devices)
}

/// accel-config prints the error of an attribute that the kernel does not have.
fn as_listed(queue: &mut WorkQueueProfile) {
    queue.ats_disable = queue.ats_disable.or(Some(-2));
}

/// What `accel-config save-config` writes: the settings of what is enabled.
pub fn saved(machine: &Profile) -> Profile {
    let listed = listed(machine, Listing::default());
    let devices = listed.device_profiles().iter();
    Profile::of(devices.map(settings).collect())
}

/// The settings of a device, without what it is and what state it is in.
pub(crate) fn settings(device: &DeviceProfile) -> DeviceProfile {
    let queues = |queues: &[WorkQueueProfile]| {
        let queues = queues.iter().map(|queue| WorkQueueProfile {
            cdev_minor: None,
            state: None,
            clients: None,
            ..queue.clone()
        });
        queues.collect()
    };
    let groups = device.groups.iter().map(|group| GroupProfile {
        grouped_workqueues: queues(&group.grouped_workqueues),
        ..group.clone()
    });
    DeviceProfile {
        dev: device.dev.clone(),
        read_buffer_limit: device.read_buffer_limit,
        event_log_size: device.event_log_size,
        groups: groups.collect(),
        ungrouped_workqueues: queues(&device.ungrouped_workqueues),
        ungrouped_engines: device.ungrouped_engines.clone(),
        ..DeviceProfile::default()
    }
}
