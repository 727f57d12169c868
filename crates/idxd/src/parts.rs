//! What a profile says, field by field, before anything is judged.
//!
//! Numbers are kept as they stand, out of range or not, so that validation can name all that
//! is wrong at once. Field order is accel-config's output order.

use dray_spec::OpCap;
use serde::Serialize;

use crate::driver::Personality;
use crate::write::{hex, is_absent, text};

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DeviceProfile {
    /// Name: `dsa` and a number.
    pub dev: String,
    /// Read buffers that all groups with `use_read_buffer_limit` may hold together; 0 is no limit.
    #[serde(skip_serializing_if = "is_absent")]
    pub read_buffer_limit: Option<i64>,
    /// Entries of the event log; version 2.
    #[serde(skip_serializing_if = "is_absent")]
    pub event_log_size: Option<i64>,
    /// Groups that the device has.
    #[serde(skip_serializing_if = "is_absent")]
    pub max_groups: Option<i64>,
    /// Work queues that the device has.
    #[serde(skip_serializing_if = "is_absent")]
    pub max_work_queues: Option<i64>,
    /// Engines that the device has.
    #[serde(skip_serializing_if = "is_absent")]
    pub max_engines: Option<i64>,
    /// Entries of all work queues together.
    #[serde(skip_serializing_if = "is_absent")]
    pub work_queue_size: Option<i64>,
    /// Memory node that the device is attached to.
    #[serde(skip_serializing_if = "is_absent")]
    pub numa_node: Option<i64>,
    /// SWERROR as the kernel prints it.
    #[serde(skip_serializing_if = "is_absent")]
    pub errors: Option<String>,
    /// Supported operations.
    #[serde(skip_serializing_if = "is_absent", serialize_with = "text")]
    pub op_cap: Option<OpCap>,
    /// Never set on a DSA.
    #[serde(skip_serializing_if = "is_absent", serialize_with = "hex")]
    pub iaa_cap: Option<u64>,
    /// GENCAP register.
    #[serde(skip_serializing_if = "is_absent", serialize_with = "hex")]
    pub gen_cap: Option<u64>,
    /// VERSION register.
    #[serde(skip_serializing_if = "is_absent", serialize_with = "hex")]
    pub version: Option<u64>,
    /// `enabled` or `disabled` when the profile was saved.
    #[serde(skip_serializing_if = "is_absent")]
    pub state: Option<String>,
    /// Read buffers that the device has.
    #[serde(skip_serializing_if = "is_absent")]
    pub max_read_buffers: Option<i64>,
    /// Largest batch of the device, in descriptors.
    #[serde(skip_serializing_if = "is_absent")]
    pub max_batch_size: Option<i64>,
    /// Interrupt message storage, in entries.
    #[serde(skip_serializing_if = "is_absent")]
    pub ims_size: Option<i64>,
    /// Largest transfer of the device, in bytes.
    #[serde(skip_serializing_if = "is_absent")]
    pub max_transfer_size: Option<i64>,
    /// Whether software may write the configuration.
    #[serde(skip_serializing_if = "is_absent")]
    pub configurable: Option<i64>,
    /// Whether descriptors carry address spaces.
    #[serde(skip_serializing_if = "is_absent")]
    pub pasid_enabled: Option<i64>,
    /// Major number of the character devices.
    #[serde(skip_serializing_if = "is_absent")]
    pub cdev_major: Option<i64>,
    /// Clients when the profile was saved.
    #[serde(skip_serializing_if = "is_absent")]
    pub clients: Option<i64>,
    /// Groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupProfile>,
    /// Work queues in no group. accel-config spells the key with a space.
    #[serde(rename = "ungrouped workqueues", skip_serializing_if = "Vec::is_empty")]
    pub ungrouped_workqueues: Vec<WorkQueueProfile>,
    /// Engines in no group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ungrouped_engines: Vec<EngineProfile>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct GroupProfile {
    /// Name: `group`, device number, dot, group number.
    pub dev: String,
    /// Read buffers kept for this group.
    #[serde(skip_serializing_if = "is_absent")]
    pub read_buffers_reserved: Option<i64>,
    /// Whether the device-wide limit applies.
    #[serde(skip_serializing_if = "is_absent")]
    pub use_read_buffer_limit: Option<i64>,
    /// Read buffers that the group may hold.
    #[serde(skip_serializing_if = "is_absent")]
    pub read_buffers_allowed: Option<i64>,
    /// Traffic class A, 0 to 7.
    #[serde(skip_serializing_if = "is_absent")]
    pub traffic_class_a: Option<i64>,
    /// Traffic class B, 0 to 7.
    #[serde(skip_serializing_if = "is_absent")]
    pub traffic_class_b: Option<i64>,
    /// Work descriptors in progress: the hardware's number divided by 2 to this power; version 2.
    #[serde(skip_serializing_if = "is_absent")]
    pub desc_progress_limit: Option<i64>,
    /// The same for batch descriptors; version 2.
    #[serde(skip_serializing_if = "is_absent")]
    pub batch_progress_limit: Option<i64>,
    /// Work queues of the group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grouped_workqueues: Vec<WorkQueueProfile>,
    /// Engines of the group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grouped_engines: Vec<EngineProfile>,
}

/// A work queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct WorkQueueProfile {
    /// Name: `wq`, device number, dot, queue number.
    pub dev: String,
    /// `shared` or `dedicated`.
    #[serde(skip_serializing_if = "is_absent")]
    pub mode: Option<String>,
    /// Entries.
    #[serde(skip_serializing_if = "is_absent")]
    pub size: Option<i64>,
    /// Number of the group.
    #[serde(skip_serializing_if = "is_absent")]
    pub group_id: Option<i64>,
    /// 1 (low) to 15 (high).
    #[serde(skip_serializing_if = "is_absent")]
    pub priority: Option<i64>,
    /// Whether descriptors may block on page faults.
    #[serde(skip_serializing_if = "is_absent")]
    pub block_on_fault: Option<i64>,
    /// Largest batch, in descriptors.
    #[serde(skip_serializing_if = "is_absent")]
    pub max_batch_size: Option<i64>,
    /// Largest transfer, in bytes.
    #[serde(skip_serializing_if = "is_absent")]
    pub max_transfer_size: Option<i64>,
    /// Minor number of the character device.
    #[serde(skip_serializing_if = "is_absent")]
    pub cdev_minor: Option<i64>,
    /// `user`, `kernel` or `mdev`.
    #[serde(rename = "type", skip_serializing_if = "is_absent")]
    pub kind: Option<String>,
    /// Name that applications look for.
    #[serde(skip_serializing_if = "is_absent")]
    pub name: Option<String>,
    /// Kernel driver that takes the queue; kernel 6.7 and later.
    #[serde(skip_serializing_if = "is_absent")]
    pub driver_name: Option<String>,
    /// Occupancy up to which the limited portal accepts; shared queues only.
    #[serde(skip_serializing_if = "is_absent")]
    pub threshold: Option<i64>,
    /// Whether the page request service is off; negative if the kernel has no such attribute.
    #[serde(skip_serializing_if = "is_absent")]
    pub prs_disable: Option<i64>,
    /// Whether address translation is off; negative if the kernel has no such attribute.
    #[serde(skip_serializing_if = "is_absent")]
    pub ats_disable: Option<i64>,
    /// Operations that the queue accepts; version 2.
    #[serde(skip_serializing_if = "is_absent", serialize_with = "text")]
    pub op_config: Option<OpCap>,
    /// State when the profile was saved.
    #[serde(skip_serializing_if = "is_absent")]
    pub state: Option<String>,
    /// Clients when the profile was saved.
    #[serde(skip_serializing_if = "is_absent")]
    pub clients: Option<i64>,
}

impl WorkQueueProfile {
    /// The kernel driver that takes the queue: the one of its name, or where there is none, or the kernel
    /// has no `driver_name`, that of its type. `None` where neither says.
    pub fn driver(&self, kernel: Personality) -> Option<&str> {
        let named = self.driver_name.as_deref().filter(|name| !name.is_empty());
        match (named, self.kind.as_deref()) {
            (Some(name), _) if kernel.has_driver_name() => Some(name),
            (_, Some("user")) => Some("user"),
            (_, Some("kernel")) => Some("dmaengine"),
            _ => None,
        }
    }
}

/// An engine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct EngineProfile {
    /// Name: `engine`, device number, dot, engine number.
    pub dev: String,
    /// Number of the group.
    #[serde(skip_serializing_if = "is_absent")]
    pub group_id: Option<i64>,
}

/// The two numbers of `wq0.1`: device and index.
pub(crate) fn numbers(dev: &str, prefix: &str) -> Option<(u32, u32)> {
    let (device, index) = dev.strip_prefix(prefix)?.split_once('.')?;
    Some((number(device)?, number(index)?))
}

/// The number of `dsa0`.
pub(crate) fn device_number(dev: &str) -> Option<u32> {
    number(dev.strip_prefix("dsa")?)
}

fn number(text: &str) -> Option<u32> {
    // `parse` alone would take a sign.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
