//! What the kernel's device model shows around the driver's own files: `uevent`, `subsystem`, and the
//! character devices with their numbers (`drivers/base/core.c`, `idxd_wq_add_cdev`).

use dray_idxd::driver::EntryKind;

use crate::machine::SessionDevices;
use crate::tree::Thing;

const DEVICES: &str = "/sys/bus/dsa/devices";
const DEVICES_ROOT: &str = "/sys/devices/pci";
/// The device model writes a slash of a name as an exclamation mark.
const CDEV: &str = "dsa!";
/// Permission bits.
const READABLE: u32 = 0o444;
const WRITABLE: u32 = 0o644;

/// A character device, and the path of its work queue below `/sys`.
struct Cdev {
    name: String,
    major: u32,
    minor: u32,
    queue: String,
}

/// The character devices that there are now.
fn cdevs(machine: &SessionDevices) -> Vec<Cdev> {
    let links = machine.list(DEVICES).unwrap_or_default();
    let nodes = machine.nodes().into_iter();
    let cdev = nodes.filter_map(|node| {
        let EntryKind::Node { major, minor } = node.kind else {
            return None;
        };
        let link = links.iter().find(|link| link.name == node.name)?;
        let EntryKind::Link(target) = &link.kind else {
            return None;
        };
        Some(Cdev {
            queue: target.trim_start_matches("../").to_owned(),
            name: node.name,
            major,
            minor,
        })
    });
    cdev.collect()
}

/// The entries of `/sys/dev/char`.
pub(crate) fn numbers(machine: &SessionDevices) -> Vec<(String, String)> {
    let link = |cdev: Cdev| {
        let Cdev {
            name,
            major,
            minor,
            queue,
        } = cdev;
        let target = format!("../../{queue}/{CDEV}{name}");
        (format!("{major}:{minor}"), target)
    };
    cdevs(machine).into_iter().map(link).collect()
}

/// What is in a directory beside the driver's files; `None` for a directory that is none of the driver's.
pub(crate) fn beside(machine: &SessionDevices, path: &str) -> Option<Vec<(String, Thing)>> {
    if path == DEVICES {
        let link = |cdev: Cdev| {
            let Cdev { name, queue, .. } = cdev;
            let target = format!("../../../{queue}/{CDEV}{name}");
            (format!("{CDEV}{name}"), Thing::Link(target))
        };
        return Some(cdevs(machine).into_iter().map(link).collect());
    }
    let object = object(machine, path)?;
    let depth = path.matches('/').count() - 1;
    let mut found = vec![
        ("uevent".to_owned(), Thing::Attribute(WRITABLE)),
        (
            "subsystem".to_owned(),
            Thing::Link(format!("{}bus/dsa", "../".repeat(depth))),
        ),
    ];
    match object {
        Object::Cdev(_) => found.push(("dev".to_owned(), Thing::Attribute(READABLE))),
        Object::Driver(name) => {
            let cdevs = cdevs(machine).into_iter();
            let own = cdevs.filter(|cdev| cdev.name == name);
            found.extend(own.map(|cdev| (format!("{CDEV}{}", cdev.name), Thing::Directory)));
        }
    }
    Some(found)
}

/// What reading one of these files gives; `None` for another file.
pub(crate) fn read(machine: &SessionDevices, path: &str) -> Option<Vec<u8>> {
    let (directory, file) = path.rsplit_once('/')?;
    if !matches!(file, "uevent" | "dev") {
        return None;
    }
    let text = match (object(machine, directory)?, file) {
        (Object::Cdev(cdev), "dev") => format!("{}:{}\n", cdev.major, cdev.minor),
        (Object::Cdev(cdev), _) => format!(
            "MAJOR={}\nMINOR={}\nDEVNAME=dsa/{}\nDEVTYPE=idxd_cdev\nMODALIAS=idxd:t0\n",
            cdev.major, cdev.minor, cdev.name
        ),
        (Object::Driver(_), "dev") => return None,
        (Object::Driver(name), _) => {
            let mut text = format!("DEVTYPE={}\n", kind(&name));
            if let Some(driver) = driver(machine, directory) {
                text += &format!("DRIVER={driver}\n");
            }
            text + "MODALIAS=idxd:t0\n"
        }
    };
    Some(text.into_bytes())
}

/// Whether this is a `uevent`: to write to it asks for another event, which has no listener here.
pub(crate) fn is_trigger(machine: &SessionDevices, path: &str) -> bool {
    let directory = path.strip_suffix("/uevent");
    directory.is_some_and(|directory| object(machine, directory).is_some())
}

enum Object {
    /// A device, queue, engine or group, by its name.
    Driver(String),
    Cdev(Cdev),
}

fn object(machine: &SessionDevices, path: &str) -> Option<Object> {
    let (parent, name) = path.rsplit_once('/')?;
    if !path.starts_with(DEVICES_ROOT) && parent != DEVICES {
        return None;
    }
    if let Some(node) = name.strip_prefix(CDEV) {
        let cdev = cdevs(machine).into_iter().find(|cdev| cdev.name == node)?;
        let here = parent == DEVICES || parent.strip_prefix("/sys/") == Some(&cdev.queue);
        return here.then_some(Object::Cdev(cdev));
    }
    let named = !kind(name).is_empty() && machine.list(path).is_ok();
    named.then(|| Object::Driver(name.to_owned()))
}

/// `wq` of `wq0.1`: what the driver calls the type. Empty for a name that none of its objects has.
fn kind(name: &str) -> &str {
    let kinds = ["dsa", "wq", "engine", "group"];
    let begins = |kind: &&&str| {
        let rest = name.strip_prefix(**kind);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    kinds.iter().find(begins).map_or("", |kind| kind)
}

/// The driver that an object is bound to, as its link says.
fn driver(machine: &SessionDevices, directory: &str) -> Option<String> {
    let entries = machine.list(directory).ok()?;
    let link = entries.into_iter().find(|entry| entry.name == "driver")?;
    match link.kind {
        EntryKind::Link(target) => target.rsplit('/').next().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_device_is_the_letters_before_its_number() {
        let kinds = [
            "dsa0",
            "wq0.1",
            "engine1.0",
            "group0.3",
            "dsa",
            "wqx",
            "power",
        ];
        assert_eq!(
            kinds.map(kind),
            ["dsa", "wq", "engine", "group", "", "", ""]
        );
    }
}
