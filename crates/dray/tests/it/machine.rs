//! Devices to test on.

use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

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
