//! A work queue whose portal is memory: what is submitted can be looked at, and no device is needed.

use std::path::Path;

use dray::Capabilities;
use dray::hw::QueueInfo;
use dray_device::WorkQueueMode;

/// A dedicated queue whose portal is a page of the file `path`, which is made, as is its attribute `state`.
pub(crate) fn of_memory(path: &Path, entries: u16) -> QueueInfo {
    std::fs::write(path, [0; 4096]).expect("a file");
    let state = path.with_extension("state");
    std::fs::write(&state, "enabled\n").expect("a file");
    QueueInfo {
        device: 0,
        queue: 0,
        mode: WorkQueueMode::Dedicated,
        entries,
        numa_node: None,
        version: 0x100,
        capabilities: Capabilities::software(),
        path: path.to_owned(),
        state,
    }
}
