//! Queues by the distance of their devices' memory nodes.

use std::fs;
use std::path::Path;

use super::discovery::DEVICES;
use super::{Paths, QueueInfo};

/// ACPI's distance of a node to itself, which is what a device without a node is taken for.
const LOCAL: u32 = 10;
/// Farther than any distance: a node whose distance the system does not say.
const UNKNOWN: u32 = u32::MAX;
/// The kernel has no more nodes (`MAX_NUMNODES`).
const MOST_NODES: u32 = 1 << 10;

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
            Some(other) => {
                let mut found = distances.iter();
                let found = found.find(|(node, _)| *node == other);
                found.map_or(UNKNOWN, |(_, distance)| *distance)
            }
        });
    }
}

/// Distances of a node from the nodes that are online, by node; empty where the system says none.
fn distances(sysfs: &Path, node: u32) -> Vec<(u32, u32)> {
    let depth = Path::new(DEVICES).components().count();
    let Some(root) = sysfs.ancestors().nth(depth) else {
        return Vec::new();
    };
    let nodes = root.join("devices/system/node");
    let read = |file: &str| fs::read_to_string(nodes.join(file)).unwrap_or_default();
    let text = read(&format!("node{node}/distance"));
    let words = text.split_whitespace();
    let distances = words.map(|word| word.parse().unwrap_or(UNKNOWN));
    // One word a node that is online, in their order.
    match online(&read("online")) {
        Some(online) => online.into_iter().zip(distances).collect(),
        None => (0..).zip(distances).collect(),
    }
}

/// Numbers of a list such as `0-1,4`; `None` if it is none.
fn online(list: &str) -> Option<Vec<u32>> {
    let mut nodes = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last > MOST_NODES {
            return None;
        }
        nodes.extend(first..=last);
    }
    Some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_nodes_has_numbers_and_ranges() {
        assert_eq!(online("0\n"), Some(vec![0]));
        assert_eq!(online("0-1,4,6-7\n"), Some(vec![0, 1, 4, 6, 7]));
        for list in ["", "x", "0-", "0-4294967295", "1,,2"] {
            assert_eq!(online(list), None, "{list}");
        }
    }

    #[test]
    fn distances_are_those_of_nodes_that_are_online() {
        let directory = tempfile::tempdir().expect("a directory");
        let node = directory.path().join("devices/system/node");
        fs::create_dir_all(node.join("node2")).expect("a directory");
        fs::write(node.join("online"), "0,2\n").expect("a file");
        fs::write(node.join("node2/distance"), "21 10\n").expect("a file");
        let sysfs = directory.path().join(DEVICES);
        assert_eq!(distances(&sysfs, 2), [(0, 21), (2, 10)]);
    }
}
