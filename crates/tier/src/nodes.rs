//! The memory tiers of this machine: which NUMA nodes are fast and which are slow, and how that is known.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::size;

/// What tells nodes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Options of the command.
    Named,
    /// The kernel's memory tiers, `/sys/devices/virtual/memory_tiering`.
    MemoryTiers,
    /// Latency and bandwidth of each node, which the kernel has from the HMAT.
    Attributes,
    /// Nodes without cores, as CXL memory is.
    NoCores,
}

impl Source {
    /// As it is said.
    pub fn name(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::MemoryTiers => "from the kernel's memory tiers",
            Self::Attributes => "from latency and bandwidth (HMAT)",
            Self::NoCores => "nodes without cores are slow",
        }
    }
}

/// Nodes of both tiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// Fast and slow ones, in order.
    pub nodes: [Vec<u32>; 2],
    /// Bytes of memory of each tier.
    pub bytes: [u64; 2],
    /// How they were told apart.
    pub source: Source,
    /// Where nodes are.
    at: PathBuf,
    /// For each node of a tier those of the other, the nearest first.
    near: Vec<(u32, Vec<u32>)>,
}

/// Why a machine has no two tiers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodesError {
    /// One node, or none.
    #[error("this machine has one NUMA node with memory: the kernel has no other to move pages to")]
    OneNode,
    /// Several, and nothing says which is slow.
    #[error("nothing tells the NUMA nodes {nodes} apart: no memory tiers, no HMAT, cores on each")]
    Alike {
        /// Their numbers.
        nodes: String,
    },
}

impl NodesError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OneNode => {
                "--back-end uffd tiers one dynamically linked program on one node, with an agent in it; `dray tier \
                 --help` has its limits"
            }
            Self::Alike { .. } => {
                "name them: --fast node:0 --slow node:1; numactl --hardware lists nodes"
            }
        }
    }
}

/// DRAM's abstract distance in the kernel, and the width of one of its tiers (include/linux/memory-tiers.h).
const DRAM_DISTANCE: u64 = 4 * CHUNK + CHUNK / 2;
const CHUNK: u64 = 128;

impl Tiers {
    /// Those of the machine whose sysfs is at `sys`.
    ///
    /// # Errors
    /// One node; nothing tells nodes apart.
    pub fn discover(sys: &Path) -> Result<Tiers, NodesError> {
        let at = sys.join("devices/system/node");
        let all: Vec<u32> = size::nodes(&at).iter().map(|(node, _)| *node).collect();
        if all.len() < 2 {
            return Err(NodesError::OneNode);
        }
        type Rank<'a> = &'a dyn Fn(u32) -> Option<u64>;
        let ways: [(Source, Rank<'_>); 3] = [
            (Source::MemoryTiers, &|node| kernel_tier(sys, node)),
            (Source::Attributes, &|node| {
                distance(&at, &all, node).map(|distance| distance / CHUNK)
            }),
            (Source::NoCores, &|node| {
                let cores = read(&at.join(format!("node{node}/cpulist")))?;
                Some(u64::from(cores.is_empty()))
            }),
        ];
        for (source, rank) in ways {
            let ranks: Option<Vec<u64>> = all.iter().map(|node| rank(*node)).collect();
            let Some(ranks) = ranks else { continue };
            let fastest = ranks.iter().min().copied().unwrap_or(0);
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            for (node, rank) in all.iter().zip(ranks) {
                match rank == fastest {
                    true => fast.push(*node),
                    false => slow.push(*node),
                }
            }
            if !slow.is_empty() {
                return Ok(Tiers::of(sys, [fast, slow], source));
            }
        }
        let nodes: Vec<String> = all.iter().map(u32::to_string).collect();
        Err(NodesError::Alike {
            nodes: nodes.join(", "),
        })
    }

    /// Of these nodes.
    pub fn of(sys: &Path, nodes: [Vec<u32>; 2], source: Source) -> Tiers {
        let at = sys.join("devices/system/node");
        let sizes = size::nodes(&at);
        let bytes = nodes.each_ref().map(|tier| {
            let of_tier = sizes.iter().filter(|(node, _)| tier.contains(node));
            of_tier.map(|(_, bytes)| bytes).sum()
        });
        let online = list(&read(&at.join("online")).unwrap_or_default());
        let mut near = Vec::new();
        for (tier, other) in [(0, 1), (1, 0)] {
            for node in &nodes[tier] {
                let text = read(&at.join(format!("node{node}/distance"))).unwrap_or_default();
                let distances: Vec<u64> = text.split(' ').filter_map(|n| n.parse().ok()).collect();
                // The file has a number for each node that is online.
                let distance = |to: &u32| {
                    let index = online.iter().position(|node| node == to)?;
                    distances.get(index).copied()
                };
                let mut others = nodes[other].clone();
                others.sort_by_key(|to| (distance(to).unwrap_or(u64::MAX), *to));
                near.push((*node, others));
            }
        }
        Tiers {
            nodes,
            bytes,
            source,
            at,
            near,
        }
    }

    /// Bytes that the fast tier has left: what is free, and what files hold, which can be dropped. Nothing if the
    /// machine does not say.
    pub fn free(&self) -> Option<u64> {
        let each = self.nodes[0].iter().map(|node| {
            let at = self.at.join(format!("node{node}/meminfo"));
            let text = std::fs::read_to_string(at).ok()?;
            let fields = ["MemFree:", "Active(file):", "Inactive(file):"];
            let fields = fields.map(|field| size::kilobytes(&text, field));
            Some(fields.into_iter().flatten().sum::<u64>() << 10)
        });
        each.sum()
    }

    /// The tier of a node: 0 the fast one, 1 the slow one.
    pub fn tier_of(&self, node: u32) -> Option<usize> {
        self.nodes.iter().position(|tier| tier.contains(&node))
    }

    /// Nodes of the other tier, the nearest to `node` first.
    pub fn others(&self, node: u32) -> &[u32] {
        let found = self.near.iter().find(|(known, _)| *known == node);
        found.map_or(&[], |(_, others)| others)
    }
}

/// The kernel's tier of a node: the lower, the faster.
fn kernel_tier(sys: &Path, node: u32) -> Option<u64> {
    let tiers = std::fs::read_dir(sys.join("devices/virtual/memory_tiering")).ok()?;
    tiers.flatten().find_map(|entry| {
        let name = entry.file_name();
        let rank = name.to_str()?.strip_prefix("memory_tier")?.parse().ok()?;
        let nodes = list(&read(&entry.path().join("nodelist"))?);
        nodes.contains(&node).then_some(rank)
    })
}

/// A node's abstract distance as the kernel computes it of attributes (mm/memory-tiers.c, `mt_perf_to_adistance`), with
/// the first node that has cores as DRAM.
fn distance(at: &Path, all: &[u32], node: u32) -> Option<u64> {
    let attributes = |node: u32| {
        let value = |name: &str| -> Option<u64> {
            let file = format!("node{node}/access0/initiators/{name}");
            read(&at.join(file))?
                .parse()
                .ok()
                .filter(|value| *value > 0)
        };
        let latency = value("read_latency")? + value("write_latency")?;
        let bandwidth = value("read_bandwidth")? + value("write_bandwidth")?;
        Some((latency, bandwidth))
    };
    let has_cores = |node: &&u32| {
        let cores = read(&at.join(format!("node{node}/cpulist")));
        cores.is_some_and(|list| !list.is_empty())
    };
    let dram = attributes(*all.iter().find(has_cores)?)?;
    let this = attributes(node)?;
    let by_latency = DRAM_DISTANCE.checked_mul(this.0)? / dram.0;
    Some(by_latency.checked_mul(dram.1)? / this.1)
}

/// Numbers of a list as the kernel writes it: `0,2-4`.
pub(crate) fn list(text: &str) -> Vec<u32> {
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        // A list from a file is no longer than the kernel's (MAX_NUMNODES is 1024 at most).
        Some(first.parse().ok()?..=last.parse().ok().filter(|last| *last < 1 << 16)?)
    });
    ranges.flatten().collect()
}

fn read(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Nodes 0 and 1 with cores, 2 and 3 without, 3 nearer to 0 than 2 is.
    fn machine(nodes: &[u32]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let at = "devices/system/node";
        put(&root, &format!("{at}/online"), "0-3\n");
        for node in nodes {
            let cores = ["0-3\n", "4-7\n", "\n", "\n"][*node as usize];
            let distance = [
                "10 21 24 17\n",
                "21 10 17 24\n",
                "24 17 10 28\n",
                "17 24 28 10\n",
            ][*node as usize];
            put(&root, &format!("{at}/node{node}/cpulist"), cores);
            put(&root, &format!("{at}/node{node}/distance"), distance);
            let memory = format!("Node {node} MemTotal:  {} kB\n", 1024 * (node + 1));
            put(&root, &format!("{at}/node{node}/meminfo"), &memory);
        }
        root
    }

    fn put(root: &tempfile::TempDir, path: &str, text: &str) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn attributes(root: &tempfile::TempDir, node: u32, latency: u64, bandwidth: u64) {
        let at = format!("devices/system/node/node{node}/access0/initiators");
        for (name, value) in [
            ("read_latency", latency),
            ("write_latency", latency),
            ("read_bandwidth", bandwidth),
            ("write_bandwidth", bandwidth),
        ] {
            put(root, &format!("{at}/{name}"), &format!("{value}\n"));
        }
    }

    #[test]
    fn nodes_without_cores_are_slow_and_the_nearest_comes_first() {
        let root = machine(&[0, 1, 2, 3]);
        let tiers = Tiers::discover(root.path()).expect("two tiers");
        assert_eq!(tiers.nodes, [vec![0, 1], vec![2, 3]]);
        assert_eq!(tiers.source, Source::NoCores);
        assert_eq!(tiers.bytes, [3 << 20, 7 << 20]);
        assert_eq!(tiers.free(), Some(0));
        assert_eq!([tiers.others(0), tiers.others(1)], [[3, 2], [2, 3]]);
        assert_eq!(tiers.others(2), [1, 0]);
        assert_eq!(tiers.tier_of(3), Some(1));
        assert_eq!(tiers.tier_of(4), None);
    }

    #[test]
    fn attributes_and_memory_tiers_come_before_cores() {
        let root = machine(&[0, 1, 2]);
        // Node 2 is as fast as DRAM, node 1 half as fast.
        for (node, latency, bandwidth) in [(0, 100, 1000), (1, 100, 500), (2, 105, 1000)] {
            attributes(&root, node, latency, bandwidth);
        }
        let tiers = Tiers::discover(root.path()).expect("two tiers");
        assert_eq!(tiers.source, Source::Attributes);
        assert_eq!(tiers.nodes, [vec![0, 2], vec![1]]);
        let at = "devices/virtual/memory_tiering";
        put(&root, &format!("{at}/memory_tier4/nodelist"), "1-2\n");
        put(&root, &format!("{at}/memory_tier22/nodelist"), "0\n");
        put(&root, &format!("{at}/uevent"), "");
        let tiers = Tiers::discover(root.path()).expect("two tiers");
        assert_eq!(tiers.source, Source::MemoryTiers);
        assert_eq!(tiers.nodes, [vec![1, 2], vec![0]]);
    }

    #[test]
    fn one_node_and_nodes_that_are_alike_are_told_apart() {
        let one = Tiers::discover(machine(&[0]).path()).expect_err("one node");
        assert_eq!(one, NodesError::OneNode);
        assert!(one.hint().contains("--back-end uffd"));
        let alike = machine(&[0, 1]);
        put(
            &alike,
            "devices/virtual/memory_tiering/memory_tier4/nodelist",
            "0-1",
        );
        attributes(&alike, 0, 100, 1000);
        let error = Tiers::discover(alike.path()).expect_err("both have cores");
        assert_eq!(
            error,
            NodesError::Alike {
                nodes: "0, 1".to_owned()
            }
        );
    }

    #[test]
    fn lists_of_the_kernel_are_parsed() {
        assert_eq!(list("0,2-4\n"), [0, 2, 3, 4]);
        assert_eq!(list("\n"), [0; 0]);
        assert_eq!(list("x,1-4294967295,7"), [7]);
    }
}
