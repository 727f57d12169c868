//! The PCI tree from hwloc's XML, as `lstopo` writes it.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::tree::{PciNode, Tree};
use crate::PcieError;

/// Objects inside each other at most.
const MAX_DEPTH: usize = 256;
/// Objects of a file at most.
const MAX_OBJECTS: usize = 200_000;

/// What an open element is to the tree.
enum Open {
    /// A PCI object; its children are collected in it.
    Pci(PciNode),
    /// An object that carries a NUMA node for what is below it, and is a package of that number.
    Ancestor {
        node: Option<u32>,
        package: Option<u32>,
    },
}

/// Reads the document; gives what hangs on the host bridges.
pub(super) fn read(text: &str, file: &str) -> Result<Tree, PcieError> {
    let fail = |message: String| PcieError::Syntax {
        file: file.to_owned(),
        message,
    };
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Open> = Vec::new();
    let mut tree = Tree::default();
    let (mut is_hwloc, mut objects) = (false, 0);
    loop {
        let at = reader.buffer_position();
        let event = reader
            .read_event()
            .map_err(|error| fail(format!("at byte {at}: {error}")))?;
        objects += 1;
        if objects > MAX_OBJECTS {
            return Err(fail(format!("more than {MAX_OBJECTS} elements")));
        }
        match event {
            Event::Eof => break,
            Event::Start(element) => {
                is_hwloc |= element.name().as_ref() == b"topology";
                if open.len() == MAX_DEPTH {
                    return Err(fail(format!(
                        "more than {MAX_DEPTH} elements inside each other"
                    )));
                }
                open.push(
                    object(&element).map_err(|error| fail(format!("at byte {at}: {error}")))?,
                );
            }
            Event::Empty(element) => {
                let object =
                    object(&element).map_err(|error| fail(format!("at byte {at}: {error}")))?;
                close(object, &mut open, &mut tree);
            }
            Event::End(_) => {
                if let Some(object) = open.pop() {
                    close(object, &mut open, &mut tree);
                }
            }
            _ => {}
        }
    }
    if !is_hwloc || !open.is_empty() {
        return Err(fail(
            "is not a whole <topology> document of hwloc; write one with `lstopo --of xml`"
                .to_owned(),
        ));
    }
    if tree.roots.is_empty() {
        return Err(fail(
            "has no PCI objects; write it with `lstopo --whole-io --of xml`".to_owned(),
        ));
    }
    Ok(tree)
}

fn object(element: &BytesStart<'_>) -> Result<Open, String> {
    let (mut kind, mut bridge, mut node) = (String::new(), String::new(), PciNode::default());
    let (mut index, mut nodeset) = (None, None);
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute
            .unescape_value()
            .map_err(|error| error.to_string())?;
        match attribute.key.as_ref() {
            b"type" => kind = value.into_owned(),
            b"bridge_type" => bridge = value.into_owned(),
            b"pci_busid" => node.address = value.chars().take(32).collect(),
            b"pci_type" => {
                // `0302 [10de:1eb8] [10de:12a2] a1`
                let class = value.split_whitespace().next().unwrap_or_default();
                node.class = u32::from_str_radix(class, 16).unwrap_or(0) << 8;
                let id = value
                    .split(['[', ']'])
                    .nth(1)
                    .and_then(|id| id.split_once(':'));
                let hex = |text: &str| u32::from_str_radix(text, 16).ok();
                node.id = id.and_then(|(vendor, device)| hex(vendor).zip(hex(device)));
            }
            b"pci_link_speed" => {
                let speed: Option<f64> = value.parse().ok();
                node.link.gb_s =
                    speed.filter(|speed| speed.is_finite() && *speed > 0.01 && *speed < 1e5);
            }
            b"os_index" => index = value.parse().ok(),
            b"nodeset" => nodeset = Some(value.into_owned()),
            _ => {}
        }
    }
    Ok(match (kind.as_str(), bridge.as_str()) {
        // From the host to PCI: nothing but a place.
        ("Bridge", kind) if kind.starts_with("0-") => Open::Ancestor {
            node: None,
            package: None,
        },
        ("Bridge", _) => {
            node.class = 0x06_0400;
            Open::Pci(node)
        }
        ("PCIDev", _) => Open::Pci(node),
        // What hangs on an object with one NUMA node hangs on that node: a package, or a part of one.
        (kind, _) => {
            let package = index.filter(|_| kind == "Package");
            let node = match nodeset {
                Some(nodes) => only_node(&nodes),
                None => package,
            };
            Open::Ancestor { node, package }
        }
    })
}

/// The node of a set of one, written as words of 32 bits in hexadecimal, the highest first.
fn only_node(nodeset: &str) -> Option<u32> {
    let mut only = None;
    for (place, word) in nodeset.rsplit(',').enumerate().take(32) {
        let word = word.trim().trim_start_matches("0x");
        let bits = match word {
            "" => 0,
            word => u32::from_str_radix(word, 16).ok()?,
        };
        if bits.count_ones() > 1 || (bits != 0 && only.is_some()) {
            return None;
        }
        if bits != 0 {
            only = Some(place as u32 * 32 + bits.trailing_zeros());
        }
    }
    only
}

/// Puts a complete PCI object into the one around it, or among the roots.
fn close(object: Open, open: &mut [Open], tree: &mut Tree) {
    let Open::Pci(mut node) = object else { return };
    let around = || open.iter().rev();
    let package = around().find_map(|around| match around {
        Open::Ancestor { package, .. } => *package,
        Open::Pci(_) => None,
    });
    let numa = around().find_map(|around| match around {
        Open::Ancestor { node, .. } => *node,
        Open::Pci(_) => None,
    });
    // A package is a socket, however many NUMA nodes it has.
    node.numa = package.or(numa);
    match open.iter_mut().rev().find_map(|around| match around {
        Open::Pci(around) => Some(around),
        Open::Ancestor { .. } => None,
    }) {
        Some(around) => around.below.push(node),
        None => tree.roots.push(node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_set_with_one_node_is_its_number() {
        assert_eq!(only_node("0x00000001"), Some(0));
        assert_eq!(only_node("0x00000002"), Some(1));
        assert_eq!(only_node("0x00000004,0x0"), Some(34));
        assert_eq!(only_node("0x80000000,,0x0"), Some(95));
        for several in ["", "0x0", "0x3", "0x1,0x00000001", "zz", "0xf...f"] {
            assert_eq!(only_node(several), None, "{several}");
        }
    }

    #[test]
    fn devices_are_below_their_bridge_and_have_the_package() {
        let text = r#"<?xml version="1.0"?><topology><object type="Machine"><object type="Package" os_index="1">
            <object type="Bridge" bridge_type="0-1"><object type="Bridge" bridge_type="1-1" pci_busid="0000:00:01.0" pci_link_speed="15.753846">
            <object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:1eb8]" pci_link_speed="15.753846"/>
            </object></object></object></object></topology>"#;
        let roots = read(text, "x.xml").unwrap().roots;
        assert_eq!(roots.len(), 1);
        assert_eq!(roots[0].below[0].address, "0000:01:00.0");
        assert_eq!(
            (roots[0].numa, roots[0].below[0].class),
            (Some(1), 0x03_0200)
        );
        for bad in [
            "",
            "<a/>",
            "<topology>",
            "<topology><object",
            "<topology></topology>",
            "<topology a=\"&x;\"/>",
        ] {
            assert!(read(bad, "x.xml").is_err(), "{bad}");
        }
        let deep = "<object>".repeat(1000);
        assert!(read(&format!("<topology>{deep}"), "x.xml").is_err());
    }
}
