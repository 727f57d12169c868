//! The PCI tree of a machine, and the topology file that it becomes.

mod links;

use std::collections::{BTreeMap, BTreeSet};

use super::Imported;
use crate::PcieError;
use crate::file::DeviceEntry;
use crate::rate::GIB;
use crate::{
    EndpointEntry, EndpointParameters, ForwarderEntry, HostEntry, HostParameters, TopologyFile,
};

/// What hangs on the sockets of a machine, and what is to be said of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tree {
    /// Root ports, and functions beside them.
    pub(super) roots: Vec<PciNode>,
    /// The package of each NUMA node, where it is known.
    pub(super) packages: BTreeMap<u32, u32>,
    /// Whether the processor is known to be AMD's.
    pub(super) is_amd: bool,
    /// Or Intel's.
    pub(super) is_intel: bool,
    /// Links of other kinds that it has, see [`crate::Topology::left_out`].
    pub(super) left_out: BTreeSet<&'static str>,
    pub(super) notes: Vec<String>,
}

/// A PCI function with what is below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PciNode {
    /// Domain, bus, device and function, as `0000:01:00.0`.
    pub(super) address: String,
    /// The three bytes of the class code.
    pub(super) class: u32,
    /// Vendor and device, where they are known.
    pub(super) id: Option<(u32, u32)>,
    pub(super) numa: Option<u32>,
    pub(super) link: PciLink,
    /// Speed of the ports of a NIC together, Mbit/s; 0 if it is not known.
    pub(super) wire_mbit_s: f64,
    pub(super) below: Vec<PciNode>,
}

/// The link above a function; what could not be read is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct PciLink {
    pub(super) generation: Option<u32>,
    /// What its end can do; an idle one may run slower.
    pub(super) max_generation: Option<u32>,
    pub(super) width: Option<u32>,
    /// Lanes that its end has; fewer may be in use.
    pub(super) max_width: Option<u32>,
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
            (_, 0x0300)
                if self
                    .vendor()
                    .is_some_and(|vendor| CONSOLES.contains(&vendor)) =>
            {
                Some("display")
            }
            (0x03, _) => Some("gpu"),
            (0x0b | 0x12, _) => Some("accelerator"),
            (_, 0x0502) => Some("cxl"),
            (_, 0x0880) => match self.id {
                Some((INTEL, device)) if DSA.contains(&device) => Some("dsa"),
                Some((INTEL, device)) if IAA.contains(&device) => Some("iaa"),
                Some(_) => None,
                // On servers with one the system peripherals are mostly data movers.
                None => Some("peripheral"),
            },
            _ => None,
        }
    }

    /// Whether its link runs slowly while it has nothing to do: a GPU's or an accelerator's, and that of a card's own
    /// switch, which has one such device below it and is of its vendor.
    fn slows_down(&self) -> bool {
        if !self.is_bridge() {
            return matches!(self.class >> 16, 0x03 | 0x0b | 0x12)
                && self.word() != Some("display");
        }
        let mut devices = Vec::new();
        self.devices(&mut devices);
        let first = devices.iter().find(|node| node.slows_down());
        first.is_some_and(|card| {
            let same = devices.iter().all(|node| node.device() == card.device());
            same && self.vendor().is_some() && self.vendor() == card.vendor()
        })
    }

    /// All below it that are no bridges.
    fn devices<'n>(&'n self, found: &mut Vec<&'n PciNode>) {
        for child in &self.below {
            match child.is_bridge() {
                true => child.devices(found),
                false => found.push(child),
            }
        }
    }

    fn vendor(&self) -> Option<u32> {
        let vendor = self.id.map(|(vendor, _)| vendor);
        vendor.filter(|vendor| *vendor != 0)
    }

    /// Its address without the function.
    pub(super) fn device(&self) -> &str {
        let split = self.address.rsplit_once('.');
        split.map_or(&self.address, |(device, _)| device)
    }
}

const INTEL: u32 = 0x8086;
const AMD: u32 = 0x1022;
/// Graphics of management processors and of virtual machines, which show a console: of Matrox, Silicon Motion, XGI,
/// Huawei, ASPEED; Cirrus, Bochs, virtio, VMware.
const CONSOLES: [u32; 9] = [
    0x102b, 0x126f, 0x18ca, 0x19e5, 0x1a03, 0x1013, 0x1234, 0x1af4, 0x15ad,
];
/// The class of functions for the platform's own use ("non-essential instrumentation"): no traffic goes there.
pub(super) const NO_DEVICE: u32 = 0x1300;
/// GPUs of AMD.
const ATI: u32 = 0x1002;
/// The sort of device that GPUs of AMD are.
const WIDE_GPU: &str = "amd-gpu";
/// Root complexes and GPUs of AMD have been measured with TLPs of this payload: 14.25 GB/s from a Threadripper to a Radeon Pro VII
/// (Gen3 x16), 28.4 and 29.0 from and to an EPYC (Gen4 x16).
const WIDE: u32 = 256;
/// Intel's root complexes cut the TLPs that they forward between devices into lines (NCCL's topo.h says so of GPUs'): 45.2 GB/s
/// have been measured from four drives to a GPU on Gen5 x16 (Xeon 6442Y), 20 between GPUs on Gen4 x16 (Xeon 6430), where such TLPs have
/// 45.8 and 22.9.
const INTEL_FORWARDS: u32 = 64;
/// From a switch's input to its output: PLX' and Microchip's data sheets have 100 to 115 ns for all generations.
const SWITCH_NS: f64 = 110.0;
/// Links of xGMI between two sockets: three or four of 16 lanes.
const XGMI_LINKS: u32 = 3;
/// Part of the bits of xGMI that is payload of DMA: 42 to 44 GB/s have been measured on a link of 32 GT/s (64 GB/s), of one GPU,
/// whose transfers take one link.
const XGMI_PAYLOAD: f64 = 0.68;
/// Device numbers of the kernel's driver (drivers/dma/idxd/init.c).
const DSA: [u32; 3] = [0x0b25, 0x11fb, 0x1212];
const IAA: [u32; 4] = [0x0cfe, 0x1216, 0xb02d, 0xfd2d];

struct Writer {
    file: TopologyFile,
    host: String,
    sockets: BTreeMap<u32, u32>,
    left_out: usize,
    functions: usize,
    unread: BTreeMap<String, usize>,
    /// Links that are slower now than they can be: idle, or held back.
    idle: Vec<String>,
    slow: Vec<String>,
    seen: BTreeSet<String>,
    /// Devices beside the root complex that are endpoints.
    beside: BTreeSet<String>,
    /// Links whose generation and lanes follow from their product.
    products: usize,
    twice: usize,
    /// NICs with slower ports than their link.
    wires: usize,
}

/// The topology file of a tree: sockets are the NUMA nodes that devices name.
pub(super) fn to_file(tree: Tree, name: &str, from: &str) -> Result<Imported, PcieError> {
    let Tree {
        roots,
        packages,
        is_amd,
        is_intel,
        left_out,
        mut notes,
    } = tree;
    let is_amd = is_amd || roots.iter().any(|root| root.vendor() == Some(AMD));
    // A guest has functions of Intel's chip sets on any processor; its ports are of others.
    let has_port = |root: &PciNode| root.is_bridge() && !root.below.is_empty();
    let mut ports = roots.iter().filter(|root| has_port(root));
    let is_intel = is_intel || ports.any(|port| port.vendor() == Some(INTEL));
    let sockets = sockets(&roots, &packages, &mut notes);
    let count = sockets.values().max().map_or(1, |last| last + 1);
    let mut writer = Writer {
        file: TopologyFile {
            name: name.to_owned(),
            title: format!("The PCI tree of a machine, imported from {from}"),
            left_out: left_out.into_iter().map(str::to_owned).collect(),
            ..TopologyFile::default()
        },
        host: "host".to_owned(),
        left_out: 0,
        functions: 0,
        unread: BTreeMap::new(),
        idle: Vec::new(),
        slow: Vec::new(),
        seen: BTreeSet::new(),
        beside: BTreeSet::new(),
        products: 0,
        twice: 0,
        wires: 0,
        sockets,
    };
    writer.file.hosts.push(HostEntry {
        name: "host".to_owned(),
        sockets: count,
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
            writer.below(root, &upper);
        } else {
            writer.add(root, &upper, None);
        }
    }
    if is_amd {
        let ports = roots.iter().filter(|root| root.is_bridge());
        writer.amd(ports.filter_map(|port| port.link.max_generation).max());
    } else if is_intel {
        for host in &mut writer.file.hosts {
            host.timing.peer_write_bytes = INTEL_FORWARDS;
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
    writer.say(&mut notes);
    let toml = writer.file.to_toml()?;
    let head: String = notes.iter().map(|note| format!("# {note}.\n")).collect();
    Ok(Imported {
        toml: head + &toml,
        notes,
    })
}

/// The socket of each NUMA node that devices name: its package, where it is known.
fn sockets(
    roots: &[PciNode],
    packages: &BTreeMap<u32, u32>,
    notes: &mut Vec<String>,
) -> BTreeMap<u32, u32> {
    let mut numa = BTreeSet::new();
    for root in roots {
        collect_numa(root, &mut numa);
    }
    let package = |node: &u32| packages.get(node).copied();
    let known: Option<Vec<u32>> = numa.iter().map(package).collect();
    let groups = known.filter(|_| !packages.is_empty());
    let groups = groups.unwrap_or_else(|| two_sockets(&numa, notes));
    let distinct: BTreeSet<u32> = groups.iter().copied().collect();
    if distinct.len() < numa.len() {
        let (nodes, sockets) = (numa.len(), distinct.len());
        notes.push(format!("{nodes} NUMA nodes share {sockets} sockets"));
    }
    let index = |group: &u32| distinct.iter().take_while(|known| *known < group).count() as u32;
    numa.into_iter().zip(groups.iter().map(index)).collect()
}

/// Sockets of NUMA nodes of which nothing is known but their numbers. A package with several has them in a row, and few
/// servers have more than two packages: of more than two nodes the lower half of the numbers is one.
fn two_sockets(numa: &BTreeSet<u32>, notes: &mut Vec<String>) -> Vec<u32> {
    if numa.len() <= 2 {
        return numa.iter().copied().collect();
    }
    let count = numa.last().map_or(0, |last| last + 1);
    let half = count.div_ceil(2);
    notes.push(format!(
        "which of {} NUMA nodes share a socket is not known: those below {half} are taken for one, the others for another",
        numa.len()
    ));
    numa.iter().map(|node| u32::from(*node >= half)).collect()
}

fn collect_numa(node: &PciNode, numa: &mut BTreeSet<u32>) {
    numa.extend(node.numa);
    for child in &node.below {
        collect_numa(child, numa);
    }
}

impl Writer {
    fn say(&self, notes: &mut Vec<String>) {
        for (what, count) in &self.unread {
            let links = dray_output::counted(*count, "link");
            notes.push(format!("{what} of {links} could not be read; the file marks them `unread` and has the default"));
        }
        for idle in &self.idle {
            notes.push(idle.clone());
        }
        for slow in &self.slow {
            notes.push(slow.clone());
        }
        if self.products > 0 {
            let links = dray_output::counted(self.products, "link");
            notes.push(format!(
                "hwloc has the product of speed and lanes only: {links} have the lowest generation that gives it with 16 lanes \
                 at most, and 4 for NVMe"
            ));
        }
        if self.wires > 0 {
            notes.push(format!(
                "{} as fast as the ports of their devices, which are slower",
                match self.wires {
                    1 => "1 link is".to_owned(),
                    count => format!("{count} links are"),
                }
            ));
        }
        let counts = [
            (self.left_out, "of the platform itself"),
            (self.functions, "that share the port of another"),
            (self.twice, "named twice"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            notes.push(format!(
                "left out: {} {what}",
                dray_output::counted(count, "function")
            ));
        }
        notes.push("latencies and device timing are defaults: no such file has them".to_owned());
    }

    /// Adds what is below a port: switches and devices. A link leads to one device: functions of other numbers, and virtual
    /// ones, share it. A bus without links has devices side by side.
    fn below(&mut self, port: &PciNode, upper: &str) {
        let is_link = port.link != PciLink::default();
        let device = |node: &PciNode| match is_link {
            true => String::new(),
            false => node.device().to_owned(),
        };
        let mut devices: BTreeMap<String, Vec<&PciNode>> = BTreeMap::new();
        for child in &port.below {
            match child.is_bridge() {
                true => self.add(child, upper, Some(&port.link)),
                false => devices.entry(device(child)).or_default().push(child),
            }
        }
        for mut functions in devices.into_values() {
            functions.sort_by_key(|node| (node.word().is_none(), node.address.clone()));
            self.add(functions[0], upper, Some(&port.link));
            self.functions += functions.len() - 1;
        }
    }

    /// Adds a function below `upper`. `port` is the link as the port above reports it.
    fn add(&mut self, node: &PciNode, upper: &str, port: Option<&PciLink>) {
        if !self.seen.insert(node.address.clone()) {
            self.twice += 1;
            return;
        }
        if !node.is_bridge() {
            match node.word() {
                // Beside the root complex functions of one device share its place.
                Some(_) if port.is_none() && !self.beside.insert(node.device().to_owned()) => {
                    self.functions += 1;
                }
                Some(word) => self.endpoint(node, word, upper, port),
                // Below a link every device counts; beside the root complex most are its own.
                None if port.is_some() && node.class >> 8 != NO_DEVICE => {
                    self.endpoint(node, "device", upper, port)
                }
                None => self.left_out += 1,
            }
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
            forward_ns: SWITCH_NS,
            ..ForwarderEntry::default()
        });
        self.link(upper, node, port);
        for child in &node.below {
            if child.is_bridge() {
                self.below(child, &node.address);
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
        let is_wide = word == "gpu" && node.vendor() == Some(ATI);
        let device = is_wide.then(|| WIDE_GPU.to_owned());
        if is_wide && self.file.devices.is_empty() {
            self.file.devices.push(DeviceEntry {
                name: WIDE_GPU.to_owned(),
                timing: EndpointParameters {
                    payload_bytes: WIDE,
                    ..EndpointParameters::default()
                },
                engine: None,
            });
        }
        self.file.endpoints.push(EndpointEntry {
            name: node.address.clone(),
            kind: word.to_owned(),
            device,
        });
        self.link(upper, node, port);
    }

    /// What is known of machines with AMD's processors: completions, and xGMI between sockets.
    /// `ports`: the generation of its root ports, if it is known; else that of the fastest link stands for it.
    fn amd(&mut self, ports: Option<u32>) {
        let generations = self.file.links.iter().filter_map(|link| link.generation);
        // Naples, Rome and Milan, Genoa and later.
        let giga_transfers = match generations.chain(ports).max().unwrap_or(4) {
            ..=3 => 10.7,
            4 => 16.0,
            _ => 32.0,
        };
        let link_gb_s = giga_transfers * 16.0 / 8.0 * XGMI_PAYLOAD;
        let gib_s = f64::from(XGMI_LINKS) * link_gb_s * 1e9 / GIB;
        for host in &mut self.file.hosts {
            host.timing.completion_bytes = WIDE;
            host.timing.socket_gib_s = (gib_s * 10.0).round() / 10.0;
            host.timing.socket_links = XGMI_LINKS;
        }
    }
}
