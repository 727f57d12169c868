//! The PCI tree from NCCL's topology XML (`NCCL_TOPO_DUMP_FILE`, `NCCL_TOPO_FILE`; RCCL's and aws-ofi-nccl's are alike).
//!
//! A `pci` element is a device or the upstream port of a switch, with the link above it; ports of switches and of the root
//! complex are left out. A `cpu` element is a NUMA node.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::tree::{PciLink, PciNode, Tree};
use crate::PcieError;
use crate::error::syntax;

/// Elements inside each other at most.
const MAX_DEPTH: usize = 256;
/// `pci` elements of a file at most: of machines they are hundreds.
const MAX_FUNCTIONS: usize = 5_000;
/// Fastest port of a NIC, Mbit/s: above it a number is none.
const MAX_WIRE: f64 = 10e6;
/// Class of a bridge between PCI buses.
const BRIDGE: u32 = 0x06_0400;

/// What an open element is to the tree.
enum Open {
    Pci(PciNode),
    /// A NUMA node, where it is known.
    Cpu(Option<u32>),
    /// Of the generation that its compute capability has, if its link says nothing, or may be idle.
    Gpu(Option<u32>),
    Nic,
    /// A port of a NIC, with its speed, Mbit/s.
    Net(f64),
    Other,
}

/// What is read while elements open and close.
#[derive(Default)]
struct Document {
    open: Vec<Open>,
    tree: Tree,
    /// Links of NVLink and xGMI, and network interfaces without a PCI device.
    direct: usize,
    virtual_nics: usize,
    unnamed: u32,
}

/// Reads the document; gives what hangs on the NUMA nodes.
pub(super) fn read(text: &str, file: &str) -> Result<Tree, PcieError> {
    let mut reader = Reader::from_str(text);
    let mut document = Document::default();
    let (mut is_system, mut functions) = (false, 0);
    loop {
        let at = reader.buffer_position();
        let fail = |message: String| syntax(file, format!("at byte {at}: {message}"));
        let event = reader.read_event().map_err(|e| fail(e.to_string()))?;
        match event {
            Event::Eof => break,
            Event::Start(ref element) | Event::Empty(ref element)
                if element.name().as_ref() == b"pci" && functions == MAX_FUNCTIONS =>
            {
                return Err(fail(format!("more than {MAX_FUNCTIONS} functions")));
            }
            Event::Start(element) => {
                functions += usize::from(element.name().as_ref() == b"pci");
                is_system |= element.name().as_ref() == b"system";
                if document.open.len() == MAX_DEPTH {
                    return Err(fail(format!(
                        "more than {MAX_DEPTH} elements inside each other"
                    )));
                }
                let open = document.object(&element).map_err(fail)?;
                document.open.push(open);
            }
            Event::Empty(element) => {
                functions += usize::from(element.name().as_ref() == b"pci");
                let object = document.object(&element).map_err(fail)?;
                document.close(object);
            }
            Event::End(_) => {
                if let Some(object) = document.open.pop() {
                    document.close(object);
                }
            }
            _ => {}
        }
    }
    if !is_system || !document.open.is_empty() {
        let rule = "is not a whole <system> document of NCCL; NCCL_TOPO_DUMP_FILE has it write one";
        return Err(syntax(file, rule.to_owned()));
    }
    Ok(document.finish())
}

/// Generation of the link of a GPU of NVIDIA's by its compute capability: Pascal to Turing, Ampere and Ada, Hopper and
/// Blackwell.
fn generation_of(capability: u32) -> Option<u32> {
    match capability {
        60..=75 => Some(3),
        80..=89 => Some(4),
        90..=129 => Some(5),
        _ => None,
    }
}

/// A number such as `0x10de`.
fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

impl Document {
    fn object(&mut self, element: &BytesStart<'_>) -> Result<Open, String> {
        let mut node = PciNode::default();
        let (mut numa, mut speed, mut width, mut wire) = (None, None, None, 0.0);
        let (mut vendor, mut device, mut capability) = (None, None, None);
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = attribute
                .unescape_value()
                .map_err(|error| error.to_string())?;
            match attribute.key.as_ref() {
                b"numaid" => numa = value.trim().parse().ok(),
                b"busid" | b"bus" => node.address = value.trim().chars().take(32).collect(),
                b"vendor" => {
                    self.tree.is_amd |= value.as_ref() == "AuthenticAMD";
                    self.tree.is_intel |= value.as_ref() == "GenuineIntel";
                    vendor = hexadecimal(&value);
                }
                b"device" => device = hexadecimal(&value),
                b"sm" => capability = value.trim().parse().ok(),
                b"speed" => wire = value.trim().parse().unwrap_or(0.0),
                b"class" => node.class = class(&value),
                b"link_speed" => speed = super::generation(&value),
                b"link_width" => width = super::width(&value),
                _ => {}
            }
        }
        Ok(match element.name().as_ref() {
            b"pci" => {
                node.id = vendor.zip(device);
                node.link = PciLink {
                    generation: speed,
                    width,
                    ..PciLink::default()
                };
                Open::Pci(node)
            }
            b"cpu" => Open::Cpu(numa),
            b"gpu" => Open::Gpu(capability.and_then(generation_of)),
            b"nic" => Open::Nic,
            b"net" => Open::Net(wire),
            name => {
                let kinds: [(&[u8], &str); 3] =
                    [(b"nvlink", "nvlink"), (b"xgmi", "xgmi"), (b"c2c", "c2c")];
                if let Some((_, kind)) = kinds.iter().find(|(kind, _)| *kind == name) {
                    self.direct += 1;
                    self.tree.left_out.insert(kind);
                }
                Open::Other
            }
        })
    }

    /// Puts a complete element into the one around it.
    fn close(&mut self, object: Open) {
        let mut most = None;
        let class = match object {
            Open::Gpu(generation) => {
                most = generation;
                0x03_0200
            }
            Open::Nic => 0x02_0000,
            Open::Cpu(_) | Open::Other => return,
            Open::Net(speed) => {
                let mut around = self.open.iter_mut().rev();
                if let Some(Open::Pci(nic)) = around.find(|open| matches!(open, Open::Pci(_))) {
                    nic.wire_mbit_s += speed.clamp(0.0, MAX_WIRE);
                }
                return;
            }
            Open::Pci(node) => return self.place(node),
        };
        match self.open.last_mut() {
            // What the device is, where its own class does not say.
            Some(Open::Pci(node)) if node.below.is_empty() => {
                if !matches!(node.class >> 16, 0x02 | 0x03 | 0x0b | 0x12) {
                    node.class = class;
                }
                // A link that says Gen1 or 2 may be idle; a faster one is what the slot has.
                let is_idle = node.link.generation.is_none_or(|now| now <= 2);
                node.link.max_generation = node.link.max_generation.or(most.filter(|_| is_idle));
            }
            // A GPU that only NVLink reaches, or an interface of software.
            _ => self.virtual_nics += 1,
        }
    }

    fn place(&mut self, mut node: PciNode) {
        node.numa = self.open.iter().rev().find_map(|around| match around {
            Open::Cpu(numa) => *numa,
            _ => None,
        });
        if node.address.is_empty() {
            node.address = format!("unnamed{}", self.unnamed);
            self.unnamed += 1;
        }
        // A class can be wrong, or missing: what has devices below it is a switch.
        if !node.below.is_empty() {
            node.class = BRIDGE;
        }
        let around = self.open.iter_mut().rev().find_map(|around| match around {
            Open::Pci(around) => Some(around),
            _ => None,
        });
        let siblings = match around {
            Some(around) => &mut around.below,
            None => &mut self.tree.roots,
        };
        // The port above it, which the format leaves out, and which the functions of a device share.
        let same = |port: &&mut PciNode| {
            port.below
                .iter()
                .any(|other| other.device() == node.device())
        };
        match siblings.iter_mut().find(same) {
            // NCCL takes a switch that is named twice for one.
            Some(port) => match port
                .below
                .iter_mut()
                .find(|other| other.address == node.address)
            {
                Some(other) if other.class == BRIDGE => other.below.append(&mut node.below),
                _ => port.below.push(node),
            },
            None => siblings.push(PciNode {
                class: BRIDGE,
                numa: node.numa,
                link: node.link,
                below: vec![node],
                ..PciNode::default()
            }),
        }
    }

    fn finish(mut self) -> Tree {
        if self.direct > 0 {
            let what = dray_output::counted(self.direct, "link");
            let note =
                format!("{what} of NVLink, xGMI or C2C are left out: the file has PCIe alone");
            self.tree.notes.push(note);
        }
        if self.virtual_nics > 0 {
            let what = dray_output::counted(self.virtual_nics, "device");
            self.tree
                .notes
                .push(format!("{what} without a PCI address are left out"));
        }
        self.tree
    }
}

/// `0x060400`; shorter ones have the base class, or base and sub-class.
fn class(text: &str) -> u32 {
    let digits = text.trim().trim_start_matches("0x");
    let value = u32::from_str_radix(digits, 16).unwrap_or(0);
    match digits.len() {
        ..=2 => value << 16,
        3..=4 => value << 8,
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_any_length_are_read() {
        let read = ["0x060400", "0x03", "0302", "", "0xzz"].map(class);
        assert_eq!(read, [0x06_0400, 0x03_0000, 0x03_0200, 0, 0]);
    }

    #[test]
    fn what_is_no_document_is_an_error() {
        for bad in [
            "",
            "<system>",
            "<a/>",
            "<system><pci",
            "<system a=\"&x;\"/>",
        ] {
            assert!(read(bad, "x.xml").is_err(), "{bad}");
        }
        let deep = "<pci>".repeat(1000);
        assert!(read(&format!("<system>{deep}"), "x.xml").is_err());
    }
}
