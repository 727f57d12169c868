//! Queues by the distance of their devices' memory nodes.

use std::fs;
use std::path::Path;

use super::discovery::DEVICES;
use super::{Paths, QueueInfo};

/// ACPI's distance of a node to itself, which is what a device without a node is taken for.
const LOCAL: u32 = 10;
/// Farther than any distance: a node whose distance the system does not say.
const UNKNOWN: u32 = u32::MAX;

impl Paths {
    /// Sorts queues by the distance of their devices from a memory node, the nearest first, as the kernel says
    /// it (`node0/distance`); those of one distance keep their order. A device without a node is as near as
    /// one of this node. `None`: nothing is sorted.
    pub fn sort_by_distance(&self, queues: &mut [QueueInfo], node: Option<u32>) {
        let Some(node) = node else {
            return;
        };
        let distances = distances(&self.sysfs, node);
        queues.sort_by_key(|queue| match queue.numa_node {
            None => LOCAL,
            Some(other) if other == node => LOCAL,
            Some(other) => distances.get(other as usize).copied().unwrap_or(UNKNOWN),
        });
    }
}

/// Distance of a node from each node; empty where the system says none.
fn distances(sysfs: &Path, node: u32) -> Vec<u32> {
    let depth = Path::new(DEVICES).components().count();
    let Some(root) = sysfs.ancestors().nth(depth) else {
        return Vec::new();
    };
    let file = root.join(format!("devices/system/node/node{node}/distance"));
    let text = fs::read_to_string(file).unwrap_or_default();
    let words = text.split_whitespace();
    words.map(|word| word.parse().unwrap_or(UNKNOWN)).collect()
}
