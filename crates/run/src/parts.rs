//! Which devices there are, and how a profile configures them.

use std::path::Path;

use dray_device::{Capabilities, Hardware};
use dray_idxd::driver::{Driver, Part};
use dray_idxd::{
    DeviceProfile, EngineProfile, GroupProfile, Profile, WorkQueueProfile, known_capabilities,
};

use crate::RunError;

/// Devices of a machine: those of the profile, or `dsa0` of version 1.
///
/// # Errors
/// Everything that is wrong with the profile.
pub fn parts(profile: Option<&Profile>) -> Result<Vec<Part>, RunError> {
    let Some(profile) = profile else {
        let capabilities: Capabilities = known_capabilities(0x100).unwrap_or_default();
        return Ok(vec![placed(Part::new(0, Hardware::new(capabilities)))]);
    };
    let configs = profile.devices()?;
    let devices = profile.device_profiles().iter().zip(configs);
    let parts = devices.map(|(device, config)| {
        let id = device.dev.trim_start_matches("dsa").parse().unwrap_or(0);
        let node = device.numa_node.unwrap_or(0);
        placed(Part {
            numa_node: i32::try_from(node).unwrap_or(-1),
            pasid_enabled: device.pasid_enabled != Some(0),
            ..Part::new(id, Hardware::new(config.capabilities))
        })
    });
    Ok(parts.collect())
}

/// Moves a part off a PCI bus that this machine has.
fn placed(mut part: Part) -> Part {
    let taken = |address: &str| {
        let bus = address.rsplit_once(':').map_or(address, |(bus, _)| bus);
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

/// Writes what a profile says, and enables it, as `accel-config load-config -e` does.
///
/// # Errors
/// The first write that the driver refuses.
pub(crate) fn load(driver: &mut Driver, profile: &Profile) -> Result<(), RunError> {
    let mut loader = Loader { driver };
    for device in profile.device_profiles() {
        loader.device(device)?;
    }
    Ok(())
}

struct Loader<'a> {
    driver: &'a mut Driver,
}

impl Loader<'_> {
    fn write(&mut self, path: String, value: &str) -> Result<(), RunError> {
        self.driver
            .try_write(&path, value.as_bytes())
            .map_err(|failure| RunError::Refused {
                path,
                value: value.to_owned(),
                errno: failure.errno,
                status: failure.status,
            })
    }

    /// Writes an attribute, if the profile has it and the kernel, too.
    fn set(
        &mut self,
        object: &str,
        attribute: &str,
        value: Option<impl ToString>,
    ) -> Result<(), RunError> {
        let path = format!("/sys/bus/dsa/devices/{object}/{attribute}");
        match value {
            Some(value) if self.driver.read(&path).is_ok() => self.write(path, &value.to_string()),
            _ => Ok(()),
        }
    }

    fn device(&mut self, device: &DeviceProfile) -> Result<(), RunError> {
        let limit = device.read_buffer_limit.filter(|limit| *limit > 0);
        self.set(&device.dev, "read_buffer_limit", limit)?;
        for group in &device.groups {
            for engine in &group.grouped_engines {
                self.engine(engine, group)?;
            }
            for queue in &group.grouped_workqueues {
                self.queue(queue, group)?;
            }
            self.group(group)?;
        }
        if device
            .groups
            .iter()
            .all(|g| g.grouped_workqueues.is_empty())
        {
            return Ok(());
        }
        self.write("/sys/bus/dsa/drivers/idxd/bind".into(), &device.dev)?;
        for queue in device.groups.iter().flat_map(|g| &g.grouped_workqueues) {
            let driver = match queue.kind.as_deref() {
                Some("kernel") => "dmaengine",
                _ => "user",
            };
            self.write(format!("/sys/bus/dsa/drivers/{driver}/bind"), &queue.dev)?;
        }
        Ok(())
    }

    fn engine(&mut self, engine: &EngineProfile, group: &GroupProfile) -> Result<(), RunError> {
        self.set(&engine.dev, "group_id", number(&group.dev))
    }

    fn group(&mut self, group: &GroupProfile) -> Result<(), RunError> {
        let dev = &group.dev;
        let positive = |value: Option<i64>| value.filter(|value| *value > 0);
        self.set(
            dev,
            "read_buffers_reserved",
            positive(group.read_buffers_reserved),
        )?;
        self.set(
            dev,
            "read_buffers_allowed",
            positive(group.read_buffers_allowed),
        )?;
        self.set(
            dev,
            "use_read_buffer_limit",
            positive(group.use_read_buffer_limit),
        )?;
        self.set(
            dev,
            "desc_progress_limit",
            positive(group.desc_progress_limit),
        )?;
        self.set(
            dev,
            "batch_progress_limit",
            positive(group.batch_progress_limit),
        )
    }

    fn queue(&mut self, queue: &WorkQueueProfile, group: &GroupProfile) -> Result<(), RunError> {
        let dev = &queue.dev;
        let shared = queue.mode.as_deref() != Some("dedicated");
        let kind = queue.kind.as_deref().unwrap_or("user");
        // What a fresh queue of this name would be called by who configures by hand.
        let name = queue.name.as_deref().unwrap_or("app");
        let driver = match kind {
            "kernel" => "dmaengine",
            _ => "user",
        };
        self.set(dev, "group_id", number(&group.dev))?;
        self.set(
            dev,
            "mode",
            Some(if shared { "shared" } else { "dedicated" }),
        )?;
        self.set(dev, "size", queue.size)?;
        self.set(dev, "priority", queue.priority)?;
        self.set(dev, "block_on_fault", queue.block_on_fault)?;
        self.set(dev, "type", Some(kind))?;
        self.set(dev, "name", Some(name))?;
        self.set(
            dev,
            "driver_name",
            Some(queue.driver_name.as_deref().unwrap_or(driver)),
        )?;
        self.set(dev, "threshold", queue.threshold.filter(|_| shared))?;
        self.set(dev, "max_transfer_size", queue.max_transfer_size)?;
        self.set(dev, "max_batch_size", queue.max_batch_size)?;
        let on = |value: Option<i64>| value.filter(|value| *value > 0);
        self.set(dev, "ats_disable", on(queue.ats_disable))?;
        self.set(dev, "prs_disable", on(queue.prs_disable))?;
        self.set(dev, "op_config", queue.op_config)
    }
}

/// The number after the dot.
fn number(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, number)| number)
}
