//! The file's form, before its rules are checked.

use serde::{Deserialize, Serialize};

use super::{Arbiter, QueueOrganisation, Switching};
use super::{Credits, EndpointParameters, EngineParameters, HostParameters};
use crate::PcieError;

/// A topology file as written.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopologyFile {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) source: String,
    /// Links of other kinds between its devices that the file does not have: `nvlink`, `xgmi`, `c2c`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<String>,
    /// Of nodes that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arbiter: Option<Arbiter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link_defaults: Option<LinkEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fat_tree: Option<FatTree>,
    #[serde(default, rename = "device", skip_serializing_if = "Vec::is_empty")]
    pub(crate) devices: Vec<DeviceEntry>,
    #[serde(default, rename = "host", skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<HostEntry>,
    #[serde(
        default,
        rename = "host_adapter",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) host_adapters: Vec<ForwarderEntry>,
    #[serde(default, rename = "switch", skip_serializing_if = "Vec::is_empty")]
    pub(crate) switches: Vec<ForwarderEntry>,
    #[serde(
        default,
        rename = "endpoint_adapter",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) endpoint_adapters: Vec<ForwarderEntry>,
    #[serde(default, rename = "endpoint", skip_serializing_if = "Vec::is_empty")]
    pub(crate) endpoints: Vec<EndpointEntry>,
    #[serde(default, rename = "link", skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<LinkEntry>,
    #[serde(default, rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<RouteEntry>,
}

/// A host with its sockets `name.0`, `name.1` ...
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostEntry {
    pub(crate) name: String,
    #[serde(default = "one")]
    pub(crate) sockets: u32,
    #[serde(default)]
    pub(crate) timing: HostParameters,
}

fn one() -> u32 {
    1
}

/// An adapter or a switch.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForwarderEntry {
    pub(crate) name: String,
    /// Address translation between domains, ns.
    #[serde(default)]
    pub(crate) ntb_ns: f64,
    /// Forwarding, apart from translation, ns.
    #[serde(default)]
    pub(crate) forward_ns: f64,
    /// What the host adds for each crossing between it and the fabric, ns.
    #[serde(default)]
    pub(crate) host_side_ns: f64,
    #[serde(default)]
    pub(crate) queues: QueueOrganisation,
    #[serde(default)]
    pub(crate) switching: Switching,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arbiter: Option<Arbiter>,
    /// Distance from the endpoints, for fabrics with more than one path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<u32>,
}

/// An endpoint.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointEntry {
    pub(crate) name: String,
    /// What it is, in a word: `fpga`, `gpu`, `nic` ...
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) kind: String,
    /// Name of a `[[device]]`; without it the endpoint has default timing and no engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
}

/// Timing of a sort of device, by name.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceEntry {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) timing: EndpointParameters,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<EngineParameters>,
}

/// A link, or the defaults of links.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LinkEntry {
    /// The upper node first: `down` is from the first to the second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ends: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) generation: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mrrs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credit_update_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) down_gib_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) up_gib_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credits: Option<Credits>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unread: Vec<String>,
}

/// The way between two nodes, where a fabric has more than one.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteEntry {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Nodes between them, in order.
    pub(crate) via: Vec<String>,
}

/// A two-level fat tree: every leaf switch is joined to every spine switch.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FatTree {
    pub(crate) spines: u32,
    pub(crate) leaves: u32,
    pub(crate) hosts_per_leaf: u32,
    pub(crate) endpoints_per_leaf: u32,
    /// Lanes between a leaf and a spine.
    pub(crate) uplink_width: u32,
    #[serde(default)]
    pub(crate) ntb_ns: f64,
    #[serde(default)]
    pub(crate) forward_ns: f64,
    #[serde(default)]
    pub(crate) queues: QueueOrganisation,
    /// Name of a `[[device]]` for the endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
}

impl TopologyFile {
    pub(crate) fn parse(text: &str, file: &str) -> Result<Self, PcieError> {
        toml::from_str(text).map_err(|error| PcieError::Syntax {
            file: file.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })
    }

    pub(crate) fn to_toml(&self) -> Result<String, PcieError> {
        toml::to_string(self).map_err(|error| PcieError::Syntax {
            file: self.name.clone(),
            message: error.to_string(),
        })
    }
}
