//! Devices to test on.

use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

pub(crate) fn queue(id: u16, mode: WorkQueueMode, size: u16) -> WorkQueueConfig {
    WorkQueueConfig {
        id,
        group: 0,
        mode,
        size,
        threshold: size,
        priority: 10,
        block_on_fault: true,
        max_batch_size: 1024,
        max_transfer_size: 2 << 20,
        pasid: Some(0),
        ..WorkQueueConfig::default()
    }
}

/// One group with all engines and these queues.
pub(crate) fn device(engines: u16, work_queues: Vec<WorkQueueConfig>) -> DeviceConfig {
    DeviceConfig::sapphire_rapids(engines, work_queues)
}
