//! A profile on the device that is there.

use dray_idxd::driver::Personality;
use dray_idxd::{DeviceProfile, Finding, Profile, ProfileError};

use crate::ConfigError;
use crate::list::settings;

/// What a profile sets, on what the device of `machine` can do; and what the profile says otherwise
/// of the device, which may be another one.
pub fn fit(profile: &DeviceProfile, machine: &DeviceProfile) -> (DeviceProfile, Vec<String>) {
    let wanted = settings(profile);
    let fitted = DeviceProfile {
        groups: wanted.groups,
        ungrouped_workqueues: wanted.ungrouped_workqueues,
        ungrouped_engines: wanted.ungrouped_engines,
        read_buffer_limit: wanted.read_buffer_limit,
        event_log_size: wanted.event_log_size,
        dev: wanted.dev,
        state: None,
        ..machine.clone()
    };
    let mut differences = Vec::new();
    let mut differ = |name: &str, said: Option<String>, is: Option<String>| {
        if let (Some(said), Some(is)) = (said, is)
            && said != is
        {
            let dev = &profile.dev;
            differences.push(format!(
                "{dev} has {name} {is}, the profile was made for {said}"
            ));
        }
    };
    let hex = |value: Option<u64>| value.map(|value| format!("{value:#x}"));
    differ("version", hex(profile.version), hex(machine.version));
    differ("gen_cap", hex(profile.gen_cap), hex(machine.gen_cap));
    let bits = |device: &DeviceProfile| device.op_cap.map(|bits| bits.to_string());
    differ("op_cap", bits(profile), bits(machine));
    for (name, get) in COUNTS {
        let of = |device: &DeviceProfile| get(device).map(|count| count.to_string());
        differ(name, of(profile), of(machine));
    }
    (fitted, differences)
}

type Count = fn(&DeviceProfile) -> Option<i64>;

const COUNTS: [(&str, Count); 7] = [
    ("max_groups", |device| device.max_groups),
    ("max_work_queues", |device| device.max_work_queues),
    ("max_engines", |device| device.max_engines),
    ("work_queue_size", |device| device.work_queue_size),
    ("max_read_buffers", |device| device.max_read_buffers),
    ("max_batch_size", |device| device.max_batch_size),
    ("max_transfer_size", |device| device.max_transfer_size),
];

/// All that the driver of a kernel or the device would refuse of fitted profiles.
pub fn findings(devices: &[DeviceProfile], kernel: Personality) -> Vec<Finding> {
    Profile::of(devices.to_vec()).validate(kernel)
}

/// Refuses profiles with findings.
///
/// # Errors
/// [`ProfileError::Invalid`] with all findings.
pub fn check(
    title: &str,
    devices: &[DeviceProfile],
    kernel: Personality,
) -> Result<(), ConfigError> {
    let findings = findings(devices, kernel);
    match findings.is_empty() {
        true => Ok(()),
        false => Err(ConfigError::Profile(ProfileError::Invalid {
            title: title.to_owned(),
            findings,
        })),
    }
}
