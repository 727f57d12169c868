//! IAXes beside the DSAs, for scripts that insist on one and for profiles that name them.
//!
//! idxd drives both kinds, and accel-config's own test scripts walk `iax*` without looking whether
//! there is one. So it is there, disabled, and stays so: a device that is seen and not used.

use std::collections::BTreeMap;

use dray_idxd::driver::Errno;

use crate::pci;
use crate::tree::Thing;

/// Names, permission bits and texts.
type Files = &'static [(&'static str, u32, &'static str)];

/// Files of the device as idxd shows them for an IAX of version 1 that is not configured.
const DEVICE: Files = &[
    ("cdev_major", 0o444, "237\n"),
    ("clients", 0o444, "0\n"),
    ("cmd_status", 0o644, "0x0\n"),
    ("configurable", 0o444, "1\n"),
    (
        "errors",
        0o444,
        "00000000,00000000,00000000,00000000,00000000,00000000,00000000,00000000\n",
    ),
    ("gen_cap", 0o444, "0x71f10901f0105\n"),
    ("max_batch_size", 0o444, "1\n"),
    ("max_engines", 0o444, "8\n"),
    ("max_groups", 0o444, "4\n"),
    ("max_read_buffers", 0o444, "0\n"),
    ("max_tokens", 0o444, "0\n"),
    ("max_transfer_size", 0o444, "2147483648\n"),
    ("max_work_queues", 0o444, "8\n"),
    ("max_work_queues_size", 0o444, "128\n"),
    (
        "op_cap",
        0o444,
        "00000000,00000000,00000000,00000000,0000000d,7f331c00,00000000,0000000d\n",
    ),
    ("pasid_enabled", 0o444, "1\n"),
    ("read_buffer_limit", 0o644, "0\n"),
    ("state", 0o444, "disabled\n"),
    ("token_limit", 0o644, "0\n"),
    ("version", 0o444, "0x100\n"),
];

const QUEUE: Files = &[
    ("ats_disable", 0o644, "0\n"),
    ("block_on_fault", 0o644, "0\n"),
    ("clients", 0o444, "0\n"),
    ("enqcmds_retries", 0o644, "32\n"),
    ("group_id", 0o644, "-1\n"),
    ("max_batch_size", 0o644, "1\n"),
    ("max_transfer_size", 0o644, "2097152\n"),
    ("mode", 0o644, "shared\n"),
    ("name", 0o644, "\n"),
    ("occupancy", 0o444, "0\n"),
    ("priority", 0o644, "0\n"),
    ("size", 0o644, "0\n"),
    ("state", 0o444, "disabled\n"),
    ("threshold", 0o644, "0\n"),
    ("type", 0o644, "none\n"),
];

const GROUP: Files = &[
    ("engines", 0o444, "\n"),
    ("read_buffers_allowed", 0o644, "0\n"),
    ("read_buffers_reserved", 0o644, "0\n"),
    ("tokens_allowed", 0o644, "0\n"),
    ("tokens_reserved", 0o644, "0\n"),
    ("traffic_class_a", 0o644, "1\n"),
    ("traffic_class_b", 0o644, "1\n"),
    ("use_read_buffer_limit", 0o644, "0\n"),
    ("use_token_limit", 0o644, "0\n"),
    ("work_queues", 0o444, "\n"),
];

const ENGINE: Files = &[("group_id", 0o644, "-1\n")];

/// Devices of a PCI bus.
const SLOTS: u32 = 32;

const BUS: &str = "/sys/bus/dsa/devices";

/// The files of all of them.
#[derive(Debug)]
pub(crate) struct Iax {
    directories: BTreeMap<String, Vec<(String, Thing)>>,
    texts: BTreeMap<String, String>,
}

impl Iax {
    /// Those of these numbers, behind the DSA at `neighbour` on its PCI bus.
    pub(crate) fn new(ids: &[u32], neighbour: &str, numa_node: i32) -> Iax {
        let mut all = Iax {
            directories: BTreeMap::new(),
            texts: BTreeMap::new(),
        };
        for (id, slot) in ids.iter().zip(2..SLOTS) {
            let address = format!("{}:{slot:02x}.0", pci::bus(neighbour));
            all.add(*id, &address, numa_node);
        }
        all
    }

    fn add(&mut self, id: u32, address: &str, numa_node: i32) {
        let root = format!("/sys/devices/pci{}", pci::bus(address));
        self.directory(&root, address);
        let function = format!("{root}/{address}");
        let name = format!("iax{id}");
        let device = format!("{function}/{name}");
        self.object(&device, DEVICE);
        self.text(&device, "numa_node", 0o444, format!("{numa_node}\n"));
        let kinds: [(&str, u32, Files); 3] =
            [("engine", 8, ENGINE), ("group", 4, GROUP), ("wq", 8, QUEUE)];
        for (kind, count, files) in kinds {
            for index in 0..count {
                self.object(&format!("{device}/{kind}{id}.{index}"), files);
            }
        }
    }

    /// A directory with its files, and the link to it from the bus.
    fn object(&mut self, path: &str, files: Files) {
        let Some((parent, name)) = path.rsplit_once('/') else {
            return;
        };
        self.directory(parent, name);
        for (file, mode, text) in files {
            self.text(path, file, *mode, (*text).to_owned());
        }
        let target = path.replacen("/sys/", "../../../", 1);
        let links = self.directories.entry(BUS.to_owned()).or_default();
        links.push((name.to_owned(), Thing::Link(target)));
    }

    fn directory(&mut self, parent: &str, name: &str) {
        let entries = self.directories.entry(parent.to_owned()).or_default();
        entries.push((name.to_owned(), Thing::Directory));
        self.directories
            .entry(format!("{parent}/{name}"))
            .or_default();
    }

    fn text(&mut self, directory: &str, name: &str, mode: u32, text: String) {
        let entries = self.directories.entry(directory.to_owned()).or_default();
        entries.push((name.to_owned(), Thing::Attribute(mode)));
        self.texts.insert(format!("{directory}/{name}"), text);
    }

    /// What it adds to a directory; `None` where it has nothing to do with that.
    pub(crate) fn list(&self, path: &str) -> Option<&[(String, Thing)]> {
        self.directories.get(path).map(Vec::as_slice)
    }

    /// What one of its files holds.
    pub(crate) fn read(&self, path: &str) -> Option<&[u8]> {
        self.texts.get(path).map(String::as_bytes)
    }

    /// Writes one of its files: what stands there can be written, and nothing else.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Option<Result<(), Errno>> {
        let text = self.read(path)?;
        let clears = path.ends_with("/cmd_status");
        let same = bytes.trim_ascii() == text.trim_ascii();
        Some(if clears || same {
            Ok(())
        } else {
            Err(Errno::EOPNOTSUPP)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iax_device_is_listed_and_stays_disabled() {
        let iax = Iax::new(&[1, 3], "0000:6a:01.0", 0);
        let device = "/sys/devices/pci0000:6a/0000:6a:02.0/iax1";
        let names = iax.list(BUS).unwrap();
        assert_eq!(names.len(), 2 * (1 + 8 + 4 + 8));
        let link = Thing::Link("../../../devices/pci0000:6a/0000:6a:02.0/iax1/wq1.7".to_owned());
        assert!(names.contains(&("wq1.7".to_owned(), link)));
        assert_eq!(iax.list(&format!("{device}/engine1.0")).unwrap().len(), 1);
        assert_eq!(
            iax.read(&format!("{device}/state")),
            Some(&b"disabled\n"[..])
        );
        let group = format!("{device}/wq1.0/group_id");
        assert_eq!(iax.write(&group, b"-1"), Some(Ok(())));
        assert_eq!(iax.write(&group, b"0"), Some(Err(Errno::EOPNOTSUPP)));
        assert_eq!(iax.write("/sys/bus/dsa/drivers/idxd/bind", b"iax1"), None);
        assert_eq!(iax.list("/sys/bus/dsa"), None);
        let functions = iax.list("/sys/devices/pci0000:6a").unwrap();
        assert_eq!(functions.len(), 2);
    }
}
