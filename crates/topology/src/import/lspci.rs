//! The PCI tree from the text of `lspci -vv` (as root, and with `-nn`, it says most).

use std::collections::BTreeMap;

use super::tree::{NO_DEVICE, PciLink, PciNode, Tree};
use crate::PcieError;
use crate::error::syntax;

/// Functions of a machine at most, and bridges above each other.
const MAX_FUNCTIONS: usize = 20_000;
const MAX_DEPTH: usize = 32;

/// Names of classes without `-nn`, as pci.ids has them, and their codes.
const CLASSES: [(&str, u32); 27] = [
    ("PCI bridge", 0x0604),
    ("Non-Volatile memory controller", 0x0108),
    ("SCSI storage controller", 0x0100),
    ("IDE interface", 0x0101),
    ("RAID bus controller", 0x0104),
    ("SATA controller", 0x0106),
    ("Serial Attached SCSI controller", 0x0107),
    ("Mass storage controller", 0x0180),
    ("Ethernet controller", 0x0200),
    ("Infiniband controller", 0x0207),
    ("Network controller", 0x0280),
    ("Fabric controller", 0x0208),
    ("VGA compatible controller", 0x0300),
    ("3D controller", 0x0302),
    ("Display controller", 0x0380),
    ("Multimedia controller", 0x0480),
    ("Audio device", 0x0403),
    ("RAM memory", 0x0500),
    ("CXL", 0x0502),
    ("Memory controller", 0x0580),
    ("Host bridge", 0x0600),
    ("ISA bridge", 0x0601),
    ("Bridge", 0x0680),
    ("System peripheral", 0x0880),
    ("Co-processor", 0x0b40),
    ("Processing accelerators", 0x1200),
    ("Non-Essential Instrumentation", 0x1300),
];

/// How names without `-nn` begin, as pci.ids has them, and the vendor's number. GPUs of AMD have its name and another number.
const VENDORS: [(&str, u32); 12] = [
    ("Advanced Micro Devices, Inc. [AMD/ATI]", 0x1002),
    ("Advanced Micro Devices", 0x1022),
    ("AMD/ATI", 0x1002),
    ("ASPEED", 0x1a03),
    ("Broadcom / LSI", 0x1000),
    ("Chengdu Haiguang", 0x1d94),
    ("Intel", 0x8086),
    ("Matrox", 0x102b),
    ("Mellanox", 0x15b3),
    ("NVIDIA", 0x10de),
    ("PLX", 0x10b5),
    ("PMC-Sierra", 0x11f8),
];

/// A function, and the bus below it if it is a bridge.
struct Function {
    node: PciNode,
    /// Domain and bus on which it is.
    bus: (u32, u32),
    secondary: Option<(u32, u32)>,
}

/// Whether a text is of `lspci`.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().take(1000).any(|line| header(line).is_some())
}

pub(super) fn read(text: &str, file: &str) -> Result<Tree, PcieError> {
    let mut functions: Vec<Function> = Vec::new();
    for line in text.lines() {
        if let Some(function) = header(line) {
            if functions.len() == MAX_FUNCTIONS {
                return Err(syntax(file, format!("more than {MAX_FUNCTIONS} functions")));
            }
            functions.push(function);
        } else if let Some(function) = functions.last_mut() {
            detail(function, line.trim());
        }
    }
    let mut tree = Tree::default();
    let buses = functions
        .iter()
        .any(|function| function.secondary.is_some());
    if !buses {
        let note = "the text has no bus numbers of bridges, as `lspci -vv` has them: each bus is taken for one link";
        tree.notes.push(note.to_owned());
    }
    let bridges: BTreeMap<(u32, u32), usize> = (0..functions.len())
        .filter_map(|index| Some((functions[index].secondary?, index)))
        .collect();
    let mut on_bus: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (index, function) in functions.iter().enumerate() {
        on_bus.entry(function.bus).or_default().push(index);
    }
    let mut placed = 0;
    let roots = on_bus.iter().filter(|(bus, _)| !bridges.contains_key(bus));
    for (bus, members) in roots {
        let nodes: Option<Vec<PciNode>> = members
            .iter()
            .map(|member| below(*member, &functions, &on_bus, &bridges, MAX_DEPTH))
            .collect();
        let Some(nodes) = nodes else {
            let message = format!("more than {MAX_DEPTH} bridges above each other");
            return Err(syntax(file, message));
        };
        placed += nodes.iter().map(count).sum::<usize>();
        match buses || bus.1 == 0 {
            true => tree.roots.extend(nodes),
            // A bus below a port that is not named.
            false => tree.roots.push(PciNode {
                class: 0x06_0400,
                numa: nodes.iter().find_map(|node| node.numa),
                link: nodes[0].link,
                below: nodes,
                ..PciNode::default()
            }),
        }
    }
    // Each function is below one bridge, or on a bus that no bridge has.
    match placed == functions.len() {
        true => Ok(tree),
        false => Err(syntax(file, "bridges lead in a circle".to_owned())),
    }
}

fn count(node: &PciNode) -> usize {
    1 + node.below.iter().map(count).sum::<usize>()
}

/// A function with what is below it; `None` if that is too deep.
fn below(
    index: usize,
    functions: &[Function],
    on_bus: &BTreeMap<(u32, u32), Vec<usize>>,
    bridges: &BTreeMap<(u32, u32), usize>,
    depth: usize,
) -> Option<PciNode> {
    let function = &functions[index];
    let mut node = function.node.clone();
    let own = function
        .secondary
        .filter(|bus| bridges.get(bus) == Some(&index));
    let members = own.and_then(|bus| on_bus.get(&bus));
    for member in members.into_iter().flatten() {
        let depth = depth.checked_sub(1)?;
        node.below
            .push(below(*member, functions, on_bus, bridges, depth)?);
    }
    Some(node)
}

/// `0000:01:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)`.
fn header(line: &str) -> Option<Function> {
    let (address, rest) = line.split_once(' ')?;
    let (place, number) = address.rsplit_once('.')?;
    let mut parts = place.rsplit(':');
    let hex = |text: &str, most: usize| match text.len() <= most {
        true => u32::from_str_radix(text, 16).ok(),
        false => None,
    };
    let (device, bus) = (hex(parts.next()?, 2)?, hex(parts.next()?, 2)?);
    let domain = parts.next().map_or(Some(0), |domain| hex(domain, 8))?;
    let number = hex(number, 1)?;
    let is_whole = parts.next().is_none() && address.len() >= 7 && line.contains(": ");
    let (kind, name) = rest.split_once(": ").filter(|_| is_whole)?;
    let code = kind
        .split_once('[')
        .map(|(_, code)| code.trim_end_matches(']'));
    let named = || {
        CLASSES
            .iter()
            .find(|(name, _)| kind.starts_with(name))
            .map(|(_, code)| *code)
    };
    let class = code
        .and_then(|code| hex(code, 4))
        .or_else(named)
        .unwrap_or(0);
    let ids = name.rmatch_indices('[').find_map(|(at, _)| {
        let (vendor, device) = name[at + 1..].split_once(']')?.0.split_once(':')?;
        hex(vendor, 4).zip(hex(device, 4))
    });
    // Without `-nn` a name is all there is, or a number in it that pci.ids does not know.
    let mut vendors = VENDORS.iter();
    let vendor = vendors.find(|(known, _)| name.starts_with(known));
    let vendor = vendor.map(|(_, vendor)| *vendor);
    let device_number = name
        .split_once("Device ")
        .map(|(_, rest)| rest.split(' ').next());
    let unknown = vendor.zip(device_number.flatten().and_then(|device| hex(device, 4)));
    let named = match (
        name.contains("Data Streaming"),
        name.contains("In-memory Analytics"),
    ) {
        (true, _) => Some((0x8086, 0x0b25)),
        (_, true) => Some((0x8086, 0x0cfe)),
        _ => Some((vendor.unwrap_or(0), 0)),
    };
    let id = ids.or(unknown).or(named);
    // Switches of Broadcom's have one on each bus that they hide from a host.
    let class = match name.contains("Placeholder Endpoint") {
        true => NO_DEVICE,
        false => class,
    };
    Some(Function {
        node: PciNode {
            address: format!("{domain:04x}:{bus:02x}:{device:02x}.{number:x}"),
            class: class << 8,
            id,
            ..PciNode::default()
        },
        bus: (domain, bus),
        secondary: None,
    })
}

/// A line below a function.
fn detail(function: &mut Function, line: &str) {
    let after = |key: &str| line.split_once(key).map(|(_, rest)| rest.trim_start());
    let number = |text: &str| {
        text.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let node = &mut function.node;
    let link: &mut PciLink = &mut node.link;
    if let Some(rest) = line.strip_prefix("NUMA node:") {
        node.numa = rest.trim().parse().ok();
    } else if let (Some(node_of_flags), true) = (after("NUMA node "), line.starts_with("Flags:")) {
        // As `lspci -v` has it.
        node.numa = number(node_of_flags);
    } else if line.starts_with("Bus:") {
        let bus = after("secondary=").and_then(|rest| rest.split(',').next());
        let bus = bus.and_then(|bus| u32::from_str_radix(bus.trim(), 16).ok());
        function.secondary = bus.filter(|bus| *bus != 0).map(|bus| (function.bus.0, bus));
    } else if line.starts_with("LnkCap:") {
        link.max_generation = after("Speed ").and_then(super::generation);
        link.max_width = after("Width ").and_then(lanes);
    } else if line.starts_with("LnkSta:") {
        link.generation = after("Speed ").and_then(super::generation);
        link.width = after("Width ").and_then(lanes);
    } else if let (Some(payload), Some(request)) = (after("MaxPayload "), after("MaxReadReq ")) {
        let size = |size: &u32| size.is_power_of_two() && (128..=4096).contains(size);
        link.mps = number(payload).filter(size);
        link.mrrs = number(request).filter(size);
    }
}

fn lanes(text: &str) -> Option<u32> {
    let end = text.find([',', ' ']).unwrap_or(text.len());
    super::width(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
00:00.0 Host bridge [0600]: Intel Corporation Device [8086:09a2] (rev 04)
17:01.0 PCI bridge [0604]: Intel Corporation Device [8086:352a] (rev 30) (prog-if 00 [Normal decode])
\tNUMA node: 1
\tBus: primary=17, secondary=18, subordinate=19, sec-latency=0
\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00
\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0
\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes
\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16 (ok)
18:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 PCIe] [10de:2331] (rev a1)
\tNUMA node: 1
\t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16
";

    #[test]
    fn bridges_have_what_is_on_their_bus() {
        assert!(is_one(TEXT));
        let tree = read(TEXT, "lspci.txt").unwrap();
        let port = tree
            .roots
            .iter()
            .find(|root| root.class == 0x06_0400)
            .unwrap();
        assert_eq!(
            (port.address.as_str(), port.numa),
            ("0000:17:01.0", Some(1))
        );
        let gpu = &port.below[0];
        assert_eq!((gpu.class, gpu.id), (0x03_0200, Some((0x10de, 0x2331))));
        let link = gpu.link;
        assert_eq!((link.generation, link.max_generation), (Some(1), Some(5)));
        assert_eq!(
            (link.width, link.mps, link.mrrs),
            (Some(16), Some(256), Some(4096))
        );
    }

    #[test]
    fn names_of_classes_stand_for_numbers_and_circles_end() {
        let named = header("0000:01:00.0 Non-Volatile memory controller: Samsung PM1743").unwrap();
        assert_eq!(named.node.class, 0x01_0800);
        let mover =
            header("6a:01.0 System peripheral: Intel Corporation Device 0b25 (rev 30)").unwrap();
        assert_eq!(mover.node.id, Some((0x8086, 0x0b25)));
        assert!(header("Kernel driver in use: nvme").is_none());
        assert!(header("01:00.0").is_none() && header("zz:00.0 PCI bridge: x").is_none());
        let circle = "01:00.0 PCI bridge: a\n\tBus: primary=01, secondary=02, subordinate=01\n\
            02:00.0 PCI bridge: b\n\tBus: primary=02, secondary=01, subordinate=01\n";
        assert!(read(circle, "x").is_err());
        // A bus is below one bridge, also where two say that it is theirs.
        let mut twice = String::new();
        for bus in 0..200 {
            for device in 0..2 {
                let next = bus + 1;
                twice += &format!(
                    "{bus:02x}:{device:02x}.0 PCI bridge: x\n\tBus: secondary={next:02x}\n"
                );
            }
        }
        assert!(read(&twice, "x").is_err());
    }
}
