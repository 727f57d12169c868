//! Devices and work queues as the idxd driver shows them.

use super::look::Look;
use super::pci::is_address;
use crate::machine::{Reading, Stat};

pub(crate) const BUS: &str = "/sys/bus/dsa/devices";
pub(crate) const NODES: &str = "/dev/dsa";

/// The devices.
pub(crate) struct Devices {
    pub(crate) devices: Reading<Vec<Device>>,
}

/// One device.
pub(crate) struct Device {
    /// As in `dsa0`.
    pub(crate) name: String,
    /// The PCI function: domain, bus, device and function.
    pub(crate) address: Option<String>,
    pub(crate) state: Reading<String>,
    pub(crate) version: Reading<i64>,
    pub(crate) pasid_enabled: Reading<i64>,
    pub(crate) cmd_status: Reading<i64>,
    pub(crate) numa_node: Reading<i64>,
    pub(crate) max_work_queues_size: Reading<i64>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) engines: Vec<Engine>,
}

/// One work queue.
pub(crate) struct Queue {
    /// As in `wq0.1`.
    pub(crate) name: String,
    device: String,
    pub(crate) state: Reading<String>,
    pub(crate) mode: Reading<String>,
    pub(crate) kind: Reading<String>,
    pub(crate) label: Reading<String>,
    /// Missing before Linux 6.7.
    pub(crate) driver_name: Reading<String>,
    pub(crate) group: Reading<i64>,
    pub(crate) size: Reading<i64>,
    pub(crate) threshold: Reading<i64>,
    pub(crate) block_on_fault: Reading<i64>,
    /// The character device.
    pub(crate) node: Reading<Stat>,
}

/// One engine.
pub(crate) struct Engine {
    pub(crate) group: Reading<i64>,
}

impl Devices {
    pub(super) fn of(look: Look<'_>) -> Self {
        let devices = look.0.list(BUS).map(|names| {
            let dsa = names.iter().filter(|name| is_numbered(name, "dsa"));
            dsa.map(|name| Device::of(look, name)).collect()
        });
        Self { devices }
    }

    /// The devices, none if they cannot be read.
    pub(crate) fn all(&self) -> &[Device] {
        self.devices.as_deref().unwrap_or_default()
    }

    /// All work queues that are enabled, with their devices.
    pub(crate) fn enabled_queues(&self) -> impl Iterator<Item = (&Device, &Queue)> {
        let pairs = self.all().iter();
        let pairs = pairs.flat_map(|device| device.queues.iter().map(move |queue| (device, queue)));
        pairs.filter(|(_, queue)| queue.is_enabled())
    }
}

impl Device {
    fn of(look: Look<'_>, name: &str) -> Self {
        let path = format!("{BUS}/{name}");
        let attribute = |attribute: &str| format!("{path}/{attribute}");
        // ../../../devices/pci0000:6a/0000:6a:01.0/dsa0
        let target = look.0.link(&path).ok();
        let parent = target.as_deref().and_then(|t| t.rsplit('/').nth(1));
        let names = look.names(&path).unwrap_or_default();
        let numbered = |prefix: &'static str| {
            let names = names.iter();
            names.filter(move |name| is_numbered(name, prefix))
        };
        Self {
            name: name.to_owned(),
            address: parent.filter(|name| is_address(name)).map(str::to_owned),
            state: look.text(&attribute("state")),
            version: look.number(&attribute("version")),
            pasid_enabled: look.number(&attribute("pasid_enabled")),
            cmd_status: look.number(&attribute("cmd_status")),
            numa_node: look.number(&attribute("numa_node")),
            max_work_queues_size: look.number(&attribute("max_work_queues_size")),
            queues: numbered("wq").map(|wq| Queue::of(look, name, wq)).collect(),
            engines: numbered("engine")
                .map(|engine| Engine {
                    group: look.number(&attribute(&format!("{engine}/group_id"))),
                })
                .collect(),
        }
    }

    pub(crate) fn path(&self, attribute: &str) -> String {
        format!("{BUS}/{}/{attribute}", self.name)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.state.as_deref() == Ok("enabled")
    }

    /// Whether an engine serves a group.
    pub(crate) fn serves(&self, group: i64) -> bool {
        self.engines.iter().any(|engine| engine.group == Ok(group))
    }
}

impl Queue {
    fn of(look: Look<'_>, device: &str, name: &str) -> Self {
        let path = format!("{BUS}/{device}/{name}");
        let attribute = |attribute: &str| format!("{path}/{attribute}");
        let state = look.text(&attribute("state"));
        let kind = look.text(&attribute("type"));
        Self {
            mode: look.text(&attribute("mode")),
            label: look.text(&attribute("name")),
            driver_name: look.text(&attribute("driver_name")),
            group: look.number(&attribute("group_id")),
            size: look.number(&attribute("size")),
            threshold: look.number(&attribute("threshold")),
            block_on_fault: look.number(&attribute("block_on_fault")),
            node: look.0.stat(&format!("{NODES}/{name}")),
            name: name.to_owned(),
            device: device.to_owned(),
            state,
            kind,
        }
    }

    pub(crate) fn path(&self, attribute: &str) -> String {
        format!("{BUS}/{}/{}/{attribute}", self.device, self.name)
    }

    pub(crate) fn node_path(&self) -> String {
        format!("{NODES}/{}", self.name)
    }

    /// As accel-config wants it, as in `dsa0/wq0.1`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.device, self.name)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.state.as_deref() == Ok("enabled")
    }

    pub(crate) fn is_user(&self) -> bool {
        self.kind.as_deref() == Ok("user")
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.mode.as_deref() == Ok("shared")
    }

    /// Whether its configuration has begun.
    pub(crate) fn is_configured(&self) -> bool {
        matches!(self.size, Ok(1..)) || matches!(self.group, Ok(0..))
    }
}

/// Whether a name is a prefix and a number, perhaps with a second one: `wq0.1`, not `wq0!1`.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|number| {
        !number.is_empty()
            && number.len() <= 8
            && number.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}
