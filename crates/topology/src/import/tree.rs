//! The PCI tree of a machine, and the topology file that it becomes.

use std::collections::BTreeMap;

use super::Imported;
use crate::PcieError;
use crate::{EndpointEntry, ForwarderEntry, HostEntry, HostParameters, LinkEntry, TopologyFile};

/// A PCI function with what is below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PciNode {
    /// Domain, bus, device and function, as `0000:01:00.0`.
    pub(super) address: String,
    /// The three bytes of the class code.
    pub(super) class: u32,
    pub(super) numa: Option<u32>,
    pub(super) link: PciLink,
    pub(super) below: Vec<PciNode>,
}

/// The link above a function; what could not be read is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct PciLink {
    pub(super) generation: Option<u32>,
    pub(super) width: Option<u32>,
    pub(super) mps: Option<u32>,
    pub(super) mrrs: Option<u32>,
    /// Bandwidth where only that is known, GB/s.
    pub(super) gb_s: Option<f64>,
}

impl PciNode {
    fn is_bridge(&self) -> bool {
        self.class >> 8 == 0x0604
    }

    /// What it is, in a word, or nothing for devices that only the platform uses.
    fn word(&self) -> Option<&'static str> {
        match (self.class >> 16, self.class >> 8) {
            (_, 0x0108) => Some("nvme"),
            (0x01, _) => Some("storage"),
            (0x02, _) => Some("nic"),
            (0x03, _) => Some("gpu"),
            (0x0b | 0x12, _) => Some("accelerator"),
            _ => None,
        }
    }

    fn function(&self) -> &str {
        self.address.rsplit('.').next().unwrap_or("0")
    }
}

struct Writer {
    file: TopologyFile,
    host: String,
    sockets: BTreeMap<u32, u32>,
    left_out: usize,
    functions: usize,
    unread: BTreeMap<String, usize>,
}

/// The topology file of a tree: sockets are the NUMA nodes that devices name.
pub(super) fn to_file(roots: Vec<PciNode>, name: &str, from: &str) -> Result<Imported, PcieError> {
    let mut numa: Vec<u32> = Vec::new();
    for root in &roots {
        collect_numa(root, &mut numa);
    }
    numa.sort_unstable();
    numa.dedup();
    let sockets: BTreeMap<u32, u32> = match numa.is_empty() {
        true => BTreeMap::from([(0, 0)]),
        false => numa
            .iter()
            .enumerate()
            .map(|(index, node)| (*node, index as u32))
            .collect(),
    };
    let mut writer = Writer {
        file: TopologyFile {
            name: name.to_owned(),
            title: format!("The PCI tree of a machine, imported from {from}"),
            ..TopologyFile::default()
        },
        host: "host".to_owned(),
        left_out: 0,
        functions: 0,
        unread: BTreeMap::new(),
        sockets,
    };
    writer.file.hosts.push(HostEntry {
        name: "host".to_owned(),
        sockets: writer.sockets.len() as u32,
        timing: HostParameters::default(),
    });
    for root in &roots {
        let socket = root
            .numa
            .and_then(|node| writer.sockets.get(&node))
            .copied()
            .unwrap_or(0);
        let upper = format!("{}.{socket}", writer.host);
        if root.is_bridge() {
            // A root port: what is below it hangs on the socket.
            for child in &root.below {
                writer.add(child, &upper, Some(&root.link));
            }
        } else {
            writer.add(root, &upper, None);
        }
    }
    if writer.file.endpoints.is_empty() {
        return Err(PcieError::Rule {
            file: from.to_owned(),
            entry: "PCI tree".to_owned(),
            rule: "has no device of storage, network, display or accelerator class below a link"
                .to_owned(),
        });
    }
    let mut notes = Vec::new();
    for (what, count) in &writer.unread {
        notes.push(format!("{what} of {count} links could not be read; the file marks them `unread` and has the default"));
    }
    if writer.left_out > 0 {
        notes.push(format!(
            "{} functions of the platform itself are left out",
            writer.left_out
        ));
    }
    if writer.functions > 0 {
        notes.push(format!(
            "{} further functions of devices are left out: they share the link of function 0",
            writer.functions
        ));
    }
    notes.push(
        "latencies and device timing are defaults: sysfs and hwloc do not know them".to_owned(),
    );
    let toml = writer.file.to_toml()?;
    let head: String = notes.iter().map(|note| format!("# {note}.\n")).collect();
    Ok(Imported {
        toml: head + &toml,
        notes,
    })
}

fn collect_numa(node: &PciNode, numa: &mut Vec<u32>) {
    numa.extend(node.numa);
    for child in &node.below {
        collect_numa(child, numa);
    }
}

impl Writer {
    /// Adds a function below `upper`. `port` is the link as the port above reports it.
    fn add(&mut self, node: &PciNode, upper: &str, port: Option<&PciLink>) {
        if !node.is_bridge() {
            let Some(word) = node.word() else {
                // Below a link every device counts; beside the root complex most are its own.
                if port.is_some() && node.function() == "0" {
                    self.endpoint(node, "device", upper, port);
                } else {
                    self.left_out += 1;
                }
                return;
            };
            if node.function() != "0" && port.is_some() {
                self.functions += 1;
                return;
            }
            self.endpoint(node, word, upper, port);
            return;
        }
        if node.below.is_empty() {
            return;
        }
        // The upstream port of a switch, or a bridge: its downstream ports are part of it.
        let before = self.file.endpoints.len();
        let place = self.file.switches.len();
        let links = self.file.links.len();
        self.file.switches.push(ForwarderEntry {
            name: node.address.clone(),
            ..ForwarderEntry::default()
        });
        self.link(upper, &node.address, &node.link, port);
        for child in &node.below {
            if child.is_bridge() {
                for device in &child.below {
                    self.add(device, &node.address, Some(&child.link));
                }
            } else {
                self.add(child, &node.address, None);
            }
        }
        if self.file.endpoints.len() == before {
            self.file.switches.truncate(place);
            self.file.links.truncate(links);
        }
    }

    fn endpoint(&mut self, node: &PciNode, word: &str, upper: &str, port: Option<&PciLink>) {
        self.file.endpoints.push(EndpointEntry {
            name: node.address.clone(),
            kind: word.to_owned(),
            device: None,
        });
        self.link(upper, &node.address, &node.link, port);
    }

    fn link(&mut self, upper: &str, lower: &str, own: &PciLink, port: Option<&PciLink>) {
        let from_port = |get: fn(&PciLink) -> Option<u32>| port.and_then(get);
        let generation = own.generation.or(from_port(|link| link.generation));
        let width = own.width.or(from_port(|link| link.width));
        let mps = match (own.mps, from_port(|link| link.mps)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let mut entry = LinkEntry {
            ends: vec![upper.to_owned(), lower.to_owned()],
            generation,
            width,
            mps,
            mrrs: own.mrrs,
            ..LinkEntry::default()
        };
        if let (None, Some(gb_s)) = (generation, own.gb_s) {
            // hwloc has the product of both only.
            let gib_s = (gb_s / 1.073_741_824 * 1000.0).round() / 1000.0;
            entry.down_gib_s = Some(gib_s);
            entry.up_gib_s = Some(gib_s);
        }
        for (key, missing) in [
            ("generation", generation.is_none()),
            ("width", width.is_none()),
            ("mps", mps.is_none()),
            ("mrrs", own.mrrs.is_none()),
        ] {
            if missing {
                entry.unread.push(key.to_owned());
                *self.unread.entry(key.to_owned()).or_default() += 1;
            }
        }
        self.file.links.push(entry);
    }
}
