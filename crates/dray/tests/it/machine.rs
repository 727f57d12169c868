//! Devices to test on.

use dray_device::{Capabilities, DeviceConfig, GroupConfig, WorkQueueConfig, WorkQueueMode};

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
    DeviceConfig {
        capabilities: Capabilities {
            version: 0x100,
            gen_cap: 0x40_915f_0107,
            op_cap: [0x1_003f_03ff, 0, 0, 0],
            max_groups: 4,
            max_work_queues: 8,
            max_engines: 4,
            work_queue_size: 128,
            max_read_buffers: 96,
            max_batch_size: 1024,
            max_transfer_size: 1 << 31,
            ..Capabilities::default()
        },
        user_interrupts: true,
        work_queues,
        groups: vec![GroupConfig {
            engines: (0..engines).collect(),
            ..GroupConfig::default()
        }],
        ..DeviceConfig::default()
    }
}
