//! Modelled machines and their devices.

use std::sync::Arc;

use dray_device::{DeviceConfig, Payload, WorkQueueConfig, WorkQueueMode};
use dray_model::{World, WorldOptions};
use dray_platform::{PlatformFile, builtin};

/// Parameters that calibration does not move.
pub(crate) fn frozen() -> Arc<PlatformFile> {
    let text = include_str!("frozen.toml");
    Arc::new(PlatformFile::parse(text, "frozen.toml").expect("a whole platform"))
}

/// Parameters as they are now.
pub(crate) fn current() -> Arc<PlatformFile> {
    Arc::new(builtin("spr-2s").expect("built in"))
}

pub(crate) fn queue(id: u16, mode: WorkQueueMode, size: u16) -> WorkQueueConfig {
    WorkQueueConfig {
        block_on_fault: true,
        max_batch_size: 1024,
        ..WorkQueueConfig::new(id, mode, size)
    }
}

/// One group with all engines and these queues.
pub(crate) fn device(engines: u16, work_queues: Vec<WorkQueueConfig>) -> DeviceConfig {
    DeviceConfig::sapphire_rapids(engines, work_queues)
}

/// A device with one queue of 128 entries.
pub(crate) fn one_queue(engines: u16, mode: WorkQueueMode) -> DeviceConfig {
    device(engines, vec![queue(0, mode, 128)])
}

pub(crate) fn world(
    platform: Arc<PlatformFile>,
    devices: Vec<DeviceConfig>,
    payload: Payload,
) -> World {
    let options = WorldOptions {
        payload,
        ..WorldOptions::default()
    };
    World::new(platform, devices, options).expect("devices that can be enabled")
}

/// The frozen machine with other values, beyond what is physically possible if need be.
pub(crate) fn frozen_with(values: &[(&str, f64)]) -> Arc<PlatformFile> {
    let mut text = String::new();
    for line in include_str!("frozen.toml").lines() {
        let name = line.split(" = ").next();
        match values.iter().find(|(changed, _)| Some(*changed) == name) {
            Some((name, value)) => {
                let unit = line.split('"').nth(1).expect("a unit");
                text += &format!(
                    "{name} = {{ value = {value}, unit = \"{unit}\", range = [{value}, {value}], source = \"a test\" }}\n"
                );
            }
            None => text += &format!("{line}\n"),
        }
    }
    Arc::new(PlatformFile::parse(&text, "frozen.toml").expect("a whole platform"))
}
