//! The PCI tree from sysfs.

use std::path::Path;

use super::tree::{PciLink, PciNode};
use crate::PcieError;

/// Functions that are read at most, and how deep.
const MAX_FUNCTIONS: usize = 20_000;
const MAX_DEPTH: usize = 32;

/// Reads `ROOT/devices/pci*`; gives what hangs on the root buses.
pub(super) fn read(root: &Path) -> Result<Vec<PciNode>, PcieError> {
    let devices = root.join("devices");
    let mut buses: Vec<_> = list(&devices)?
        .into_iter()
        .filter(|name| name.starts_with("pci"))
        .collect();
    buses.sort();
    let mut nodes = Vec::new();
    let mut count = 0;
    for bus in buses {
        nodes.extend(functions(&devices.join(bus), 0, &mut count)?);
    }
    if nodes.is_empty() {
        return Err(PcieError::Io {
            path: devices,
            message: "no PCI devices below pci*; give /sys or a directory that holds its devices/"
                .to_owned(),
        });
    }
    Ok(nodes)
}

fn list(directory: &Path) -> Result<Vec<String>, PcieError> {
    let io = |error: std::io::Error| PcieError::Io {
        path: directory.to_owned(),
        message: error.to_string(),
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(io)? {
        if let Ok(name) = entry.map_err(io)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Directories named as functions, and those below them.
fn functions(directory: &Path, depth: usize, count: &mut usize) -> Result<Vec<PciNode>, PcieError> {
    let mut nodes = Vec::new();
    if depth == MAX_DEPTH {
        return Ok(nodes);
    }
    for name in list(directory)? {
        let path = directory.join(&name);
        // A symbolic link could lead in a circle.
        let is_directory = path.symlink_metadata().is_ok_and(|data| data.is_dir());
        if !is_address(&name) || !is_directory {
            continue;
        }
        *count += 1;
        if *count > MAX_FUNCTIONS {
            return Err(PcieError::Io {
                path,
                message: format!("more than {MAX_FUNCTIONS} PCI functions"),
            });
        }
        nodes.push(PciNode {
            class: number(&path, "class").unwrap_or(0),
            numa: text(&path, "numa_node").and_then(|text| text.parse().ok()),
            link: link(&path),
            below: functions(&path, depth + 1, count)?,
            address: name,
        });
    }
    Ok(nodes)
}

/// `0000:01:00.0`; domains may be longer.
fn is_address(name: &str) -> bool {
    let parts: Vec<&str> = name.split([':', '.']).collect();
    let hex = |part: &&str| {
        !part.is_empty() && part.len() <= 8 && part.chars().all(|c| c.is_ascii_hexdigit())
    };
    parts.len() == 4 && parts.iter().all(hex) && name.len() <= 32
}

fn text(path: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path.join(name)).ok()?;
    Some(text.trim().to_owned())
}

fn number(path: &Path, name: &str) -> Option<u32> {
    u32::from_str_radix(text(path, name)?.strip_prefix("0x")?, 16).ok()
}

fn link(path: &Path) -> PciLink {
    let (mps, mrrs) = payload_sizes(&std::fs::read(path.join("config")).unwrap_or_default());
    let width = text(path, "current_link_width").and_then(|text| text.parse().ok());
    PciLink {
        generation: text(path, "current_link_speed").and_then(|text| generation(&text)),
        width: width.filter(|width| matches!(width, 1 | 2 | 4 | 8 | 12 | 16 | 32)),
        mps,
        mrrs,
        gb_s: None,
    }
}

/// `8.0 GT/s PCIe` is generation 3.
fn generation(text: &str) -> Option<u32> {
    match text.split_whitespace().next()? {
        "2.5" => Some(1),
        "5.0" | "5" => Some(2),
        "8.0" | "8" => Some(3),
        "16.0" | "16" => Some(4),
        "32.0" | "32" => Some(5),
        "64.0" | "64" => Some(6),
        _ => None,
    }
}

/// MPS and MRRS from the device control register of the PCI Express capability (base
/// specification 7.5.3.4). Without privileges the kernel shows 64 bytes only, which end before it.
fn payload_sizes(config: &[u8]) -> (Option<u32>, Option<u32>) {
    let mut place = usize::from(config.get(0x34).copied().unwrap_or(0) & 0xfc);
    for _ in 0..48 {
        let (Some(id), Some(next)) = (config.get(place), config.get(place + 1)) else {
            break;
        };
        if place < 0x40 {
            break;
        }
        if *id == 0x10 {
            let control = config.get(place + 8..place + 10);
            let control = control.map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
            let size = |shift: u32| {
                let code = (control? >> shift) & 7;
                (code <= 5).then(|| 128u32 << code)
            };
            return (size(5), size(12));
        }
        place = usize::from(next & 0xfc);
    }
    (None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_sizes_are_read_and_capability_loops_end() {
        let mut config = vec![0u8; 256];
        config[0x34] = 0x40;
        config[0x40] = 0x01;
        config[0x41] = 0x60;
        config[0x60] = 0x10;
        // MPS code 1 (256), MRRS code 2 (512).
        config[0x68..0x6a].copy_from_slice(&0x2020u16.to_le_bytes());
        assert_eq!(payload_sizes(&config), (Some(256), Some(512)));
        config[0x60] = 0x05;
        config[0x61] = 0x40;
        assert_eq!(payload_sizes(&config), (None, None));
        assert_eq!(payload_sizes(&config[..64]), (None, None));
        assert_eq!(payload_sizes(&[]), (None, None));
    }

    #[test]
    fn pci_addresses_and_link_speeds_are_parsed() {
        assert!(is_address("0000:01:00.0") && is_address("10000:e1:00.1"));
        assert!(!is_address("power") && !is_address("0000:01:00") && !is_address("pci0000:00"));
        assert_eq!(generation("8.0 GT/s PCIe"), Some(3));
        assert_eq!(generation("Unknown"), None);
    }
}
