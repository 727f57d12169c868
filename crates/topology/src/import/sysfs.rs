//! The PCI tree from sysfs.

use std::collections::BTreeMap;
use std::path::Path;

use super::tree::{PciLink, PciNode, Tree};
use crate::PcieError;

/// Functions that are read at most, and how deep.
const MAX_FUNCTIONS: usize = 20_000;
const MAX_DEPTH: usize = 32;

/// How deep root buses are below `devices`: those of Hyper-V and of Arm's platforms are not at its top.
const MAX_PLACE: usize = 10;
/// Directories that are looked through for them at most.
const MAX_DIRECTORIES: usize = 100_000;
/// Directories of `devices` without devices of PCI.
const WITHOUT: [&str; 4] = ["system", "virtual", "software", "tracepoint"];

/// Reads the buses `pci*` below `ROOT/devices`; gives what hangs on them.
pub(super) fn read(root: &Path) -> Result<Tree, PcieError> {
    let devices = root.join("devices");
    let mut reader = Reader::default();
    reader.buses(&devices, 0)?;
    if reader.tree.roots.is_empty() {
        return Err(PcieError::Io {
            path: devices,
            message: "no PCI devices below pci*; give /sys or a directory that holds its devices/"
                .to_owned(),
        });
    }
    reader.tree.packages = packages(&devices.join("system"));
    Ok(reader.tree)
}

/// The package of each NUMA node that has a CPU.
fn packages(system: &Path) -> BTreeMap<u32, u32> {
    let nodes = list(&system.join("node")).unwrap_or_default();
    let nodes = nodes.iter().filter_map(|name| {
        let node = name.strip_prefix("node")?.parse().ok()?;
        let cpus = text(&system.join("node").join(name), "cpulist")?;
        let first = cpus.split([',', '-']).next()?;
        let cpu = system.join("cpu").join(format!("cpu{}", first.trim()));
        let package = text(&cpu.join("topology"), "physical_package_id")?;
        Some((node, package.parse().ok()?))
    });
    nodes.collect()
}

#[derive(Default)]
struct Reader {
    tree: Tree,
    functions: usize,
    directories: usize,
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

impl Reader {
    /// Root buses in a directory, and in those below it.
    fn buses(&mut self, directory: &Path, depth: usize) -> Result<(), PcieError> {
        for name in list(directory)? {
            let path = directory.join(&name);
            if !is_directory(&path) || depth == 0 && WITHOUT.contains(&name.as_str()) {
                continue;
            }
            self.directories += 1;
            if self.directories > MAX_DIRECTORIES {
                let message = format!("more than {MAX_DIRECTORIES} directories");
                return Err(PcieError::Io { path, message });
            }
            if is_bus(&name) {
                let functions = self.functions(&path, 0)?;
                self.tree.roots.extend(functions);
            } else if depth < MAX_PLACE {
                // Some directories are their owner's alone: what is in them is not read.
                let _ = self.buses(&path, depth + 1);
            }
        }
        Ok(())
    }

    /// Directories named as functions, and those below them.
    fn functions(&mut self, directory: &Path, depth: usize) -> Result<Vec<PciNode>, PcieError> {
        let mut nodes = Vec::new();
        if depth == MAX_DEPTH {
            return Ok(nodes);
        }
        for name in list(directory)? {
            let path = directory.join(&name);
            if !is_directory(&path) {
                continue;
            }
            if is_bus(&name) {
                // Root ports behind a device of the root complex: Intel's VMD.
                let behind = self.functions(&path, depth + 1)?;
                self.tree.roots.extend(behind);
            }
            if !is_address(&name) {
                continue;
            }
            self.functions += 1;
            if self.functions > MAX_FUNCTIONS {
                let message = format!("more than {MAX_FUNCTIONS} PCI functions");
                return Err(PcieError::Io { path, message });
            }
            let roots = self.tree.roots.len();
            let below = self.functions(&path, depth + 1)?;
            // What stands for root ports is no device of its own.
            if self.tree.roots.len() > roots && below.is_empty() {
                continue;
            }
            let id = |name: &str| number(&path, name);
            nodes.push(PciNode {
                class: number(&path, "class").unwrap_or(0),
                id: id("vendor").zip(id("device")),
                wire_mbit_s: 0.0,
                numa: text(&path, "numa_node").and_then(|text| text.parse().ok()),
                link: link(&path),
                below,
                address: name,
            });
        }
        Ok(nodes)
    }
}

/// A symbolic link could lead in a circle.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// `pci0000:00`; domains may be longer.
fn is_bus(name: &str) -> bool {
    let hex = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit());
    let numbers = name
        .strip_prefix("pci")
        .and_then(|rest| rest.split_once(':'));
    numbers.is_some_and(|(domain, bus)| hex(domain) && hex(bus))
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
    let width = |name: &str| text(path, name).and_then(|text| super::width(&text));
    let speed = |name: &str| text(path, name).and_then(|text| super::generation(&text));
    PciLink {
        generation: speed("current_link_speed"),
        max_generation: speed("max_link_speed"),
        width: width("current_link_width"),
        max_width: width("max_link_width"),
        mps,
        mrrs,
        gb_s: None,
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
    fn pci_addresses_and_buses_are_told_apart() {
        assert!(is_address("0000:01:00.0") && is_address("10000:e1:00.1"));
        assert!(!is_address("power") && !is_address("0000:01:00") && !is_address("pci0000:00"));
        assert!(is_bus("pci10000:80") && !is_bus("pci_bus") && !is_bus("pci0000:"));
    }
}
