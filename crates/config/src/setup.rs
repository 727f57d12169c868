//! One line instead of a file: so many work queues and engines of such a kind.

use dray_idxd::{DeviceProfile, EngineProfile, GroupProfile, WorkQueueProfile};

/// What dsa-perf-micros's setup script takes, and the largest batch, which it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The device, as `dsa0`.
    pub device: String,
    /// Number of work queues.
    pub work_queues: u16,
    /// Dedicated; else shared.
    pub dedicated: bool,
    /// Number of engines, all in group 0.
    pub engines: u16,
    /// Entries of each work queue; without it all are shared out.
    pub size: Option<u16>,
    /// Largest batch, in descriptors; without it the device's.
    pub max_batch: Option<u32>,
    /// Largest transfer, in bytes; without it the device's.
    pub max_transfer: Option<u64>,
    /// Priority of each work queue, 1 to 15.
    pub priority: u8,
    /// Descriptors may block on faults.
    pub block_on_fault: bool,
}

impl Setup {
    /// The profile of it, for a device that a survey found.
    pub fn profile(&self, device: &DeviceProfile) -> DeviceProfile {
        let number = self.device.trim_start_matches("dsa");
        let entries = device.work_queue_size.unwrap_or(0);
        let shared_out = entries / i64::from(self.work_queues.max(1));
        let size = self.size.map_or(shared_out, i64::from);
        let max_transfer = self
            .max_transfer
            .and_then(|bytes| i64::try_from(bytes).ok());
        let queues = (0..self.work_queues).map(|index| WorkQueueProfile {
            dev: format!("wq{number}.{index}"),
            mode: Some(
                if self.dedicated {
                    "dedicated"
                } else {
                    "shared"
                }
                .to_owned(),
            ),
            size: Some(size),
            group_id: Some(0),
            priority: Some(self.priority.into()),
            block_on_fault: Some(self.block_on_fault.into()),
            max_batch_size: self.max_batch.map(i64::from).or(device.max_batch_size),
            max_transfer_size: max_transfer.or(device.max_transfer_size),
            kind: Some("user".to_owned()),
            name: Some(format!("app{index}")),
            threshold: (!self.dedicated).then_some(size),
            ..WorkQueueProfile::default()
        });
        let engines = (0..self.engines).map(|index| EngineProfile {
            dev: format!("engine{number}.{index}"),
            group_id: Some(0),
        });
        DeviceProfile {
            dev: self.device.clone(),
            groups: vec![GroupProfile {
                dev: format!("group{number}.0"),
                grouped_workqueues: queues.collect(),
                grouped_engines: engines.collect(),
                ..GroupProfile::default()
            }],
            ..DeviceProfile::default()
        }
    }
}
