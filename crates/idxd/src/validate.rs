//! What the driver refuses when it is written, and the device when it is enabled.

mod device;
mod group;
pub(crate) mod read_buffers;
mod work_queue;

use dray_device::Capabilities;

use crate::driver::Personality;
use crate::finding::{Finding, Findings};
use crate::{DeviceProfile, capabilities};

/// All findings of all devices on a kernel, in the order of the file.
pub(crate) fn profile(devices: &[DeviceProfile], kernel: Personality) -> Vec<Finding> {
    let mut list = Vec::new();
    for (position, profile) in devices.iter().enumerate() {
        if devices[..position]
            .iter()
            .any(|other| other.dev == profile.dev)
        {
            Findings::at(format!("[{position}]"), &mut list).add(
                "dev",
                &profile.dev,
                "each device is described once",
                "the name of another device, or one description less",
            );
        }
        let capabilities = capabilities::resolve(profile, &mut list);
        let owner = Owner {
            device: profile,
            capabilities: &capabilities,
            kernel,
        };
        device::check(&owner, &mut list);
        for (index, group) in profile.groups.iter().enumerate() {
            let path = format!("{}/groups[{index}]", profile.dev);
            group::check(group, &owner, &path, &mut list);
            for (index, queue) in group.grouped_workqueues.iter().enumerate() {
                let path = format!("{path}/grouped_workqueues[{index}] ({})", queue.dev);
                work_queue::check(queue, &owner, &path, &mut list);
            }
        }
        read_buffers::check(profile, &capabilities, &mut list);
    }
    list
}

/// What the rules look at beside the object itself.
struct Owner<'a> {
    device: &'a DeviceProfile,
    capabilities: &'a Capabilities,
    kernel: Personality,
}

impl Owner<'_> {
    /// Shared virtual memory: PASIDs and page requests.
    fn has_sva(&self) -> bool {
        self.device.pasid_enabled != Some(0)
    }

    /// The attributes that version 2 brought. What a file says of others is left out.
    fn has_version_2(&self) -> bool {
        self.capabilities.version >= 0x200 && self.kernel.has_version_2_attributes()
    }
}

/// Reports a switch that is neither 0 nor 1.
fn check_switch(findings: &mut Findings<'_>, field: &str, value: Option<i64>) {
    if let Some(value) = value
        && !(0..=1).contains(&value)
    {
        findings.add(
            field,
            value,
            "it is 0 (off) or 1 (on)",
            format!("\"{field}\":0"),
        );
    }
}

/// Reports an object that belongs to another device or has an index beyond the device's.
fn check_index(
    findings: &mut Findings<'_>,
    dev: &str,
    prefix: &str,
    device: &DeviceProfile,
    count: u16,
) {
    let Some((number, index)) = crate::parts::numbers(dev, prefix) else {
        return;
    };
    if Some(number) != crate::parts::device_number(&device.dev) {
        let mine = device.dev.trim_start_matches("dsa");
        findings.add(
            "dev",
            dev,
            format!("it stands in {}", device.dev),
            format!("\"dev\":\"{prefix}{mine}.{index}\""),
        );
    }
    if index >= u32::from(count) {
        findings.add(
            "dev",
            dev,
            format!(
                "the device has {count}, with indexes 0 to {}",
                count.saturating_sub(1)
            ),
            format!("\"dev\":\"{prefix}{number}.N\" with N below {count}"),
        );
    }
}
