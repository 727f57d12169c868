//! How large a tier is, or which node it is: `4G`, `25%`, `node:1`, or so much of a node: `node:0:4G`.

use std::path::Path;
use std::str::FromStr;

use thiserror::Error;

use crate::sys::cgroup::Cgroup;

/// Bytes of the smallest page.
const PAGE: u64 = 4096;

/// A tier as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// So many bytes.
    Bytes(u64),
    /// So many percent of the machine's memory.
    Percent(u64),
    /// All of a NUMA node.
    Node(u32),
    /// All of several nodes, a bit each; the kernel's migration alone has such tiers.
    Nodes(u64),
    /// So many bytes of a NUMA node.
    NodeBytes(u32, u64),
}

/// Why a tier cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Neither a size nor a node.
    #[error("`{text}` is neither a size, as 4G or 25%, nor node:N, node:N,M, nor node:N:SIZE")]
    Syntax {
        /// What was written.
        text: String,
    },
    /// A tier without memory.
    #[error("a tier of 0 bytes holds nothing")]
    Empty,
    /// A tier without a page.
    #[error(
        "a tier of {bytes} bytes has no page of {PAGE}: is {bytes}%, {bytes}M or {bytes}G meant?"
    )]
    NoPage {
        /// Bytes asked for.
        bytes: u64,
    },
    /// More than there is.
    #[error("a tier of {asked} bytes is larger than this machine's memory of {memory} bytes")]
    TooLarge {
        /// Bytes asked for.
        asked: u64,
        /// Bytes of the machine.
        memory: u64,
    },
    /// Several nodes, where a tier is one.
    #[error("with --back-end uffd a tier is one node")]
    SeveralNodes,
    /// No such node.
    #[error("there is no NUMA node {node}: this machine has {nodes}")]
    NoNode {
        /// The node.
        node: u32,
        /// Those that there are.
        nodes: String,
    },
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let syntax = || SizeError::Syntax {
            text: text.to_owned(),
        };
        if let Some(node) = text.strip_prefix("node:") {
            let (node, size) = match node.split_once(':') {
                Some((node, size)) => (node, Some(size)),
                None => (node, None),
            };
            if size.is_none() && node.contains([',', '-']) {
                return several(node).ok_or_else(syntax);
            }
            let node = node.parse().map_err(|_| syntax())?;
            return match size.map(str::parse) {
                None => Ok(Size::Node(node)),
                Some(Ok(Size::Bytes(bytes))) => Ok(Size::NodeBytes(node, bytes)),
                Some(Err(error @ (SizeError::Empty | SizeError::NoPage { .. }))) => Err(error),
                Some(_) => Err(syntax()),
            };
        }
        if let Some(percent) = text.strip_suffix('%') {
            return match percent.parse() {
                Ok(0) => Err(SizeError::Empty),
                Ok(percent) if percent <= 100 => Ok(Size::Percent(percent)),
                _ => Err(syntax()),
            };
        }
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" => 0,
            "k" | "kib" => 10,
            "m" | "mib" => 20,
            "g" | "gib" => 30,
            "t" | "tib" => 40,
            _ => return Err(syntax()),
        };
        let number: u64 = digits.parse().map_err(|_| syntax())?;
        match number.checked_mul(1 << shift) {
            Some(0) => Err(SizeError::Empty),
            Some(bytes) if bytes < PAGE => Err(SizeError::NoPage { bytes }),
            Some(bytes) => Ok(Size::Bytes(bytes)),
            None => Err(syntax()),
        }
    }
}

/// Nodes of a list as numactl(8) has it, `0,2-3`: all of its numbers below 64, in ranges that are not empty.
fn several(text: &str) -> Option<Size> {
    let mut mask = 0u64;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= u64::BITS {
            return None;
        }
        (first..=last).for_each(|node| mask |= 1 << node);
    }
    Some(Size::Nodes(mask))
}

impl Size {
    /// The nodes that it names.
    pub fn nodes(self) -> Vec<u32> {
        match self {
            Size::Node(node) | Size::NodeBytes(node, _) => vec![node],
            Size::Nodes(mask) => (0..u64::BITS)
                .filter(|node| mask >> node & 1 == 1)
                .collect(),
            Size::Bytes(_) | Size::Percent(_) => Vec::new(),
        }
    }

    /// Bytes and node, on a machine with so much memory and these nodes (number and bytes).
    ///
    /// # Errors
    /// More than there is; no such node.
    pub fn resolve(
        self,
        memory: u64,
        nodes: &[(u32, u64)],
    ) -> Result<(u64, Option<u32>), SizeError> {
        match self {
            Size::Bytes(asked) if asked > memory => Err(SizeError::TooLarge { asked, memory }),
            Size::Bytes(bytes) => Ok((bytes, None)),
            Size::Percent(percent) => Ok((memory / 100 * percent, None)),
            Size::NodeBytes(node, asked) => match Size::Node(node).resolve(memory, nodes)? {
                (memory, _) if asked > memory => Err(SizeError::TooLarge { asked, memory }),
                (_, node) => Ok((asked, node)),
            },
            Size::Nodes(_) => Err(SizeError::SeveralNodes),
            Size::Node(node) => {
                let found = nodes.iter().find(|(number, _)| *number == node);
                let bytes = found.ok_or_else(|| SizeError::NoNode {
                    node,
                    nodes: match nodes {
                        [] => "none".to_owned(),
                        _ => {
                            let numbers = nodes.iter().map(|(number, _)| number.to_string());
                            numbers.collect::<Vec<_>>().join(", ")
                        }
                    },
                })?;
                Ok((bytes.1, Some(node)))
            }
        }
    }
}

/// Bytes of memory, of the cgroup if that has a limit, and nodes with theirs.
pub fn machine() -> (u64, Vec<(u32, u64)>) {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut memory = kilobytes(&meminfo, "MemTotal:").unwrap_or(u64::MAX >> 10) << 10;
    if let Some(limit) = Cgroup::own().limit() {
        memory = memory.min(limit);
    }
    (memory, nodes(Path::new("/sys/devices/system/node")))
}

/// Nodes of a directory like the kernel's, in order, and their bytes of memory.
pub(crate) fn nodes(directory: &Path) -> Vec<(u32, u64)> {
    let mut nodes = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node"));
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            continue;
        };
        let Ok(text) = std::fs::read_to_string(entry.path().join("meminfo")) else {
            continue;
        };
        // Nodes of cores alone have none.
        if let Some(total) = kilobytes(&text, "MemTotal:").filter(|total| *total > 0) {
            nodes.push((number, total << 10));
        }
    }
    nodes.sort_unstable();
    nodes
}

pub(crate) fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(field))?;
    let (_, value) = line.split_once(field)?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_their_directories() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path();
        for (node, kilobytes) in [(10, 40), (0, 20), (3, 0), (2, 30)] {
            let node_place = place.join(format!("node{node}"));
            std::fs::create_dir(&node_place).expect("a directory");
            let text =
                format!("Node {node} MemTotal:  {kilobytes} kB\nNode {node} MemFree: 1 kB\n");
            std::fs::write(node_place.join("meminfo"), text).expect("a file");
        }
        // One without memory, and what is no node.
        std::fs::create_dir(place.join("node7")).expect("a directory");
        std::fs::write(place.join("online"), "0,2,7,10\n").expect("a file");
        let found = nodes(place);
        assert_eq!(found, [(0, 20 << 10), (2, 30 << 10), (10, 40 << 10)]);
        assert!(nodes(&place.join("none")).is_empty());
    }

    #[test]
    fn sizes_and_nodes_are_parsed() {
        let read = |text: &str| text.parse::<Size>();
        for (text, bytes) in [("25", 25), ("node:0:4095", 4095)] {
            assert_eq!(read(text), Err(SizeError::NoPage { bytes }), "{text}");
        }
        assert_eq!(read("4G"), Ok(Size::Bytes(4 << 30)));
        assert_eq!(read("64m"), Ok(Size::Bytes(64 << 20)));
        assert_eq!(read("25%"), Ok(Size::Percent(25)));
        assert_eq!(read("node:1"), Ok(Size::Node(1)));
        assert_eq!(read("node:0,2-3"), Ok(Size::Nodes(0b1101)));
        assert_eq!(read("node:0,2-3").map(Size::nodes), Ok(vec![0, 2, 3]));
        assert_eq!(Size::Nodes(3).resolve(1, &[]), Err(SizeError::SeveralNodes));
        assert_eq!(read("node:1:64M"), Ok(Size::NodeBytes(1, 64 << 20)));
        assert_eq!(read("node:1:0"), Err(SizeError::Empty));
        assert_eq!(read("0"), Err(SizeError::Empty));
        assert_eq!(read("0%"), Err(SizeError::Empty));
        for wrong in [
            "",
            "G",
            "4X",
            "-1",
            "node:",
            "node:x",
            "node:1:",
            "node:1:50%",
            "node:1:node:0",
            "node:0,",
            "node:1-0",
            "node:0,64",
            "node:0,1:4G",
            "101%",
            "99999999T",
            "é",
        ] {
            assert!(
                matches!(read(wrong), Err(SizeError::Syntax { .. })),
                "{wrong}"
            );
        }
    }

    #[test]
    fn missing_nodes_and_memory_are_refused() {
        let nodes = [(0, 1 << 30), (2, 1 << 29)];
        let resolve = |size: Size| size.resolve(3 << 29, &nodes);
        assert_eq!(resolve(Size::Node(2)), Ok((1 << 29, Some(2))));
        assert_eq!(
            resolve(Size::Node(1)).map_err(|e| e.to_string()),
            Err("there is no NUMA node 1: this machine has 0, 2".to_owned())
        );
        assert!(matches!(
            resolve(Size::Bytes(1 << 40)),
            Err(SizeError::TooLarge { .. })
        ));
        assert_eq!(resolve(Size::NodeBytes(2, 1 << 20)), Ok((1 << 20, Some(2))));
        assert!(matches!(
            resolve(Size::NodeBytes(2, 1 << 30)),
            Err(SizeError::TooLarge { .. })
        ));
        assert_eq!(resolve(Size::Percent(50)), Ok(((3 << 29) / 100 * 50, None)));
    }
}
