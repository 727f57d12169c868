//! Device configurations.

use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig, WorkQueueMode};

/// What the device of a fourth generation Xeon says of itself.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities::sapphire_rapids()
}

pub(crate) fn queue(id: u16, mode: WorkQueueMode, size: u16) -> WorkQueueConfig {
    WorkQueueConfig {
        id,
        group: 0,
        mode,
        size,
        threshold: size,
        priority: 10,
        block_on_fault: false,
        max_batch_size: 32,
        max_transfer_size: 2 << 20,
        pasid: Some(0),
        ..WorkQueueConfig::default()
    }
}

/// One group with `engines` engines and these queues.
pub(crate) fn one_group(engines: u16, work_queues: Vec<WorkQueueConfig>) -> DeviceConfig {
    DeviceConfig::sapphire_rapids(engines, work_queues)
}
