//! Which memory of this machine stands for a point's.

use std::fs;
use std::path::Path;

use dray_platform::Distance;

/// NUMA nodes, as a device sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Nodes {
    /// The device's own; `None`: the machine does not say.
    pub(crate) local: Option<u16>,
    /// Another with processors.
    remote: Option<u16>,
    /// One without processors, as memory behind CXL is.
    cxl: Option<u16>,
}

impl Nodes {
    /// The nodes in `root`, `/sys/devices/system/node`, beside a device on node `local`.
    pub(crate) fn read(root: &Path, local: Option<u16>) -> Nodes {
        let mut found: Vec<(u16, bool)> = fs::read_dir(root)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name();
                let number = name.to_str()?.strip_prefix("node")?.parse().ok()?;
                let cpus = fs::read_to_string(entry.path().join("cpulist")).ok()?;
                Some((number, !cpus.trim().is_empty()))
            })
            .collect();
        found.sort_unstable();
        let local = local.filter(|node| found.iter().any(|(number, _)| number == node));
        // A device that does not know its node is on the first.
        let own = local.or(found.first().map(|(number, _)| *number));
        let mut nodes = Nodes {
            // Where there is one node, nothing has to be bound to it.
            local: local.filter(|_| found.len() > 1),
            ..Nodes::default()
        };
        for (number, has_cpus) in found {
            let place = match has_cpus {
                _ if Some(number) == own => continue,
                true => &mut nodes.remote,
                false => &mut nodes.cxl,
            };
            place.get_or_insert(number);
        }
        nodes
    }

    /// Whether there is memory at such a distance.
    pub(crate) fn has(self, distance: Distance) -> bool {
        distance == Distance::Local || self.at(distance).is_some()
    }

    /// The node at such a distance; `None`: wherever the kernel puts it.
    pub(crate) fn at(self, distance: Distance) -> Option<u16> {
        match distance {
            Distance::Local => self.local,
            Distance::Remote => self.remote,
            Distance::Cxl => self.cxl,
        }
    }

    /// Those of `cpus` that are at such a distance, by the nodes in `root`.
    pub(crate) fn cpus(self, root: &Path, cpus: &[u16], distance: Distance) -> Vec<u16> {
        let is_on = |cpu: &u16, node: u16| root.join(format!("node{node}/cpu{cpu}")).exists();
        match (self.at(distance), distance) {
            (Some(node), _) => cpus
                .iter()
                .copied()
                .filter(|cpu| is_on(cpu, node))
                .collect(),
            (None, Distance::Local) => cpus.to_vec(),
            (None, _) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_remote_and_cxl_nodes_are_found_by_their_cpus() {
        let root = tempfile::tempdir().unwrap();
        for (name, cpus) in [("node0", "0-3\n"), ("node1", "4-7\n"), ("node2", "\n")] {
            fs::create_dir(root.path().join(name)).unwrap();
            fs::write(root.path().join(name).join("cpulist"), cpus).unwrap();
        }
        let nodes = Nodes::read(root.path(), Some(1));
        assert_eq!(nodes.at(Distance::Local), Some(1));
        assert_eq!(nodes.at(Distance::Remote), Some(0));
        assert_eq!(nodes.at(Distance::Cxl), Some(2));
        fs::create_dir(root.path().join("node0/cpu3")).unwrap();
        let cpus = |nodes: Nodes, distance| nodes.cpus(root.path(), &[2, 3], distance);
        assert_eq!(cpus(nodes, Distance::Remote), [3]);
        assert!(cpus(nodes, Distance::Local).is_empty());
        assert_eq!(cpus(Nodes::default(), Distance::Local), [2, 3]);
        assert!(cpus(Nodes::default(), Distance::Remote).is_empty());
        let unknown = Nodes::read(root.path(), None);
        assert_eq!(unknown.at(Distance::Remote), Some(1));
        // A virtual device may name a node that is not there.
        assert_eq!(Nodes::read(root.path(), Some(7)).at(Distance::Local), None);
        let none = Nodes::read(&root.path().join("none"), None);
        assert!(none.has(Distance::Local) && !none.has(Distance::Remote));
    }
}
