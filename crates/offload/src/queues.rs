//! Which work queues of this machine are used.

use dray::hw::{HwError, Paths, QueueInfo};
use dray_device::WorkQueueMode;

/// The work queues with these names, or without names all shared ones, or else the dedicated ones.
///
/// # Errors
/// There is none, or not one of those that are named.
pub fn choose(names: &[String]) -> Result<Vec<QueueInfo>, HwError> {
    let all = Paths::from_environment().discover()?;
    if names.is_empty() {
        let shared = |queue: &&QueueInfo| queue.mode == WorkQueueMode::Shared;
        let found: Vec<QueueInfo> = all.iter().filter(shared).cloned().collect();
        return Ok(if found.is_empty() { all } else { found });
    }
    let named = names.iter().map(|name| {
        let found = all.iter().find(|queue| queue.name() == *name);
        found.cloned().ok_or_else(|| HwError::NoSuchQueue {
            name: name.clone(),
            available: all
                .iter()
                .map(QueueInfo::name)
                .collect::<Vec<_>>()
                .join(", "),
        })
    });
    named.collect()
}
