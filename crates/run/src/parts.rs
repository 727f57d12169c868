//! Which devices there are, and how a profile configures them.

use std::path::Path;

use dray_config::Plan;
use dray_device::{Capabilities, Hardware};
use dray_idxd::driver::{Driver, Options, Part, Personality};
use dray_idxd::{Profile, known_capabilities};

use crate::RunError;
use crate::pci;

/// Devices of a machine: those of the profile, or `dsa0` of version 1.
///
/// # Errors
/// Everything that is wrong with the profile on that kernel.
pub fn parts(profile: Option<&Profile>, kernel: Personality) -> Result<Vec<Part>, RunError> {
    let Some(profile) = profile else {
        let capabilities: Capabilities = known_capabilities(0x100).unwrap_or_default();
        return Ok(vec![placed(Part::new(0, hardware(capabilities)))]);
    };
    let configs = profile.devices_on(kernel)?;
    let devices = profile.device_profiles().iter().zip(configs);
    let parts = devices.map(|(device, config)| {
        let id = device.dev.trim_start_matches("dsa").parse().unwrap_or(0);
        let node = device.numa_node.unwrap_or(0);
        placed(Part {
            numa_node: i32::try_from(node).unwrap_or(-1),
            pasid_enabled: device.pasid_enabled != Some(0),
            ..Part::new(id, hardware(config.capabilities))
        })
    });
    Ok(parts.collect())
}

/// Hardware without a table of interrupts that the kernel would unmask: this process hears them all.
fn hardware(capabilities: Capabilities) -> Hardware {
    Hardware {
        masks_vectors: false,
        ..Hardware::new(capabilities)
    }
}

/// Moves a part off a PCI bus that this machine has.
fn placed(mut part: Part) -> Part {
    let taken = |address: &str| {
        let bus = pci::bus(address);
        Path::new("/sys/devices").join(format!("pci{bus}")).exists()
    };
    for domain in 0x1000..0x1100_u32 {
        if !taken(&part.pci_address) {
            break;
        }
        let rest = part
            .pci_address
            .split_once(':')
            .map_or("", |(_, rest)| rest);
        part.pci_address = format!("{domain:04x}:{rest}");
    }
    part
}

/// Writes what a profile says, and enables it, as `dray config load-config -e` does.
///
/// # Errors
/// The first write that the driver refuses.
pub(crate) fn load(driver: Driver, profile: &Profile) -> Result<Driver, RunError> {
    Ok(plan(driver, profile)?.into_model())
}

/// What is left out of a profile when it is loaded on a kernel, and what the driver makes of the rest.
///
/// # Errors
/// Everything that is wrong with the profile on that kernel.
pub fn notes(profile: &Profile, kernel: Personality) -> Result<Vec<String>, RunError> {
    let driver = Driver::new(Options::new(kernel), parts(Some(profile), kernel)?);
    Ok(plan(driver, profile)?.notes().to_vec())
}

fn plan(driver: Driver, profile: &Profile) -> Result<Plan, RunError> {
    let mut plan = Plan::new(driver);
    for device in profile.device_profiles() {
        let has_queues = device
            .groups
            .iter()
            .any(|g| !g.grouped_workqueues.is_empty());
        dray_config::load(&mut plan, device, has_queues)?;
    }
    Ok(plan)
}
