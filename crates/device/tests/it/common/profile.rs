//! Device configurations.

use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig, WorkQueueMode};

/// What the device of a fourth generation Xeon says of itself.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities::sapphire_rapids()
}

pub(crate) fn queue(id: u16, mode: WorkQueueMode, size: u16) -> WorkQueueConfig {
    WorkQueueConfig::new(id, mode, size)
}

/// One group with `engines` engines and these queues.
pub(crate) fn one_group(engines: u16, work_queues: Vec<WorkQueueConfig>) -> DeviceConfig {
    DeviceConfig::sapphire_rapids(engines, work_queues)
}
